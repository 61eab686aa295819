"""Sinks with a target: each row once, bad ones aside, and a target that fails is waited for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import psycopg
import pyarrow.parquet as pq
import pytest
import redis

from mainstem.connect.capture import Capture
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.connect.targets import lake
from mainstem.connect.targets.target import check_target
from mainstem.engine import writer
from mainstem.engine.flow import Flow
from mainstem.engine.status import FlowState
from mainstem.errors import MainstemError
from mainstem.local.stack import Stack
from mainstem.testing import outside
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

SECONDS = 120
REDIS = shutil.which("redis-server")
DECLARED = """
CREATE STREAM s (id INT, name STRING, at TIMESTAMP, tags ARRAY<STRING>)
  WITH (key = 'id', event_time = 'at');
CREATE TABLE t (id INT PRIMARY KEY, name STRING);
"""
SQL = f"{DECLARED} CREATE TABLE counts AS SELECT name, count(*) AS n FROM s GROUP BY name;"


def sink(
    driver: Driver, name: str, source: str, connector: str, transforms: str = "", **options: str
) -> None:
    """Creates a sink; the target is asked before."""
    written = ", ".join(f"{k} = '{v}'" for k, v in {"connector": connector, **options}.items())
    behind = f" TRANSFORM ({transforms})" if transforms else ""
    driver.apply(f"CREATE SINK {name} FROM {source} WITH ({written}){behind};")


def begin_anew(driver: Driver, *sinks: str) -> None:
    """The next run of the sinks has another checkpoint, and other tokens."""
    entries = [driver.entry(name) for name in sinks]
    driver._keep([replace(entry, generation=entry.generation + 1) for entry in entries])


@pytest.fixture(autouse=True)
def connectors(driver: Driver, tmp_path: Path) -> None:
    def no_sources(connector: str) -> Capture:
        raise AssertionError(connector)

    secrets = Secrets(tmp_path, os.environ)
    driver.connectors = PlannedConnectors(secrets, no_sources, check_target)


def event(id_: int, name: str, hour: int = 5) -> Event:
    row = {"id": id_, "name": name, "at": f"2026-11-16T{hour:02}:10:00Z", "tags": ["x"]}
    return Event("s", row)


class Database:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.schema = f"sink_{uuid.uuid4().hex[:8]}"
        secret = folder / "secrets" / "url"
        secret.parent.mkdir()
        secret.write_text(url)
        self.run(f"CREATE SCHEMA {self.schema}")

    def options(self, table: str, **more: str) -> dict[str, str]:
        return {"url": "${file:secrets/url}", "table": f"{self.schema}.{table}", **more}

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.run(f"SELECT {columns} FROM {self.schema}.{table} ORDER BY 1, 2")


@pytest.fixture
def database(servers: Stack, tmp_path: Path) -> Iterator[Database]:
    made = Database(servers.endpoints.postgres_url.get_secret_value(), tmp_path)
    yield made
    made.run(f"DROP SCHEMA {made.schema} CASCADE")


@pytest.fixture
def hook() -> Iterator[tuple[str, list[Any]]]:
    """An address that takes what is posted, and what it has taken."""
    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", taken
    server.shutdown()
    thread.join()
    server.server_close()


def lines(folder: Path) -> list[tuple[str, int]]:
    """Folder and id of each row in JSON lines."""
    found = [
        (path.parent.name, json.loads(line)["id"])
        for path in folder.rglob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return sorted(found)


def test_rows_reach_tables_and_files_once(
    driver: Driver, database: Database, tmp_path: Path
) -> None:
    driver.apply(SQL)
    out = tmp_path / "out"
    sink(driver, "added", "s", "postgres", **database.options("added"))
    sink(driver, "upserted", "s", "postgres", **database.options("upserted", key="id"))
    sink(driver, "copied", "t", "postgres", **database.options("copied"))
    sink(driver, "counted", "counts", "postgres", **database.options("counted"))
    where = {"folder": str(out), "format": "jsonl", "partition_by": "hour"}
    sink(driver, "filed", "s", "files", **where)
    driver.send([event(1, "a"), event(2, "b", 6), Event("t", {"id": 1, "name": "x"})])
    driver.send([Event("t", {"id": 2, "name": "y"}), Event("s", raw=b"{broken")])
    driver.run()
    driver.send([event(1, "c", 7), Event("t", key="1")])
    driver.run()

    def check() -> None:
        ids = [(1, "a", ["x"]), (1, "c", ["x"]), (2, "b", ["x"])]
        assert database.rows("added", "id, name, tags") == ids
        assert database.rows("upserted", "id, name") == [(1, "c"), (2, "b")]
        assert database.rows("copied") == [(2, "y")]
        assert database.rows("counted") == [("a", 1), ("b", 1), ("c", 1)]
        assert lines(out) == [("hour=05", 1), ("hour=06", 2), ("hour=07", 1)]

    check()
    assert sum(row["records"] for row in driver.rows("added")) == 3
    # all records come again, under other tokens: the targets know them
    begin_anew(driver, "added", "upserted", "copied", "counted", "filed")
    driver.run()
    check()


CLASS = """
class Notes:
    def __init__(self, options):
        self.file = open(options["file"], "a")

    def write(self, rows):
        if "bad" in rows["name"].to_pylist():
            raise ValueError("no bad names")
        for row in rows.select(["id", "name", "_deleted"]).to_pylist():
            print(*row.values(), file=self.file)

    def close(self):
        self.file.close()
"""


@pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")
def test_rows_reach_lakes_files_of_databases_and_services(
    driver: Driver, tmp_path: Path, hook: tuple[str, list[Any]]
) -> None:
    driver.apply(DECLARED)
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "notes.py").write_text(CLASS)
    sink(driver, "lake", "s", "delta", folder=str(tmp_path / "delta"), partition_by="day")
    sink(driver, "berg", "t", "iceberg", warehouse=str(tmp_path / "berg"))
    sink(driver, "duck", "t", "duckdb", file=str(tmp_path / "all.duckdb"))
    told = {"file": "connectors/notes.py", "class": "Notes", "on_error": "quarantine"}
    notes = tmp_path / "notes"
    sink(driver, "noted", "t", "python", **told, **{"'option.file'": str(notes)})
    sink(driver, "posted", "s", "http", url=hook[0])
    (tmp_path / "redis").mkdir()
    server = outside.redis(tmp_path / "redis", REDIS or "").start()
    try:
        sink(driver, "cached", "t", "redis", url=server.url)
        driver.send([event(1, "a"), event(2, "b"), Event("t", {"id": 1, "name": "x"})])
        driver.send([Event("t", {"id": 2, "name": "y"}), Event("t", {"id": 3, "name": "bad"})])
        driver.run()
        driver.send([event(3, "c"), Event("t", key="1"), Event("t", {"id": 2, "name": "z"})])
        # all records come again, under other tokens: the targets know them
        begin_anew(driver, "lake", "berg", "duck", "cached")
        driver.run()
        with redis.Redis.from_url(server.url) as client:
            cached = {key.decode(): json.loads(client.get(key)) for key in client.keys("t:*")}
    finally:
        server.stop()
    assert cached == {"t:2": {"id": 2, "name": "z"}, "t:3": {"id": 3, "name": "bad"}}
    assert lake_rows(tmp_path) == [(1, "a", 16), (2, "b", 16), (3, "c", 16)]
    rows = [(2, "z"), (3, "bad")]
    found = iceberg_table(tmp_path / "berg", "default.t").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in found) == rows
    with duckdb.connect(str(tmp_path / "all.duckdb")) as connection:
        assert connection.execute("SELECT id, name FROM t ORDER BY id").fetchall() == rows
    assert sorted(row["id"] for row in hook[1]) == [1, 2, 3]
    assert sorted(notes.read_text().splitlines()) == [
        "1 None True", "1 x False", "2 y False", "2 z False"
    ]  # fmt: skip
    [kept] = driver.quarantine()
    facts = {name: (value or b"").decode() for name, value in kept.headers}
    assert facts["object"] == "noted"
    assert facts["cause"].endswith("ValueError: no bad names")


def lake_rows(folder: Path) -> list[tuple[Any, ...]]:
    """Id, name and day of the rows of the Delta table."""
    files = deltalake.DeltaTable(str(folder / "delta")).file_uris()
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    days = {int(file.partition("date=2026-11-")[2][:2]) for file in files}
    [day] = days
    return sorted((row["id"], row["name"], day) for row in rows)


def iceberg_table(warehouse: Path, name: str) -> Any:
    from pyiceberg.catalog import load_catalog

    where = {"uri": f"sqlite:///{warehouse}/catalog.db", "warehouse": f"file://{warehouse}"}
    return load_catalog("mainstem", type="sql", **where).load_table(name)


def test_a_batch_that_was_staged_is_committed_after_a_failure(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.apply(DECLARED)
    # more than one task for a batch
    monkeypatch.setattr(writer, "SMALL_BATCH", 2)
    sink(driver, "lake", "s", "delta", folder=str(tmp_path / "delta"), partition_by="day")
    driver.send([event(id_, f"n{id_}") for id_ in range(8)])
    commit = lake.LakeCommitter.commit
    asked: list[set[str]] = []

    def away_once(committer: lake.LakeCommitter, staged: Sequence[str]) -> None:
        asked.append(set(staged))
        if len(asked) == 1:
            raise MainstemError("CONNECTOR_UNREACHABLE", what="the lake", problem="away")
        commit(committer, staged)

    monkeypatch.setattr(lake.LakeCommitter, "commit", away_once)
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "CONNECTOR_UNREACHABLE"
    driver.run()
    first, again = asked
    assert len(first) == 2, "a part for each partition"
    assert first == again, "the tokens say what was staged; nothing is staged anew"
    assert [row[0] for row in lake_rows(tmp_path)] == list(range(8))
    assert deltalake.DeltaTable(str(tmp_path / "delta")).version() == 1


def test_a_row_that_the_target_refuses_goes_to_the_quarantine(
    driver: Driver, database: Database
) -> None:
    driver.apply(SQL)
    database.run(
        f"CREATE TABLE {database.schema}.strict (id int CHECK (id > 0), name text, at timestamptz)"
    )
    sink(driver, "strict", "s", "postgres", **database.options("strict"))
    driver.send([event(1, "good"), event(-1, "bad"), event(2, "good")])
    driver.run()
    assert database.rows("strict", "id, name") == [(1, "good"), (2, "good")]
    [kept] = driver.quarantine()
    facts = {name: (value or b"").decode() for name, value in kept.headers}
    assert (facts["stage"], facts["object"], facts["code"]) == ("target", "strict", "ROW_REFUSED")
    assert "violates check constraint" in facts["cause"]
    assert json.loads(kept.value or b"")["id"] == -1


def test_a_target_that_fails_is_tried_until_it_works(
    driver: Driver, live: Callable[..., Flow], tmp_path: Path
) -> None:
    driver.apply(SQL)
    out = tmp_path / "out"
    sink(driver, "filed", "s", "files", folder=str(out / "x"), format="jsonl")
    out.write_text("no folder")
    driver.send([event(1, "a")])
    flow = live("filed")
    flow.start()

    def is_(state: FlowState) -> Callable[[], bool]:
        def seen() -> bool:
            flow.tick()
            return flow.status.state is state

        return seen

    eventually(is_(FlowState.RETRYING), SECONDS, what="the flow tells that its target fails")
    assert flow.status.error is not None
    assert flow.status.error["title"] == "TARGET_REFUSED"
    assert flow.status.next_retry is not None
    driver.send([event(2, "b")])
    out.unlink()
    eventually(is_(FlowState.RUNNING), SECONDS, what="the flow goes on")

    def all_there() -> bool:
        flow.tick()
        return [row[1] for row in lines(out)] == [1, 2]

    eventually(all_there, SECONDS, what="both rows are in files")

    def told() -> bool:
        flow.tick()
        flow.measure()
        return (flow.status.rows_out_total, flow.status.lag_records) == (2, 0)

    eventually(told, SECONDS, what="the status tells of both rows, and of no more")
    assert flow.status.error is None


def test_rows_are_transformed_on_their_way(
    driver: Driver, database: Database, tmp_path: Path
) -> None:
    driver.apply(SQL)
    done = "filter(name <> 'hidden'), rename(id, item), mask(name, partial, 1), insert(of, _object)"
    sink(driver, "copied", "t", "postgres", done, **database.options("copied"))
    salted = "drop(at, tags), mask(id, hash, '${file:secrets/url}')"
    sink(driver, "hashed", "s", "postgres", salted, **database.options("hashed", key="id"))
    out = {"folder": str(tmp_path / "out"), "format": "jsonl"}
    numbers = "filter(10 / id <= 10), cast(name, INT), drop(at, tags)"
    sink(driver, "filed", "s", "files", numbers, **out)
    driver.send([Event("t", {"id": i, "name": name}) for i, name in enumerate(["ab", "cd", "ef"])])
    driver.send([event(0, "7"), event(1, "x"), event(2, "8"), event(-1, "9"), event(2, "10")])
    driver.run()
    assert database.rows("copied") == [(0, "*b", "t"), (1, "*d", "t"), (2, "*f", "t")]
    # a row that does not pass any more is gone, like one that is deleted
    driver.send([Event("t", {"id": 1, "name": "hidden"}), Event("t", key="2")])
    driver.run()
    assert database.rows("copied") == [(0, "*b", "t")]

    salt = database.url.encode()
    hashes = {hashlib.sha256(salt + f"{id_}".encode()).hexdigest() for id_ in (0, 1, 2, -1)}
    hashed = dict(database.rows("hashed"))
    assert set(hashed) == hashes
    assert hashed[hashlib.sha256(salt + b"2").hexdigest()] == "10"

    rows = [json.loads(x) for p in Path(out["folder"]).rglob("*.jsonl") for x in p.open()]
    found = sorted((row["id"], row["name"]) for row in rows)
    assert found == [(-1, 9), (2, 8), (2, 10)]
    kept = [{n: (v or b"").decode() for n, v in record.headers} for record in driver.quarantine()]
    assert {(k["object"], k["code"], k["stage"]) for k in kept} == {
        ("filed", "TRANSFORM_FAILED", "target")
    }
    done_wrong = 'the transform {} of "filed" cannot be done with the values of the row'
    assert sorted(k["cause"] for k in kept) == [
        done_wrong.format("cast(name, INT)"),
        done_wrong.format("filter(10 / id <= 10)"),
    ]
