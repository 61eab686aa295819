"""A flow's part in a shared scan: where it stands, and its own exactly-once write."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence

import pyarrow as pa

from mainstem.catalog.entry import Entry
from mainstem.crash import crash_point
from mainstem.engine.batch_log import BatchLog
from mainstem.engine.progress import Progress
from mainstem.engine.small_batch import write_rows
from mainstem.log.connection import Connection
from mainstem.log.task_writer import TaskWrite
from mainstem.vocabulary import COMMITS_TOPIC, Offsets

_TASK = "all"
"""What `writer` calls the only task of a small batch."""


class Member:
    """A flow in a shared scan. Its flow calls `leave`; all else belongs to the scan."""

    def __init__(self, entry: Entry, log: BatchLog, passed: Callable[[Progress], None]) -> None:
        self.definition = entry.definition
        self.flow = entry.flow_id
        self.log = log
        self.passed = passed
        """Takes what is known of each batch that is done."""
        self.rows_written = 0
        self.leaving = False
        self.left = threading.Event()
        self.nudge: Callable[[], None] = lambda: None
        self._run = str(uuid.uuid4())
        self._last_written: int | None = None
        self._recovering = True

    @property
    def active(self) -> bool:
        """True while the scan works for the flow."""
        return not self.left.is_set()

    def leave(self) -> None:
        """Ends the flow's part of the scan, behind the batch that is at work."""
        self.leaving = True
        self.nudge()
        self.left.wait()

    def write(self, rows: pa.Table | None, connection: Connection) -> None:
        """Writes the rows of the batch that was begun, and notes that it is done."""
        batch = self.log.next
        crash_point("before_write", self.flow, batch)
        if rows is not None:
            written = write_rows(_TASK, rows, connection, self._task)
            crash_point("after_write", self.flow, batch)
            self.rows_written += written.rows
            if written.wrote:
                self._last_written = batch
        self._recovering = False
        self.log.done()

    def _task(self, name: str) -> TaskWrite:
        return TaskWrite(
            flow=self.flow,
            epoch=self.log.epoch,
            run=self._run,
            task=name,
            batch_id=self.log.next,
            topic=self.definition.topic,
            tokens_topic=COMMITS_TOPIC,
            previous_batch=self._last_written,
            recovering=self._recovering,
        )


def together(
    members: Sequence[Member], ends: Offsets
) -> list[tuple[list[Member], Offsets, Offsets]]:
    """The flows that stand at the same place, that place, and how far they can go from there.

    A flow that has just joined may stand before or behind the others, in each partition.
    """
    found: dict[tuple[tuple[int, int], ...], list[Member]] = {}
    for member in members:
        found.setdefault(_key(member.log.position), []).append(member)
    moving: list[tuple[list[Member], Offsets, Offsets]] = []
    for place, some in found.items():
        start = dict(place)
        end = {p: max(offset, ends.get(p, offset)) for p, offset in start.items()}
        if end != start:
            moving.append((some, start, end))
    return moving


def first_of(members: Sequence[Member]) -> dict[int, int]:
    """The first offset of each partition that one of the flows has not read."""
    first: dict[int, int] = {}
    for member in members:
        for partition, offset in member.log.position.items():
            first[partition] = min(offset, first.get(partition, offset))
    return first


def _key(position: Offsets) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(position.items()))
