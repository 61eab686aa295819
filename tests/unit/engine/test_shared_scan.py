"""Flows that share a scan: who gets which records, and who leaves when something goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from mainstem.catalog.entry import Entry
from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.batch_log import BatchLog
from mainstem.engine.member import Member, together
from mainstem.engine.pacing import Pacer
from mainstem.engine.progress import Progress
from mainstem.engine.shared_plan import Made, SharedPlan
from mainstem.engine.shared_scan import SharedScan
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets, Record


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


STREAM = made("CREATE STREAM s (k STRING)")


class FakeLog:
    """Positions in memory."""

    epoch = "epoch"

    def __init__(self, position: Offsets, last: int = 4) -> None:
        self.position, self.last = position, last
        self.begun: Offsets | None = None

    @property
    def next(self) -> int:
        return self.last + 1

    def begin(self, end: Offsets) -> None:
        self.begun = end

    def done(self) -> None:
        assert self.begun is not None
        self.position, self.begun, self.last = self.begun, None, self.next


class FakeMember(Member):
    """Keeps what it would write."""

    def __init__(self, name: str, position: Offsets, fails: bool = False) -> None:
        entry = Entry(made(f"CREATE STREAM {name} AS SELECT k FROM s"), "f")
        self.seen: list[Progress] = []
        super().__init__(entry, cast("BatchLog", FakeLog(position)), self.seen.append)
        self.fails = fails
        self.wrote: list[bytes] = []

    def write(self, rows: pa.Table | None, connection: Connection) -> None:
        if self.fails:
            raise OSError("the topic is gone")
        self.wrote += [] if rows is None else rows.column("value").to_pylist()
        self.log.done()


class FakePlan:
    """Every flow makes a row of every record; the flow `broken` does not get that far."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def make(self, flows: Sequence[Definition], records: Sequence[Record]) -> Made:
        self.calls.append([flow.name for flow in flows])
        if "broken" in self.calls[-1]:
            raise ArithmeticError("division by zero")
        values = [record.value for record in records]
        table = pa.table({"key": values, "value": values})
        return Made([table for _ in flows], bad=1)


class World:
    """A scan without its thread."""

    def __init__(self, *members: FakeMember) -> None:
        self.begins = {0: 0, 1: 0}
        self.plan = FakePlan()
        machinery: Any = SimpleNamespace(
            settings=SparkSettings(),
            connection=Connection("nowhere:1"),
            admin=SimpleNamespace(begin_offsets=lambda _: self.begins),
        )
        plan = cast("SharedPlan", self.plan)
        self.scan = SharedScan(STREAM, plan, machinery, Pacer(2))
        self.scan._members = [*members]

    def pass_on(self, records: Sequence[Record], ends: Offsets) -> bool:
        return self.scan._pass_on(records, ends)

    @property
    def members(self) -> list[str]:
        return [member.definition.name for member in self.scan._members]


def record(partition: int, offset: int) -> Record:
    return Record("s", partition, offset, None, b"%d/%d" % (partition, offset), 1000 + offset)


def test_flows_that_stand_together_go_together() -> None:
    a, b, c = (FakeMember(n, p) for n, p in (("a", {0: 3}), ("b", {0: 3}), ("c", {0: 9})))
    assert together([a, b, c], {0: 7}) == [([a, b], {0: 3}, {0: 7})]
    assert together([a, b, c], {0: 12}) == [([a, b], {0: 3}, {0: 12}), ([c], {0: 9}, {0: 12})]
    assert together([c], {0: 9}) == []


def test_a_flow_that_has_just_joined_gets_what_it_has_not_seen() -> None:
    old, new = FakeMember("old", {0: 5, 1: 2}), FakeMember("new", {0: 4, 1: 3})
    world = World(old, new)
    records = [record(0, 4), record(0, 5), record(1, 2), record(1, 3)]
    assert world.pass_on(records, {0: 6, 1: 4})
    assert old.wrote == [b"0/5", b"1/2", b"1/3"]
    assert new.wrote == [b"0/4", b"0/5", b"1/3"]
    assert old.log.position == new.log.position == {0: 6, 1: 4}
    assert world.pass_on([record(0, 6)], {0: 7, 1: 4})
    assert world.plan.calls[-1] == ["old", "new"]


def test_each_flow_is_told_of_its_own_batch() -> None:
    member = FakeMember("a", {0: 5, 1: 2})
    World(member).pass_on([record(0, 5), record(1, 2)], {0: 6, 1: 3})
    [seen] = member.seen
    assert (seen.batch_id, seen.input_rows) == (5, 2)
    assert seen.observed == {"intake of s": {"bad": 1, "newest": 1005}}
    assert (seen.sources[0].start, seen.sources[0].end) == (
        {"s": {0: 5, 1: 2}},
        {"s": {0: 6, 1: 3}},
    )


def test_without_records_only_the_position_moves() -> None:
    member = FakeMember("a", {0: 5, 1: 2})
    world = World(member)
    assert not world.pass_on([], {0: 5, 1: 2})
    assert world.pass_on([], {0: 6, 1: 2})
    assert (member.log.position, world.plan.calls) == ({0: 6, 1: 2}, [])


def test_a_flow_whose_query_fails_leaves_and_the_others_go_on() -> None:
    a, broken, c = (FakeMember(name, {0: 0, 1: 0}) for name in ("a", "broken", "c"))
    world = World(a, broken, c)
    assert world.pass_on([record(0, 0)], {0: 1, 1: 0})
    assert (a.wrote, broken.wrote, c.wrote) == ([b"0/0"], [], [b"0/0"])
    assert world.members == ["a", "c"]
    assert not broken.active
    # its checkpoint says that the batch was begun: its query runs it again
    assert (broken.log.begun, broken.log.last) == ({0: 1, 1: 0}, 4)


def test_a_flow_that_cannot_write_leaves_and_the_others_go_on() -> None:
    a, b = FakeMember("a", {0: 0, 1: 0}, fails=True), FakeMember("b", {0: 0, 1: 0})
    world = World(a, b)
    assert world.pass_on([record(0, 0)], {0: 1, 1: 0})
    assert (world.members, b.wrote) == (["b"], [b"0/0"])


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ({0: 4, 1: 0}, {0: 6, 1: 2}),  # records were deleted unread
        ({0: 0, 1: 0, 2: 0}, {0: 6, 1: 2}),  # a partition more
        ({0: 0, 1: 0}, {0: 1, 1: 2}),  # another topic of that name, from its beginning
    ],
)
def test_a_topic_that_is_not_what_it_was_ends_the_scan(begins: Offsets, ends: Offsets) -> None:
    member = FakeMember("a", {0: 3, 1: 2})
    world = World(member)
    world.begins = dict(begins)
    with pytest.raises(RuntimeError, match="the log begins at"):
        world.pass_on([record(0, 0)], ends)
    assert member.wrote == []


def test_a_batch_that_a_flow_alone_would_divide_is_not_written() -> None:
    member = FakeMember("a", {0: 0, 1: 0})
    with pytest.raises(RuntimeError, match="one task"):
        World(member).pass_on([record(0, 20_000)], {0: 20_001, 1: 0})
    assert member.log.begun is None


def test_flows_leave_between_batches_and_the_scan_ends_with_the_last_one() -> None:
    member = FakeMember("a", {0: 0, 1: 0})
    world = World(member)
    member.leaving = True
    assert world.scan._admit() is None
    assert not member.active
    assert not world.scan.join(FakeMember("b", {0: 0, 1: 0}))
