"""A backfill: a flow once more, over history, beside the one that is live.

It is an ordinary flow, exactly once, with a checkpoint and commit tokens of its own. So it goes on
where it was after a crash, and can be paused. What happens for a table, which has a topic beside
it, and what a crash means:

1. It reads from its start, at its rate, until it is within a batch of the end. Crash: it goes on
   from its checkpoint.
2. The live flow is held behind a batch (`gate`), and the backfill goes on until it has read all
   that the live flow has, and is held, too. Crash: both go on, and are held again later.
3. The catalog gets the table's new generation, that of the backfill, in one write. Crash before:
   as after 2. Crash behind: the engine reads it in the catalog.
4. Both flows stop. The flow of the new generation takes over (`take_over`) and starts from the
   backfill's checkpoint: at the very record where the backfill was held.

For a sink it is the same: what it has beside it is another target, and the flow that takes over
lets that one take the old one's place. While the old target fails, its flow need not be held:
nothing of it is going to be kept.

For a stream, the records before those with which the live flow began are added to its own topic:

1. It reads from its start, at its rate; records from its end on it leaves out. Crash: it goes on
   from its checkpoint.
2. When it is past its end in all partitions, it is held behind a whole batch. Crash: it goes on, is
   past its end, and is held again.
3. The catalog says that it is done. Crash before: as after 2. Crash behind: its checkpoint is left,
   and goes when the live flow starts.

Which records are whose is fixed before the first is read: the live flow began at the end of the
backfill. What the catalog takes for read goes down to its start as soon as it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mainstem.catalog.backfill import EARLIEST, beside, records_between
from mainstem.catalog.entry import Entry
from mainstem.catalog.plan import topic_need
from mainstem.definitions.model import Definition, Kind
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.status import offsets_from, offsets_in
from mainstem.engine.take_over import backfill_group
from mainstem.engine.target_places import Places
from mainstem.vocabulary import Offsets

_UNPACED = "0 seconds"


def pace(rate: int | None, most: int, streams: int, partitions: int) -> tuple[int, str]:
    """Records of each stream in a batch, and the time between two batches, for a rate.

    A batch takes at least one record of each partition that has some, so slow ones come seldom.
    """
    if rate is None:
        return most, _UNPACED
    seconds = max(1.0, partitions / rate)
    each = int(rate * seconds / streams)
    if each > most:
        seconds, each = most * streams / rate, most
    return max(1, each), f"{max(1, round(seconds * 1000))} milliseconds"


def place_now(start: str, begins: Mapping[str, Offsets]) -> str:
    """Where a flow that has not begun yet begins, in the log as it is now.

    Since it was asked for, records may have gone by age, and partitions may have come: Spark wants
    offsets that are there, for all of them. Once it has begun, its checkpoint counts.
    """
    if start == EARLIEST:
        return start
    wanted = offsets_in(start)
    found = {
        topic: {str(p): max(o, wanted.get(topic, {}).get(p, o)) for p, o in at.items()}
        for topic, at in begins.items()
    }
    return json.dumps(found)


class BackfillFlow(Flow):
    """The flow of a backfill; the runner hands it over when it has caught up."""

    def __init__(
        self, entry: Entry, inputs: tuple[Definition, ...], services: FlowServices
    ) -> None:
        assert entry.backfill is not None
        self.backfill = entry.backfill
        admin = services.admin
        # a sink reads a table's topic as any other
        streams = [source for source in inputs if source.kind is Kind.STREAM] or list(inputs)
        topics = [topic for source in streams for topic in admin.topics_of(source)]
        read = sum(map(len, admin.all_end_offsets(topics).values()))
        each, trigger = pace(
            self.backfill.rate, services.settings.max_records_per_batch, len(streams), max(1, read)
        )
        self._batch = each * len(streams)
        settings = services.settings.model_copy(update={"max_records_per_batch": each})
        info = admin.topic(entry.definition.topic)
        staged = beside(entry, 1 if info is None else info.partitions)
        start = place_now(self.backfill.start, admin.all_begin_offsets(topics))
        staged = replace(
            staged, definition=replace(staged.definition, trigger=trigger, start=start)
        )
        super().__init__(staged, inputs, replace(services, settings=settings))
        self.group = backfill_group(staged)
        self._end = offsets_in(self.backfill.end)
        self._first: dict[str, Mapping[int, int]] = {}
        self._seen: tuple[float, int] | None = None

    @property
    def caught_up(self) -> bool:
        """True when no more than a batch is left."""
        lag = self.status.lag_records
        return self.running and lag is not None and lag <= self._batch

    @property
    def finished(self) -> bool:
        """True when it has an end, and has read all that lies before."""
        return self.running and bool(self._end) and self._left() == 0

    def has_reached(self, positions: Mapping[str, Mapping[str, int]]) -> bool:
        """True when it has read all that another flow has."""
        mine = self.status.positions
        return all(
            mine.get(topic, {}).get(partition, 0) >= offset
            for topic, at in positions.items()
            for partition, offset in at.items()
        )

    def progress(self) -> dict[str, Any]:
        """How far it is, for the status of the table."""
        done, left = self._done(), self._left()
        speed = self._speed(done)
        return {
            "state": self.status.state.value,
            "generation": self.entry.generation,
            "since": self.backfill.since,
            "rate": self.backfill.rate,
            "records_done": done,
            "records_total": None if left is None else done + left,
            "records_per_second": None if speed is None else round(speed, 1),
            "eta_seconds": round(left / speed) if speed and left is not None else None,
            "error": self.status.error,
        }

    def discard(self) -> None:
        """Clears away what it has computed, when it has stopped and nobody takes it over."""
        services = self._services
        if not self._end:
            services.admin.delete_topic(self.entry.definition.topic)
        if self.entry.definition.target is not None:
            services.in_background(Places.of(self.entry, self.inputs[0], services.project).discard)
        services.checkpoints.delete(self.checkpoint)
        services.in_background(lambda: services.admin.delete_group(self.group))

    def _make_way(self) -> None:
        services = self._services
        services.make_topic(topic_need(self.entry))

    def _take_up_position(self) -> None:
        super()._take_up_position()
        # the group may be a batch behind, and without news Spark does not say where it is
        for topic, at in self._services.checkpoints.end(self.checkpoint).items():
            self.status.positions[topic] = {str(p): o for p, o in at.items()}
        start = self.entry.definition.start
        if start != EARLIEST:
            for topic, at in json.loads(start).items():
                self.status.positions.setdefault(topic, dict(at))

    def _report(
        self,
        source: Definition,
        start: Mapping[str, Offsets],
        end: Mapping[str, Offsets],
        bad: int | None,
    ) -> None:
        # records from its end on are left out before anybody looks whether they are bad
        super()._report(source, start, end, None if self._end else bad)

    def _left(self) -> int | None:
        """How many records it has yet to read; None: that is not known."""
        if not self._end:
            return self.status.lag_records
        return records_between(offsets_from(self.status.positions), self._end)

    def _done(self) -> int:
        if not self._first:
            self._first = self._services.checkpoints.begin(self.checkpoint)
        first = self._first
        if self._end:
            return records_between(first, self._end) - (self._left() or 0) if first else 0
        return sum(
            offset - first[topic].get(int(partition), 0)
            for topic, at in self.status.positions.items()
            if topic in first
            for partition, offset in at.items()
        )

    def _speed(self, done: int) -> float | None:
        """Records a second, since this run began to read."""
        now = self._services.clock.now()
        if self._seen is None or not self.running:
            self._seen = (now, done) if self.running else None
            return None
        seconds, records = now - self._seen[0], done - self._seen[1]
        return records / seconds if seconds > 0 and records > 0 else None
