"""Connectors follow what is wanted, whatever Connect, the source or a crash does meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.connect.fake_connect import URL, FakeConnect

from mainstem.connect.care import Care, Surroundings
from mainstem.connect.carrier import Around, Carrier, Offsets, PutAway, Wanted
from mainstem.connect.client import ConnectClient
from mainstem.connect.debezium_common import own_topics
from mainstem.connect.keeper import Keeper
from mainstem.connect.kept_secrets import KeptSecrets
from mainstem.connect.local_worker import LocalWorker, Worker, WorkerElsewhere, wanted_plugins
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

NAME = "mainstem.shop.orders"
ORDERS = Wanted(
    "orders",
    1,
    "db",
    {"password": "${env:P}"},
    ("public.orders",),
    ("t",),
    location=SourceLocation("shop.sql", 3, 1, "CREATE SOURCE orders"),
)


@dataclass
class System:
    """What the system of the source says of its reader."""

    confirmed: str | None = "0/1"
    held_bytes: int = 0
    problem: str | None = None
    away: bool = False
    removed: list[str] = field(default_factory=list)

    def state(self, name: str, options: Mapping[str, Any], offsets: Offsets) -> System:
        return replace(self)

    def remove(self, name: str, options: Mapping[str, Any]) -> None:
        if self.away:
            raise MainstemError("CONNECTOR_UNREACHABLE", what=name, problem="refused")
        self.removed.append(f"{name} {options['password']}")


class Topics:
    """The log."""

    def __init__(self) -> None:
        self.away = False
        self.there: set[str] = set()
        self.records = 0
        self.values: dict[str, list[bytes]] = {}
        self.forgotten: dict[str, dict[int, int]] = {}

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        self.values.setdefault(topic, []).append(value)

    def read(self, topic: str, start: int) -> tuple[list[bytes], int]:
        values = self.values.get(topic, [])
        return values[start:], len(values)

    def make(self, topic: str, *, forever: bool) -> None:
        self.there.add(topic)

    def remove(self, topic: str) -> None:
        self.there.discard(topic)

    def forget(self, topic: str, before: Mapping[int, int]) -> None:
        self.forgotten[topic] = dict(before)

    def written(self, topics: Sequence[str]) -> int:
        if self.away:
            raise MainstemError("LOG_FAILED", act="the offsets", problem="away")
        return self.records


def config(
    name: str,
    options: Mapping[str, Any],
    tables: Sequence[str],
    put_away: PutAway,
    around: Around,
) -> dict[str, str]:
    return {
        "connector.class": "org.x.Y",
        "topic.prefix": name,
        "topic.heartbeat.prefix": "beats",
        "tables": ",".join(tables),
        "table.include.list": ",".join(map(re.escape, tables)),
        "signal.kafka.topic": "signals",
        "notification.sink.topic.name": "notices",
        "password": put_away("password", options["password"]),
    }


class Bench:
    """A keeper whose thread is the test's own, and all that it talks to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = FakeConnect()
        self.system = System()
        self.topics = Topics()
        self.wanted: dict[str, Wanted] = {}
        self.password = "p1"
        self.now = 0.0
        self.begin()

    def begin(self, worker: Worker | None = None) -> None:
        """A new gateway: it knows nothing of the one before."""
        carrier = Carrier("debezium-x", config, self.system.state, self.system.remove, own_topics)
        at = Surroundings(
            ConnectClient(URL, mask=self.mask, transport=self.cluster.transport),
            KeptSecrets(self.folder / "secrets"),
            lambda connector: carrier,
            lambda wanted: {"password": self.password},
            self.mask,
            self.topics,
            clock=lambda: self.now,
        )
        worker = worker or LocalWorker(self.folder)
        self.keeper = Keeper("shop", lambda: dict(self.wanted), at, worker)

    def mask(self, text: str) -> str:
        return text.replace(self.password, "***")

    def look(self, times: int = 1, seconds: float = 1.0) -> None:
        for _ in range(times):
            self.keeper.look()
            for job in self.keeper._jobs.values():
                job.result(10)
            self.now += seconds

    @property
    def care(self) -> Care:
        return self.keeper.care("Orders")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def running(bench: Bench) -> Bench:
    bench.wanted = {"orders": ORDERS}
    bench.look(2)
    bench.cluster.asked.clear()
    assert bench.care.error is None
    return bench


def test_without_sources_connect_is_left_alone(bench: Bench) -> None:
    bench.look(3)
    assert bench.cluster.asked == []
    assert wanted_plugins(bench.folder) == frozenset()


def test_a_connector_is_made(bench: Bench) -> None:
    bench.wanted = {"orders": ORDERS}
    bench.look()
    assert wanted_plugins(bench.folder) == {"debezium-x"}
    made = bench.cluster.made[NAME].config
    file = bench.folder / "secrets" / "orders.properties"
    assert made["password"] == f"${{file:{file}:password}}"
    assert file.read_text() == "password=p1\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "p1" not in str(made)
    assert bench.topics.there == {"beats.orders", "signals", "notices"}
    assert bench.cluster.changes == ["POST /connectors"]
    bench.look(5)
    assert bench.cluster.changes == []
    bench.begin()
    bench.look(5)
    assert bench.cluster.changes == []


def test_connect_is_waited_for(bench: Bench) -> None:
    bench.wanted = {"orders": ORDERS}
    bench.cluster.answers = [httpx2.ConnectError("refused") for _ in range(3)]
    bench.look(3)
    assert bench.keeper.problem is not None
    assert bench.keeper.problem.code == "CONNECT_UNREACHABLE"
    assert bench.care.found is None
    bench.look()
    assert bench.keeper.problem is None
    assert NAME in bench.cluster.made


def test_what_connect_refuses_is_said_and_tried_again(bench: Bench) -> None:
    bench.wanted = {"orders": ORDERS}
    bench.cluster.complaints = {"tables": "p1 is none"}
    bench.look()
    assert bench.care.error is not None
    assert bench.care.error.code == "CONNECTOR_INVALID"
    assert "p1" not in bench.care.error.render()
    assert bench.care.error.render().startswith("shop.sql:3:1: CONNECTOR_INVALID")
    bench.cluster.asked.clear()
    bench.look(20)
    tried = [asked for asked in bench.cluster.asked if "validate" in asked]
    assert 3 <= len(tried) <= 5, "the pauses do not grow"
    bench.cluster.complaints = {}
    bench.wanted["orders"] = replace(ORDERS, tables=("public.orders", "public.more"))
    bench.look()
    assert bench.cluster.made[NAME].config["tables"] == "public.orders,public.more"


def test_nothing_is_said_to_run_while_connect_is_away(running: Bench) -> None:
    assert running.care.found is not None
    running.cluster.answers = [httpx2.ConnectError("refused")]
    running.look()
    assert running.care.found is None
    running.cluster.answers = [httpx2.Response(200, json={}), httpx2.ConnectError("refused")]
    running.look()
    assert running.care.error is None
    running.look()
    assert running.care.found is not None


def test_a_change_is_given_to_the_connector(running: Bench) -> None:
    running.wanted["orders"] = replace(ORDERS, options={**ORDERS.options, "heartbeat": "1 minute"})
    running.look(3)
    assert running.cluster.changes == [f"PUT /connectors/{NAME}/config"]


def test_what_somebody_else_changed_is_put_right(running: Bench) -> None:
    running.cluster.made[NAME].config["tables"] = "other"
    running.look(2)
    assert running.cluster.made[NAME].config["tables"] == "public.orders"


def test_a_new_password_starts_it_again(running: Bench) -> None:
    running.password = "p2"
    running.look(3)
    restart = f"POST /connectors/{NAME}/restart?includeTasks=true&onlyFailed=false"
    assert running.cluster.changes == [restart]


def test_pause_and_resume(running: Bench) -> None:
    running.wanted["orders"] = replace(ORDERS, paused=True)
    running.look(3)
    assert running.cluster.changes == [f"PUT /connectors/{NAME}/stop"]
    running.wanted["orders"] = ORDERS
    running.look(3)
    assert running.cluster.changes == [f"PUT /connectors/{NAME}/resume"]


def test_one_that_is_paused_from_the_beginning_never_runs(bench: Bench) -> None:
    bench.wanted = {"orders": replace(ORDERS, paused=True)}
    bench.look(3)
    assert bench.cluster.made[NAME].state == "STOPPED"
    assert bench.cluster.changes == ["POST /connectors"]


def test_failed_tasks_are_started_again_with_growing_pauses(running: Bench) -> None:
    made = running.cluster.made[NAME]
    for _ in range(60):
        made.task, made.trace = "FAILED", "a.b.C: it broke"
        running.look()
    assert 5 <= running.care.restarts <= 7
    assert running.care.error is not None
    assert running.care.error.code == "CONNECTOR_FAILED"
    assert "it broke" in running.care.error.message
    made.task, made.trace = "RUNNING", None
    running.look(70)
    assert running.care.error is None
    assert running.care.last_error is not None
    before = running.care.restarts
    running.look(150)  # long enough for the pauses to be short again
    for _ in range(2):
        made.task, made.trace = "FAILED", "a.b.C: it broke"
        running.look(2)
    assert running.care.restarts == before + 2


def test_a_person_need_not_wait_for_the_pause(running: Bench) -> None:
    made = running.cluster.made[NAME]
    for _ in range(30):
        made.task = "FAILED"
        running.look()
    running.cluster.asked.clear()
    running.care.restart(only_failed=False)
    running.look()
    assert running.care.error is None
    assert len(running.cluster.changes) == 1


def test_a_lost_slot_is_said_and_not_passed_over(running: Bench) -> None:
    running.cluster.made[NAME].offsets = [{"partition": {}, "offset": {}}]
    running.system.problem = "the slot is gone"
    running.cluster.made[NAME].task = "FAILED"
    running.look(30)
    assert running.care.error is not None
    assert "the slot is gone" in running.care.error.message
    assert running.cluster.changes == []
    assert running.care.restarts == 0


def test_a_slot_that_is_not_there_yet_is_not_lost(running: Bench) -> None:
    running.system.problem = "the slot is gone"
    running.look(30)
    assert running.care.error is None


def test_what_was_seen_before_the_first_change_does_not_count(running: Bench) -> None:
    running.system.problem = "the slot is gone"
    running.look(12)
    running.system.problem = None
    running.cluster.made[NAME].offsets = [{"partition": {}, "offset": {}}]
    running.look(1)
    assert running.care.last_error is None


def test_a_stuck_connector_is_started_again(running: Bench) -> None:
    for _ in range(20):
        running.system.held_bytes += 1000
        running.look(seconds=10)
    assert running.care.restarts == 1
    assert running.care.last_error is not None
    assert running.care.last_error.code == "CONNECTOR_STUCK"


@pytest.mark.parametrize("sign", ["records", "confirmed", "nothing to read"])
def test_progress_is_not_stuck(running: Bench, sign: str) -> None:
    for step in range(40):
        if sign == "records":  # as in a snapshot, which confirms nothing
            running.topics.records += 1
        if sign == "confirmed":
            running.system.confirmed = f"0/{step}"
        if sign != "nothing to read":
            running.system.held_bytes += 1000
        running.look(seconds=10)
    assert running.care.restarts == 0
    assert running.care.error is None


def test_a_log_that_is_away_is_no_fault_of_the_connector(running: Bench) -> None:
    running.topics.away = True
    for _ in range(20):
        running.system.held_bytes += 1000
        running.look(seconds=10)
    assert (running.care.restarts, running.care.last_error) == (0, None)


def test_a_dropped_source_leaves_nothing(running: Bench) -> None:
    running.cluster.made["somebody.else"] = running.cluster.made[NAME]
    running.wanted.clear()
    running.look(3)
    assert running.cluster.changes == [
        f"PUT /connectors/{NAME}/stop",
        f"DELETE /connectors/{NAME}/offsets",
        f"DELETE /connectors/{NAME}",
    ]
    assert list(running.cluster.made) == ["somebody.else"]
    assert running.system.removed == ["orders p1"]
    assert running.topics.there == set()
    assert not list((running.folder / "secrets").iterdir())
    assert wanted_plugins(running.folder) == frozenset()
    assert running.keeper.cares() == {}


def test_dropped_while_no_gateway_ran(running: Bench) -> None:
    running.wanted.clear()
    running.begin()
    running.look(3)
    assert running.cluster.made == {}
    assert running.system.removed == ["orders p1"]
    assert wanted_plugins(running.folder) == frozenset()


def test_a_cluster_elsewhere_is_looked_at_once_more_and_then_left_alone(running: Bench) -> None:
    running.wanted.clear()
    running.begin(WorkerElsewhere())
    assert running.keeper.worker.state == "elsewhere"
    running.look(3)
    assert running.cluster.made == {}
    running.cluster.asked.clear()
    running.look(3)
    assert running.cluster.asked == []
    running.wanted = {"orders": ORDERS}
    running.look()
    assert NAME in running.cluster.made


def test_a_system_that_is_away_is_cleaned_later(running: Bench) -> None:
    running.system.away = True
    running.wanted.clear()
    running.look(10)
    assert running.care.wanted is None
    assert running.care.error is not None
    assert running.care.error.code == "CONNECTOR_UNREACHABLE"
    assert wanted_plugins(running.folder) == {"debezium-x"}
    running.begin()  # a crash in the middle of it
    running.system.away = False
    running.look(10)
    assert running.cluster.made == {}
    assert running.system.removed == ["orders p1"]


def test_a_person_may_leave_what_cannot_be_cleaned(running: Bench) -> None:
    running.system.away = True
    running.wanted.clear()
    running.look(10)
    running.care.leave()
    running.look(2)
    assert running.cluster.made == {}
    assert running.system.removed == []


def test_another_source_of_the_same_name_begins_anew(running: Bench) -> None:
    running.cluster.made[NAME].offsets = [{"partition": {}, "offset": {}}]
    running.wanted["orders"] = replace(ORDERS, identity=2)
    running.look(4)
    assert running.cluster.changes == [
        f"PUT /connectors/{NAME}/stop",
        f"DELETE /connectors/{NAME}/offsets",
        f"DELETE /connectors/{NAME}",
        "POST /connectors",
    ]
    assert running.cluster.made[NAME].offsets == []
    assert running.system.removed == ["orders p1"]


def test_unknown_connectors_are_named(running: Bench) -> None:
    with pytest.raises(MainstemError) as raised:
        running.keeper.care("order")
    assert raised.value.code == "CONNECTOR_UNKNOWN"
    assert "orders" in raised.value.hint


MORE = replace(ORDERS, tables=("public.orders", "public.more"))


def test_a_table_is_added_while_no_task_runs(running: Bench) -> None:
    """A new gateway at any moment goes on, and asks for the rows once."""
    running.wanted["orders"] = MORE
    seen: list[str] = []
    for _ in range(6):
        running.begin()
        running.look()
        seen += running.cluster.changes
        running.cluster.asked.clear()
    assert [change.split("/")[-1] for change in seen] == ["stop", "config", "resume"]
    [asked] = running.topics.values["signals"]
    assert json.loads(asked)["table"] == "public.more"
    running.look(12)
    assert running.care.snapshots() == {"public.more": "running"}
    assert running.cluster.changes == []


def test_a_table_that_comes_back_is_read_again(running: Bench) -> None:
    for wanted in (MORE, ORDERS, MORE):
        running.wanted["orders"] = wanted
        running.look(6)
    tables = [json.loads(value)["table"] for value in running.topics.values["signals"]]
    assert tables == ["public.more", "public.more"]


def test_a_snapshot_that_failed_is_said(running: Bench) -> None:
    running.care.snapshot(["public.orders"])
    [asked] = running.topics.values["signals"]
    told = {"id": json.loads(asked)["id"], "type": "TABLE_SCAN_COMPLETED"}
    told["additional_data"] = {"status": "UNKNOWN_SCHEMA"}
    running.topics.send("notices", b"", json.dumps({"payload": told}).encode())
    running.look(12)
    assert running.care.error is not None
    assert running.care.error.code == "SNAPSHOT_FAILED"


def test_what_a_sink_has_taken_is_forgotten(bench: Bench) -> None:
    taken = {
        "partition": {"kafka_topic": "t", "kafka_partition": 0},
        "offset": {"kafka_offset": 5},
    }
    for role, wanted in ((Role.SOURCE, {}), (Role.SINK, {"t": {0: 5}})):
        bench.wanted["orders"] = replace(ORDERS, role=role)
        bench.look(2)
        bench.cluster.made[NAME].offsets = [taken]
        bench.look(2, seconds=20)
        assert bench.topics.forgotten == wanted


def test_no_secret_is_left_of_one_that_was_refused(bench: Bench) -> None:
    bench.wanted["orders"] = ORDERS
    bench.cluster.complaints = {"host": "nobody there"}
    bench.look(2)
    assert bench.care.error is not None
    assert [file.name for file in (bench.folder / "secrets").iterdir()] == ["orders.properties"]
    bench.wanted.clear()
    bench.look(2)
    assert not list((bench.folder / "secrets").iterdir())
