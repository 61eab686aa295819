"""The Connect worker runs while it is asked for, and what keeps it from starting is said."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.local.test_supervise import GOOD, FakePart

from mainstem.connect.local_worker import want_plugins, worker_word
from mainstem.errors import MainstemError
from mainstem.local.on_demand import OnDemand
from mainstem.local.supervise import Event

Wait = Callable[[Callable[[], object]], None]


class Bench:
    """A worker that is a shell script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[list[str]] = []
        self.events: list[Event] = []
        self.failures: list[MainstemError] = []
        self.on_demand = OnDemand(folder, self.make, 0, self.events.append)

    def make(self, plugins: Sequence[str], give_up: threading.Event) -> FakePart:
        if self.failures:
            raise self.failures.pop()
        self.made.append(list(plugins))
        return FakePart(self.folder, GOOD)

    @property
    def running(self) -> bool:
        worker = self.on_demand.running
        return worker is not None and worker.pid is not None

    @property
    def state(self) -> str:
        return worker_word(self.folder).state


@pytest.fixture
def bench(tmp_path: Path):
    bench = Bench(tmp_path)
    yield bench
    bench.on_demand.close()
    assert not bench.running


def test_it_runs_while_it_is_wanted(bench: Bench, eventually: Wait) -> None:
    bench.on_demand.start()
    eventually(lambda: bench.state == "off")
    want_plugins(bench.folder, ["debezium-postgres"])
    eventually(lambda: bench.state == "ready")
    assert bench.running
    want_plugins(bench.folder, ["debezium-postgres", "debezium-mysql"])
    eventually(lambda: len(bench.made) == 2 and bench.state == "ready")
    assert bench.made == [["debezium-postgres"], ["debezium-postgres", "debezium-mysql"]]
    want_plugins(bench.folder, ["project"])
    eventually(lambda: len(bench.made) == 3 and bench.state == "ready")
    assert bench.made[2] == ["project"]
    want_plugins(bench.folder, [])
    eventually(lambda: bench.state == "off")
    assert not bench.running


def test_what_an_earlier_gateway_wanted_counts(bench: Bench, eventually: Wait) -> None:
    want_plugins(bench.folder, ["debezium-postgres"])
    bench.on_demand.start()
    eventually(lambda: bench.state == "ready")


def test_a_failure_is_said_and_tried_again(bench: Bench, eventually: Wait) -> None:
    bench.failures = [
        MainstemError("JAR_UNAVAILABLE", coordinate="a:b:1", problem="there is no network")
    ]
    want_plugins(bench.folder, ["debezium-postgres"])
    bench.on_demand.start()
    eventually(lambda: "there is no network" in str(worker_word(bench.folder).problem))
    eventually(lambda: bench.events)
    assert bench.events[0].kind == "died"
    eventually(lambda: bench.state == "ready")
    assert worker_word(bench.folder).problem is None


def test_a_stack_that_stops_does_not_wait_for_a_start(bench: Bench, eventually: Wait) -> None:
    begun = threading.Event()

    def make(plugins: Sequence[str], give_up: threading.Event) -> FakePart:
        begun.set()
        give_up.wait(60)
        return FakePart(bench.folder, "exec sleep 600")  # never ready

    bench.on_demand = OnDemand(bench.folder, make, 0, bench.events.append)
    want_plugins(bench.folder, ["debezium-postgres"])
    bench.on_demand.start()
    begun.wait(60)
    bench.on_demand.close()
    assert not bench.on_demand.is_alive()
