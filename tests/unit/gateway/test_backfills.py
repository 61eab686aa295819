"""Backfills as the gateway takes and shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from mainstem.catalog.apply import Executor
from mainstem.catalog.backfill import appended, beside, handed_over
from mainstem.catalog.entry import BackfillState, Catalog, Entry
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway.backfills import Backfills
from mainstem.log.admin import Admin
from mainstem.vocabulary import Offsets

BEGIN, END = {0: 0, 1: 10}, {0: 100, 1: 20}


def entry(sql: str) -> Entry:
    statement = parse_one(sql)
    assert isinstance(statement, Create)
    return Entry(statement.definition, "f")


class World:
    """A catalog, a log and statuses in memory."""

    def __init__(self) -> None:
        made = [
            entry("CREATE STREAM s (k STRING)"),
            entry("CREATE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k"),
            entry("CREATE STREAM copy AS SELECT k FROM s"),
        ]
        self.catalog = Catalog({e.name: e for e in made}, revision=7)
        self.statuses: dict[str, dict[str, Any]] = {}
        self.begin: dict[int, int] = dict(BEGIN)
        self.checked: list[tuple[str, str]] = []
        world = cast(Any, self)
        self.backfills = Backfills(
            lambda: self.catalog,
            cast(Executor, world),
            cast(Admin, world),
            lambda: self.statuses,
            lambda sink, source: self.checked.append((sink.name, source.name)),
        )

    @property
    def entry(self) -> Entry:
        return self.catalog.entries["t"]

    def write_catalog(self, changes: Mapping[str, Any], revision: int) -> None:
        assert revision == self.catalog.revision
        [changed] = changes.values()
        self.catalog = replace(self.catalog.with_entry(changed), revision=revision + 1)

    def topics_of(self, definition: Any) -> list[str]:
        return [definition.topic]

    def all_begin_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {topic: dict(self.begin) for topic in topics}

    def all_end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {topic: dict(END) for topic in topics}

    def all_offsets_at(self, milliseconds: int, ends: Mapping[str, Offsets]) -> Any:
        assert milliseconds == 1_767_225_600_000
        return {topic: {0: 90, 1: 20} for topic in ends}


@pytest.fixture
def world() -> World:
    return World()


def test_from_the_beginning(world: World) -> None:
    told = world.backfills.start("T", "beginning", 50)
    assert (told["name"], told["records"], told["since"]) == ("t", 110, "beginning")
    assert not told["whole"]  # partition 1 has lost its first records
    assert world.entry.backfill is not None
    assert (world.entry.backfill.start, world.entry.backfill.rate) == ("earliest", 50)
    world.begin = {0: 0, 1: 0}
    world.backfills.turn("t", BackfillState.CANCELLED)
    assert world.backfills.start("t", "beginning", None, dry_run=True)["whole"]


def test_a_dry_run_changes_nothing(world: World) -> None:
    world.backfills.start("t", "beginning", None, dry_run=True)
    assert world.entry.backfill is None


def test_from_a_time(world: World) -> None:
    told = world.backfills.start("t", "2026-01-01", None)
    assert (told["since"], told["records"], told["whole"]) == ("2026-01-01T00:00:00Z", 10, False)
    assert world.entry.backfill is not None
    assert json.loads(world.entry.backfill.start) == {"s": {"0": 90, "1": 20}}


def test_from_offsets(world: World) -> None:
    told = world.backfills.start("t", {"s": {"0": 60}}, None)
    assert (told["since"], told["records"]) == ("offsets", 50)
    assert world.entry.backfill is not None
    assert json.loads(world.entry.backfill.start) == {"s": {"0": 60, "1": 10}}


@pytest.mark.parametrize(
    "since",
    [
        "yesterday",
        "",
        {"s": {"0": 101}},
        {"s": {"1": 9}},
        {"s": {"7": 0}},
        {"s": {"x": 0}},
        {"S": {"0": 1}},
    ],
)
def test_places_that_are_none(world: World, since: Any) -> None:
    with pytest.raises(MainstemError) as refused:
        world.backfills.start("t", since, None)
    assert refused.value.code == "BAD_REQUEST"
    assert world.entry.backfill is None


@pytest.mark.parametrize(
    ("name", "code"), [("s", "BACKFILL_NOT_POSSIBLE"), ("x", "UNKNOWN_RELATION")]
)
def test_what_cannot_be(world: World, name: str, code: str) -> None:
    with pytest.raises(MainstemError) as refused:
        world.backfills.start(name, "beginning", None)
    assert refused.value.code == code


def test_what_is_shown(world: World) -> None:
    assert world.backfills.all() == []
    with pytest.raises(MainstemError, match="no backfill"):
        world.backfills.one("t")
    world.backfills.start("t", "beginning", 50)
    assert world.backfills.one("t")["state"] == "running"
    assert world.entry.backfill is not None
    generation = world.entry.backfill.generation
    said = {"state": "failed", "generation": generation, "records_done": 4, "records_total": 9}
    world.statuses["t"] = {"generation": 1, "backfill": said}
    shown = world.backfills.one("t")
    assert (shown["state"], shown["records_done"], shown["eta_seconds"]) == ("failed", 4, None)
    world.catalog = world.catalog.with_entry(handed_over(world.entry))
    assert world.backfills.one("t")["state"] == "handing over"
    taking = {"state": "handing over", "generation": generation}
    world.statuses["t"] = {"generation": generation, "backfill": taking}
    assert world.backfills.one("t")["state"] == "handing over"
    world.statuses["t"] = {"generation": generation, "backfill": None}
    assert world.backfills.one("t")["state"] == "done"


def test_what_was_said_of_another_backfill_does_not_count(world: World) -> None:
    world.backfills.start("t", "beginning", None)
    world.statuses["t"] = {"generation": 1, "backfill": {"state": "failed", "generation": 99}}
    assert world.backfills.one("t")["state"] == "running"


def test_a_stream_gets_what_lies_before_the_records_with_which_its_flow_began(world: World) -> None:
    with pytest.raises(MainstemError, match="has not begun"):
        world.backfills.start("copy", "beginning", None)
    world.statuses["copy"] = {"generation": 1, "began": {"s": {"0": 70, "1": 15}}}
    told = world.backfills.start("copy", {"s": {"0": 60, "1": 18}}, None)
    assert (told["records"], told["appends"]) == (10, True)
    copy = world.catalog.entries["copy"]
    assert copy.backfill is not None and copy.backfill.end is not None
    assert json.loads(copy.backfill.start) == {"s": {"0": 60, "1": 15}}
    assert json.loads(copy.backfill.end) == {"s": {"0": 70, "1": 15}}
    world.catalog = world.catalog.with_entry(appended(copy))
    world.statuses.clear()  # no engine runs
    assert world.backfills.one("copy")["state"] == "done"
    with pytest.raises(MainstemError) as refused:
        world.backfills.start("copy", {"s": {"0": 65, "1": 18}}, None)
    assert refused.value.code == "NOTHING_TO_BACKFILL"
    assert world.backfills.start("copy", "beginning", None)["records"] == 65
    again = world.catalog.entries["copy"].backfill
    assert again is not None
    assert json.loads(again.end or "") == {"s": {"0": 60, "1": 15}}


def test_a_sink_is_built_anew(world: World) -> None:
    sink = entry("CREATE SINK out FROM s WITH (connector = 'files', folder = '/tmp/out')")
    world.catalog = world.catalog.with_entry(sink)
    told = world.backfills.rebuild("OUT", dry_run=True)
    assert (told["records"], told["whole"]) == (110, False)
    assert world.catalog.entries["out"].backfill is None
    world.backfills.rebuild("out")
    assert world.checked[-1] == ("out", "s")
    changed = world.catalog.entries["out"]
    assert changed.backfill is not None
    target = beside(changed, 1).definition.target
    assert target is not None and target.beside == changed.backfill.generation == 2
    with pytest.raises(MainstemError) as caught:
        world.backfills.rebuild("out")
    assert caught.value.code == "BACKFILL_ON_ITS_WAY"
    with pytest.raises(MainstemError) as caught:
        world.backfills.rebuild("copy")
    assert caught.value.code == "REBUILD_NOT_POSSIBLE"


def test_where_an_earlier_generation_began_does_not_count(world: World) -> None:
    world.statuses["copy"] = {"generation": 9, "began": {"s": {"0": 70, "1": 15}}}
    with pytest.raises(MainstemError, match="has not begun"):
        world.backfills.start("copy", "beginning", None)
