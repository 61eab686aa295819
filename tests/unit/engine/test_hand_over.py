"""When a backfill is handed over, and what becomes of it when it is not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mainstem.catalog.backfill import begun, beside, handed_over, topic_beside, turned
from mainstem.catalog.entry import BackfillState, Catalog, Entry
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine import hand_over
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.hand_over import Backfills
from mainstem.engine.status import FlowStatus
from mainstem.errors import MainstemError


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


STREAM = made("CREATE STREAM s (k STRING)")
TABLE = Entry(made("CREATE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k"), "f", 5)
LEFT = topic_beside("other", 3)


@dataclass
class FakeFlow:
    """A flow that does what the test says; `done` is what was asked of it."""

    entry: Entry
    running: bool = False
    caught_up: bool = False
    finished: bool = False
    reached: bool = True
    can_be_held: bool = True
    done: list[str] = field(default_factory=list)
    status: FlowStatus = field(default_factory=lambda: FlowStatus("t", 1, "micro-batch"))
    handing_over: dict[str, Any] | None = None

    def start(self) -> None:
        self.running = True

    def stop(self, state: object = None) -> None:
        self.running = False
        self.done.append("stop")

    def hold(self) -> bool:
        self.done.append("hold")
        return self.can_be_held

    def release(self) -> None:
        self.done.append("release")

    def discard(self) -> None:
        self.done.append("discard")

    def has_reached(self, positions: object) -> bool:
        return self.reached

    def progress(self) -> dict[str, Any]:
        return {"state": "running"}


class World:
    """A catalog in memory, the live flow of its table, and the backfills."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = Catalog({"t": begun(TABLE, [STREAM])}, revision=1)
        self.live = FakeFlow(TABLE, running=True)
        self.made: list[FakeFlow] = []
        self.topics = [topic_beside("t", 6), LEFT, "t"]
        self.busy = False
        monkeypatch.setattr(hand_over, "BackfillFlow", self._make)
        admin = SimpleNamespace(
            topics=lambda internal: [SimpleNamespace(name=name) for name in self.topics],
            delete_topic=self.topics.remove,
        )
        services = cast(FlowServices, SimpleNamespace(admin=admin, checkpoints=None))
        self.backfills = Backfills(services, self._write)

    def _make(self, entry: Entry, inputs: object, services: object) -> FakeFlow:
        self.made.append(FakeFlow(beside(entry, 1)))
        return self.made[-1]

    def _write(self, changes: Any, revision: int) -> None:
        if self.busy:
            raise MainstemError("CONCURRENT_APPLY")
        assert revision == self.catalog.revision
        self.set(changes["t"])

    def set(self, entry: Entry) -> None:
        self.catalog = replace(self.catalog.with_entry(entry), revision=self.catalog.revision + 1)

    def turn(self) -> None:
        """What the runner does again and again."""
        entry = self.catalog.get("t")
        self.backfills.reconcile({} if entry is None else {"t": (entry, (STREAM,))})
        self.backfills.hand_over(self.catalog, cast("dict[str, Flow]", {"t": self.live}))

    @property
    def entry(self) -> Entry:
        return self.catalog.entries["t"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(monkeypatch)
    world.turn()
    return world


def test_the_live_flow_is_left_alone_until_the_backfill_has_caught_up(world: World) -> None:
    assert world.made[0].running
    assert world.live.done == []
    assert world.live.status.backfill == {"state": "running"}
    world.made[0].caught_up = True
    world.turn()
    assert (world.entry.generation, world.entry.served_generation) == (6, 5)


def test_both_must_be_held_and_the_backfill_not_behind(world: World) -> None:
    backfill = world.made[0]
    backfill.caught_up, backfill.reached, world.live.can_be_held = True, False, False
    world.turn()
    assert "hold" not in backfill.done
    world.live.can_be_held = True
    # new records have come: that the live flow waits is enough for the backfill to get there
    backfill.caught_up = False
    world.turn()
    assert "hold" not in backfill.done
    backfill.reached, backfill.can_be_held = True, False
    world.turn()
    assert world.entry == begun(TABLE, [STREAM])
    backfill.can_be_held = True
    world.turn()
    assert world.entry == handed_over(begun(TABLE, [STREAM]))


@pytest.mark.parametrize("fails", ["live", "backfill"])
def test_a_flow_that_dies_meanwhile_lets_the_other_go_on(world: World, fails: str) -> None:
    backfill = world.made[0]
    backfill.caught_up, backfill.reached = True, False
    world.turn()
    (world.live if fails == "live" else backfill).running = False
    world.turn()
    assert world.live.done[-1] == backfill.done[-1] == "release"
    assert world.entry.generation == 5


def test_a_change_of_the_catalog_at_that_moment_is_not_lost(world: World) -> None:
    world.made[0].caught_up = world.busy = True
    world.turn()
    assert world.entry.generation == 5
    world.busy = False
    world.turn()
    assert world.entry.generation == 6


def test_what_was_handed_over_is_stopped_and_kept(world: World) -> None:
    world.made[0].caught_up = True
    world.turn()
    world.turn()
    assert world.made[0].done[-1] == "stop"
    assert len(world.made) == 1


def test_what_was_cancelled_is_cleared_away_and_the_live_flow_goes_on(world: World) -> None:
    world.set(turned(world.entry, BackfillState.CANCELLED))
    world.turn()
    assert world.made[0].done == ["stop", "discard"]
    assert world.live.done == ["release"]
    assert world.live.status.backfill is None


def test_a_rebuild_ends_it(world: World) -> None:
    world.set(replace(TABLE, generation=7))
    world.turn()
    assert world.made[0].done == ["stop", "discard"]


def test_another_rate_is_taken_up_where_it_was(world: World) -> None:
    world.set(turned(world.entry, BackfillState.RUNNING, rate=9))
    world.turn()
    assert world.made[0].done == ["stop"]
    assert world.made[1].running


def test_a_paused_one_stays_where_it_is(world: World) -> None:
    world.set(turned(world.entry, BackfillState.PAUSED))
    world.turn()
    assert not world.made[1].running
    assert "discard" not in world.made[0].done


def test_topics_of_backfills_that_ended_unseen_are_swept_away(world: World) -> None:
    assert world.topics == [topic_beside("t", 6), "t"]


def test_a_stream_has_its_older_part_when_the_backfill_is_past_its_end(world: World) -> None:
    stream = replace(TABLE, generation=7, definition=made("CREATE STREAM t AS SELECT k FROM s"))
    world.set(begun(stream, [STREAM], start='{"s": {"0": 0}}', end='{"s": {"0": 9}}'))
    world.live.running = False  # the two have nothing to do with each other
    world.turn()
    backfill = world.made[-1]
    assert backfill.running and backfill.entry.flow_id == "t.8"
    backfill.finished, backfill.can_be_held = True, False
    world.turn()
    assert world.entry.backfill is not None and world.entry.backfill.active
    backfill.can_be_held = True
    world.turn()
    assert world.entry.backfill is not None
    assert world.entry.backfill.state is BackfillState.DONE
    assert (world.entry.generation, "hold" in world.live.done) == (7, False)
    world.turn()
    assert backfill.done[-2:] == ["stop", "discard"]
