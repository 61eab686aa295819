"""Lake tables under deaths of the engine: before, between and behind tokens and commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.parquet as pq
import pytest

from mainstem.cli.pipeline import definition_files, wait_for_flows
from mainstem.client import Client
from mainstem.config import load_project
from mainstem.engine.writer import SMALL_BATCH
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.testing.checker import CommittedTopic, numbered
from mainstem.testing.faults import BatchLog, faulty_stack
from mainstem.testing.load import Load
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

SECONDS = 300
APPENDED, UPSERTED = "appended.1", "upserted.1"
# the first hits a fresh batch, each other one the replay of that same batch
STEPS = ("target_written", "target_done", "after_write", "after_learn")


def pipeline(folder: Path) -> str:
    return f"""
    CREATE STREAM numbers (k STRING, seq BIGINT, id STRING) WITH (key = 'k');
    CREATE SINK appended FROM numbers WITH (connector = 'delta', folder = '{folder}/appended');
    CREATE SINK upserted FROM numbers
      WITH (connector = 'iceberg', warehouse = '{folder}/lake', key = 'k', compact_every = 3);
    """


def appended(folder: Path) -> Iterator[dict[str, Any]]:
    for file in deltalake.DeltaTable(str(folder / "appended")).file_uris():
        yield from pq.ParquetFile(file).read().to_pylist()


def upserted(folder: Path) -> list[dict[str, Any]]:
    from pyiceberg.catalog import load_catalog

    lake = folder / "lake"
    where = {"uri": f"sqlite:///{lake}/catalog.db", "warehouse": f"file://{lake}"}
    table = load_catalog("mainstem", type="sql", **where).load_table("default.numbers")
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return rows


def test_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    (tmp_path / "mainstem.toml").write_text('name = "lakes"\n[kafka]\npartitions = 4\n')
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "all.sql").write_text(pipeline(tmp_path))
    project = load_project(tmp_path)
    with faulty_stack(project) as faults:
        connection = Connection(faults.stack.endpoints.bootstrap_servers)
        client = Client(faults.stack.endpoints.gateway_url)
        files = definition_files(project)
        plan = client.plan(files)
        client.apply(files, plan["digest"], plan["revision"])
        wait_for_flows(client, {name: {"generation": 1} for name in ("appended", "upserted")}, 180)
        load = Load(connection, "numbers", per_second=250)

        def strike(flow: str, steps: tuple[str, ...], batch: int | str = "*") -> None:
            log = BatchLog(project, flow)
            for step in steps:
                faults.arm(step, flow, batch)
                faults.await_restarting(faults.await_crash("engine"))
                batch = log.begun()
                assert log.finished() == batch - 1
                print(f"engine: died at {step} in batch {batch} of {flow}, {log.size(batch)}")

        with load.running():
            strike(APPENDED, STEPS)
            # what piles up while the engine is down becomes one batch of several parts
            eventually(lambda: faults.stack.pid("engine"), SECONDS, what="the engine runs")
            faults.await_restarting(faults.kill("engine"))
            load.burst(SMALL_BATCH + 5_000)
            strike(UPSERTED, STEPS, BatchLog(project, UPSERTED).begun() + 1)
        admin = Admin(connection)

        def drained() -> bool:
            try:
                flows = {f["flow"]: f.get("positions", {}) for f in client.status()["flows"]}
                end = admin.end_offsets("numbers")
            except MainstemError:
                return False
            return all(
                {int(p): o for p, o in flows[name].get("numbers", {}).items()} == end
                for name in ("appended", "upserted")
            )

        eventually(drained, SECONDS, every=0.3, what="everything is through")
        source = list(
            chain.from_iterable(CommittedTopic(connection, "numbers", numbered).look().values())
        )
        for closing in (admin, load, client):
            closing.close()
    found = Counter(row["id"] for row in appended(tmp_path))
    assert found == Counter(record.id for record in source)
    last = {record.k: record.id for record in source}
    rows = upserted(tmp_path)
    assert {row["k"]: row["id"] for row in rows} == last
    assert len(rows) == len(last)
    left = {file.name.partition("-")[0] for file in tmp_path.rglob("_mainstem/**/*.parquet")}
    assert len(left) <= 1, "what dead tasks have staged goes, but for that of the last death"
