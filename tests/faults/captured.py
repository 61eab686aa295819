"""A shop's database, what is captured from it, and what sinks make of that: the proof's world."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.faults.workload import Change, Event, Workload

from mainstem.cli.pipeline import definition_files
from mainstem.client import Client
from mainstem.config import Project, load_project
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.testing.checker import CommittedTopic, change, check_rows, fold
from mainstem.testing.faults import Death, Faults, faulty_stack
from mainstem.testing.outside import OutsideServer
from mainstem.testing.source_postgres import SourcePostgres
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Record

SECONDS = 240
CHANGES = "shop.public.things"
PIPELINE = """
CREATE SOURCE shop WITH (
  connector = 'postgres-cdc', url = '${{env:SHOP_URL}}', tables = 'things', outbox = 'outbox',
  heartbeat = '1 second', commits = 'true');
CREATE SINK copies FROM shop_things WITH (
  connector = 'postgres', url = '${{env:COPIES_URL}}', table = 'copies.things',
  trigger = '1 second');
CREATE SINK filed FROM shop_things WITH (
  connector = 'files', folder = '{folder}', format = 'jsonl', trigger = '1 second');
{more}
"""
SINKS = ("copies.1", "filed.1")


Rows = Callable[[], dict[int, dict[str, Any]]]
"""The rows that a target has, by id, without the `price`: numbers are texts of their own there."""


@dataclass
class CapturedWorld:
    """The stack, the database that it captures from, and who changes that."""

    project: Project
    faults: Faults
    client: Client
    connection: Connection
    admin: Admin
    shop: SourcePostgres
    workload: Workload
    chance: random.Random
    folder: Path
    changes: CommittedTopic[tuple[str, str | None, Change]]
    rows: CommittedTopic[Any]
    outside: dict[str, tuple[OutsideServer, Rows]]
    """More targets, by the name of their sink."""
    kills: Counter[str] = field(default_factory=Counter)

    def apply(self) -> None:
        """Looks into the source again, as `mainstem apply` does."""
        files = definition_files(self.project)
        plan = self.client.plan(files)
        self.client.apply(files, plan["digest"], plan["revision"])

    def take_column(self, name: str) -> None:
        """Applies until the catalog has a column that the source got."""

        def taken() -> bool:
            try:
                self.apply()
                found = self.client.object("shop_things")["columns"]
            except MainstemError:  # somebody is dead
                return False
            return name in [column["name"] for column in found]

        eventually(taken, SECONDS, every=0.5, what=f"column {name}")

    def kill(self, part: str) -> Death | None:
        """Kills a part of the stack, or the source, which is started again at once."""
        self.kills[part] += 1
        print(f"{part}: killed with {len(self.workload.changes):,} changes")
        server = self.shop if part == "source" else self.outside.get(part, (None,))[0]
        if server is not None:
            server.kill()
            server.start()
            return None
        name: Any = part
        eventually(lambda: self.faults.stack.pid(name), SECONDS, what=f"{part} runs")
        return self.faults.kill(name)

    def crash(self, step: str, flow: str) -> Death:
        """The engine dies at a step of a flow."""
        self.faults.arm(step, flow)
        death = self.faults.await_crash("engine")
        self.kills["engine"] += 1
        print(f"engine: died at {step} of {flow}")
        self.faults.await_restarting(death)
        return death

    # -- the check

    def check(self) -> str:
        """Everything has come through, once and in order: in words how much it was."""
        wanted = self.workload.rows()
        problems: list[str] = []

        def through() -> bool:
            problems[:] = self._rows_differ(wanted)
            return not problems

        try:
            eventually(through, SECONDS, every=1.0)
        except AssertionError:
            raise AssertionError("\n".join([*problems, *self._states()])) from None
        problems[:] = [
            *self._changes_differ(),
            *self._files_differ(),
            *self._events_differ(),
            *self._commits_differ(),
        ]
        quarantine = self.client.status()["quarantine"]["records"]
        if quarantine:
            problems.append(f"quarantined: {quarantine}")
        assert not problems, "\n".join(problems)
        kills = ", ".join(f"{count} {part}" for part, count in sorted(self.kills.items()))
        return (
            f"captured: {len(self.workload.changes):,} changes, {len(wanted):,} rows,"
            f" {len(self.workload.events):,} events of the outbox, kills: {kills}; none lost,"
            " none doubled, table and sinks are the source's rows"
        )

    def _rows_differ(self, wanted: dict[int, dict[str, Any]]) -> list[str]:
        columns = list(next(iter(wanted.values())))
        try:
            answer = self.client.sql(f"SELECT {', '.join(columns)} FROM shop_things")
        except MainstemError as error:
            return [str(error)]
        names = [column["name"] for column in answer["columns"]]
        served = [dict(zip(names, row, strict=True)) for row in answer["rows"]]
        with psycopg.connect(os.environ["COPIES_URL"]) as connection:
            cursor = connection.execute("SELECT * FROM copies.things")
            names = [column.name for column in cursor.description or ()]
            copied = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        expected = {id: _plain(row) for id, row in wanted.items()}
        problems = []
        for where, rows in (
            ("the topic of shop_things", fold(self.rows.look()).values()),
            ("the served shop_things", served),
            ("the sink's table", copied),
        ):
            # a row that was written before a column came does not name it
            whole = ({**dict.fromkeys(columns), **row} for row in rows)
            problems += check_rows(where, expected, {row["id"]: _plain(row) for row in whole})
        bare = {id: {k: v for k, v in row.items() if k != "price"} for id, row in wanted.items()}
        for name, (_, found) in self.outside.items():
            problems += check_rows(f"the target of {name}", bare, found())
        return problems

    def _changes_differ(self) -> list[str]:
        """The stream of changes: each one once, behind what there was when it began."""
        [found] = self.changes.look().values()
        told = [each for op, _, each in found if op != "r"]
        wanted = self.workload.changes
        cut = len(wanted) - len(told)
        if told != wanted[cut:]:
            at = next((i for i, pair in enumerate(zip(told, wanted[cut:], strict=False))
                       if pair[0] != pair[1]), -1)  # fmt: skip
            return [
                f"{len(told)} changes of {len(wanted)}; the first that differs is {at}:"
                f" {told[at : at + 3]}, not {wanted[cut:][at : at + 3]}"
            ]
        # what a snapshot reads while changes come may be newer than where these begin
        positions = [position for op, position, _ in found if op == "r"]
        last = positions[-1] if positions else None
        read = [each for op, position, each in found if op == "r" and position == last]
        known = {(each.id, each.version) for each in wanted[cut:]} | _rows_at(wanted[:cut])
        strange = [each for each in read if (each.id, each.version) not in known]
        twice = [each for each, count in Counter(read).items() if count > 1]
        print(f"{len(positions):,} rows read in {len(set(positions))} snapshots, cut at {cut:,}")
        return [f"not there any more, or not yet: {strange[:5]}"] * bool(strange) + [
            f"read twice in one snapshot: {twice[:5]}"
        ] * bool(twice)

    def _files_differ(self) -> list[str]:
        """The files of the sink: each record of the table's topic is a row of one file."""
        wanted = Counter(
            _text({**(json.loads(key) if row is None else row), "_deleted": row is None})
            for records in self.rows.look().values()
            for key, row in records
        )
        found: Counter[str] = Counter()

        def whole() -> bool:
            files = [f for f in self.folder.rglob("*.jsonl") if not f.name.startswith(".")]
            found.clear()
            for file in files:
                found.update(_text(json.loads(line)) for line in file.read_text().splitlines())
            return found.total() >= wanted.total()

        try:
            eventually(whole, SECONDS, every=1.0, what="all files")
        except AssertionError as error:
            return [str(error), f"{found.total()} of {wanted.total()} rows are in files"]
        lost, more = wanted - found, found - wanted
        return [f"lost in files: {[*lost][:3]}"] * bool(lost) + [
            f"more than once in files, or never sent: {[*more][:3]}"
        ] * bool(more)

    def _events_differ(self) -> list[str]:
        """The topics of the outbox: each event once, those of a key in their order.

        Those before the first change that was captured were gone by then.
        """
        wanted = self.workload.events
        changes = self.workload.changes
        [found] = self.changes.look().values()
        cut = len(changes) - sum(op != "r" for op, _, _ in found)
        before = max((each.version or 0 for each in changes[:cut]), default=0)
        behind = min((e.version for e in changes[cut:] if e.version), default=0)
        topics = [
            CommittedTopic(self.connection, f"shop.outbox.{kind}", _event)
            for kind in ("order", "refund")
        ]

        def told() -> list[Event]:
            return [e for topic in topics for some in topic.look().values() for e in some]

        surely = sum(event.id > behind for event in wanted)
        try:
            eventually(lambda: len(told()) >= surely, SECONDS, every=1.0, what="all events")
        except AssertionError as error:
            return [str(error), f"{len(told())} of {surely} events"]
        expected = wanted[len(wanted) - len(told()) :]
        problems = check_rows("the events", _by_key(expected), _by_key(told()))
        if any(event.id < before for event in expected):
            problems.append("events that were gone before the source began")
        return problems

    def _commits_differ(self) -> list[str]:
        """The transactions: each has ended once, with as many changes as are in the log."""
        topics = [
            CommittedTopic(self.connection, topic, _transaction)
            for topic in (CHANGES, "shop.public.outbox", "shop.transaction")
        ]
        changes: Counter[str] = Counter()
        begun: Counter[str] = Counter()
        ends: dict[str, list[int]] = {}

        def all_ended() -> bool:
            *tables, marks = [next(iter(topic.look().values()), []) for topic in topics]
            changes.clear()
            changes.update(number for table in tables for number, _ in table if number)
            begun.clear()
            ends.clear()
            for number, count in marks:
                if count is None:
                    begun[str(number)] += 1
                elif count:
                    ends.setdefault(str(number), []).append(count)
            return changes.keys() <= ends.keys()

        try:
            eventually(all_ended, SECONDS, every=1.0)
        except AssertionError:
            return [f"without an end: {sorted(changes.keys() - ends.keys())[:5]}"]
        # one that was begun again, behind a crash, may count from there on
        wanted = {number: [count] for number, count in changes.items() if begun[number] == 1}
        again = {number: found for number, found in ends.items() if begun[number] > 1}
        print(f"{len(wanted):,} transactions, {len(again)} of them begun again: {again}")
        once = {number: found for number, found in ends.items() if number not in again}
        problems = check_rows("the ends of transactions", wanted, once)
        more = [n for n, found in again.items() if len(found) > 1 or found[0] > changes[n]]
        return problems + [f"more changes than there are: {more}"] * bool(more)

    def _states(self) -> list[str]:
        """For whoever reads why it failed."""
        try:
            flows = self.client.status()["flows"]
            connectors = self.client.connectors()
        except MainstemError as error:
            return [str(error)]
        said = [f"{f['flow']} {f['state']} {f.get('error')} {f.get('positions')}" for f in flows]
        return [*said, json.dumps(connectors)[:2000]]


@contextmanager
def captured_world(
    folder: Path,
    seed: int,
    rows: int,
    more: str = "",
    outside: dict[str, tuple[OutsideServer, Rows]] | None = None,
) -> Iterator[CapturedWorld]:
    """The stack, running, before anything is applied."""
    (folder / "shop").mkdir()
    shop = SourcePostgres(folder / "shop").start()
    files = folder / "files"
    (folder / "mainstem.toml").write_text('name = "captured"\n[kafka]\npartitions = 2\n')
    (folder / "pipeline").mkdir()
    (folder / "pipeline" / "all.sql").write_text(PIPELINE.format(folder=files, more=more))
    workload = Workload(shop.url(), random.Random(seed), rows)
    with psycopg.connect(shop.url()) as connection:
        connection.execute("CREATE SCHEMA copies")
    project = load_project(folder)
    urls = {"SHOP_URL": shop.url(), "COPIES_URL": shop.url()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in urls.items():
            patch.setenv(name, value)
        with faulty_stack(project) as faults:
            endpoints = faults.stack.endpoints
            connection = Connection(endpoints.bootstrap_servers)
            world = CapturedWorld(
                project,
                faults,
                Client(endpoints.gateway_url),
                connection,
                Admin(connection),
                shop,
                workload,
                random.Random(seed),
                files,
                CommittedTopic(connection, CHANGES, _told),
                CommittedTopic(connection, "shop_things", change),
                outside or {},
            )
            yield world
            world.admin.close()
            world.client.close()
    workload.close()
    shop.remove()


def _told(record: Record) -> tuple[str, str | None, Change]:
    """A record of the changes: operation, position, and what was changed."""
    payload = json.loads(record.value or b"{}")["payload"]
    row = payload["after"] or payload["before"] or {}
    version = row.get("version") if payload["after"] else None
    return payload["op"], payload["source"]["lsn"], Change(payload["op"], row.get("id"), version)


def _transaction(record: Record) -> tuple[str | None, int | None]:
    """The transaction of a change; or one that begins, or ends: with how many changes it had."""
    payload = json.loads(record.value or b"{}")["payload"]
    if "op" in payload:
        return None if payload["op"] == "r" else str(payload["source"]["txId"]), None
    return payload["id"].partition(":")[0], payload["event_count"]


def _event(record: Record) -> Event:
    """An event of the outbox in its topic."""
    id = json.loads(record.value or b"{}")["n"]
    headers = dict(record.headers)
    assert headers == {"id": str(id).encode(), "type": b"made"}
    return Event(record.topic.rpartition(".")[2], (record.key or b"").decode(), id)


def _by_key(events: Iterable[Event]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in events:
        found.setdefault(f"{event.kind} {event.key}", []).append(event.id)
    return found


def _rows_at(changes: list[Change]) -> set[tuple[int | None, int | None]]:
    """Id and version of the rows that some changes have left."""
    rows: dict[int | None, int | None] = {}
    for each in changes:
        match each.op:
            case "t":
                rows.clear()
            case "d":
                del rows[each.id]
            case _:
                rows[each.id] = each.version
    return set(rows.items())


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    price = row["price"]
    return {**row, "price": None if price is None else Decimal(str(price)).normalize()}


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)
