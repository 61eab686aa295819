"""A small stack for the proofs of `make soak`: a stream of numbers, a load on it, and few flows.

Each flow costs time whenever the engine starts, so these are not beside the large pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mainstem.cli.pipeline import definition_files
from mainstem.client import Client
from mainstem.config import Project, load_project
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.testing.faults import BatchLog, Faults, faulty_stack
from mainstem.testing.load import Load
from mainstem.testing.waiting import eventually

SECONDS = 240
NUMBERS = "CREATE STREAM numbers (k STRING, seq BIGINT, id STRING) WITH (key = 'k');\n"


@dataclass
class SmallWorld:
    """A stack with a stream of numbers, and a load on it."""

    project: Project
    faults: Faults
    client: Client
    connection: Connection
    admin: Admin
    load: Load

    def has_read_all(self, name: str) -> bool:
        """True when a flow has finished all input, and nothing is open behind it."""
        try:
            flow = next(f for f in self.client.status()["flows"] if f["flow"] == name)
            ends = [self.admin.end_offsets("numbers", committed=c) for c in (True, False)]
            made = [self.admin.end_offsets(name, committed=c) for c in (True, False)]
        except MainstemError:
            return False
        at = {int(p): offset for p, offset in flow.get("positions", {}).get("numbers", {}).items()}
        return ends == [at, at] and made[0] == made[1]

    def strike(self, flow: str, steps: tuple[str, ...]) -> None:
        """The engine dies at the first step in a fresh batch, then at each other in its replay."""
        log, batch = BatchLog(self.project, flow), "*"
        goal = log.begun() + 1
        eventually(lambda: log.finished() >= goal, SECONDS, what=f"batch {goal} of {flow}")
        for step in steps:
            self.faults.arm(step, flow, batch)
            death = self.faults.await_crash("engine")
            self.faults.await_restarting(death)
            batch = str(log.begun())
            done = log.finished()
            assert done == int(batch) - 1, f"{step} of {flow}: Spark had noted the batch as done"
            print(f"engine: died at {step} in batch {batch} of {flow}")


@contextmanager
def small_world(folder: Path, files: Mapping[str, str]) -> Iterator[SmallWorld]:
    """The stack with these files of a pipeline."""
    (folder / "mainstem.toml").write_text('name = "small"\n[kafka]\npartitions = 4\n')
    (folder / "pipeline").mkdir()
    for name, text in files.items():
        (folder / "pipeline" / name).write_text(text)
    project = load_project(folder)
    with faulty_stack(project) as faults:
        endpoints = faults.stack.endpoints
        connection = Connection(endpoints.bootstrap_servers)
        client = Client(endpoints.gateway_url)
        definitions = definition_files(project)
        plan = client.plan(definitions)
        client.apply(definitions, plan["digest"], plan["revision"])
        load = Load(connection, "numbers", per_second=500)
        world = SmallWorld(project, faults, client, connection, Admin(connection), load)
        yield world
        world.load.close()
        world.admin.close()
        client.close()
