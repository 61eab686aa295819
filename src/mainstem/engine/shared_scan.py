"""One reader for all small flows without state of a stream, in place of a Spark query for each.

A shared batch is a batch of each of its flows: with the flow's own number, in its own checkpoint,
written under its own ids with its own token. So a flow can join and leave between any two batches,
and all that is known of a flow, also after a crash, is what it would be if it ran alone. What
happens to a batch, and what a crash after each step means for each flow:

1. The records are read, up to where they end now; then it is made sure that none between was
   deleted unread. Crash: nothing has happened.
2. Each flow's checkpoint gets the end of the batch (`batch_log`). Crash: the flow starts alone and
   runs the batch again, same range.
3. One plan makes the rows of all flows (`shared_plan`). Crash: as after 2.
4. Each flow's rows are written, with its token in the same transaction: steps 3 to 6 of `writer`.
   Crash: flows that had committed find their token, the others write.
5. Each flow's checkpoint is told that the batch is done. Crash before: as after 4.

A flow with which anything goes wrong leaves, and its query runs the batch again by itself: what is
wrong with a flow is said of it there, and the others do not notice. When the plan for all fails,
each flow gets one of its own. When the scan itself fails, all leave.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from mainstem.definitions.model import Definition
from mainstem.definitions.options import milliseconds
from mainstem.engine.decode import intake_of
from mainstem.engine.member import Member, first_of, together
from mainstem.engine.micro_batch import Machinery
from mainstem.engine.pacing import Pacer
from mainstem.engine.progress import Progress, SourceProgress
from mainstem.engine.shared_plan import Made, SharedPlan
from mainstem.engine.small_batch import Sizes
from mainstem.engine.spark_errors import short
from mainstem.engine.writer import SMALL_BATCH
from mainstem.log.consumer import Reader, read_range
from mainstem.vocabulary import Offsets, Record

_LOG = logging.getLogger(__name__)
_WRITERS = 4
"""Transactions at the same time: each of them mostly waits for the broker."""
_PATIENCE_SECONDS = 30.0
"""A scan that is behind for so long is too slow for its stream."""
_LOOK_EVERY_SECONDS = 2.0
_FETCH = {"fetch.wait.max.ms": 100}
"""A partition's end is reported with the fetch after its last record."""


class SharedScan:
    """The reader of one stream, in a thread of its own. It ends when its last flow has left."""

    def __init__(
        self, stream: Definition, plan: SharedPlan, machinery: Machinery, pacer: Pacer
    ) -> None:
        self._stream = stream
        self._plan = plan
        self._machinery = machinery
        self._pacer = pacer
        self._trigger = (milliseconds(machinery.settings.trigger) or 0) / 1000
        self._sizes = Sizes(machinery.connection.max_record_bytes)
        self._members: list[Member] = []
        self._coming: list[Member] = []
        self._ending = self._ended = False
        self._lock = threading.Lock()
        """Of `_coming` and `_ended`."""
        self._nudged = threading.Event()
        self._reader: Reader | None = None
        self._looked_at = self._batch_at = self._calm_at = time.monotonic()
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="shared-write")
        name = f"scan of {stream.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def join(self, member: Member) -> bool:
        """Takes a flow in, from its next batch on; False when the scan has ended."""
        with self._lock:
            if self._ended:
                return False
            member.nudge = self._nudged.set
            self._coming.append(member)
        self._nudged.set()
        if not self._thread.is_alive():
            self._thread.start()
        return True

    def end(self) -> None:
        """Ends the scan behind the batch that is at work; returns at once."""
        self._ending = True
        self._nudged.set()

    def _run(self) -> None:
        try:
            context = self._machinery.spark.sparkContext
            context.setLocalProperty("spark.scheduler.pool", self._thread.name)
            while (reader := self._admit()) is not None:
                most = self._sizes.most
                records = reader.step(most, self._trigger)
                began = time.monotonic()
                if self._pass_on(records, reader.positions()[self._stream.topic]):
                    self._rest(time.monotonic() - began, behind=len(records) >= most)
        except Exception as error:  # noqa: BLE001 - the flows go on alone, whatever it was
            _LOG.warning("the shared scan of %s ends: %s", self._stream.name, short(error))
        finally:
            self._end()

    def _admit(self) -> Reader | None:
        """Lets flows out and in between two batches; None when the scan is to end."""
        self._nudged.clear()
        if self._ending:
            return None
        for member in [m for m in self._members if m.leaving]:
            self._dismiss(member)
        with self._lock:
            coming, self._coming = self._coming, []
        joined = [m for m in coming if self._try(m, partial(self._settle, m)) and m.active]
        self._members += joined
        with self._lock:
            if not self._members and not self._coming:
                self._ended = True
                return None
        if joined or self._reader is None:
            self._read_anew()
        return self._reader

    def _settle(self, member: Member) -> None:
        """Runs the batch again that the flow alone has begun, if there is one."""
        start, end = member.log.position, member.log.begun
        if end is None:
            return
        _check_distance(start, end)
        topic, connection = self._stream.topic, self._machinery.connection
        pieces = read_range(connection, topic, start, end)
        records = [record for piece in pieces for record in piece]
        self._look_for_losses(start, end)
        self._write([member], start, end, records)

    def _read_anew(self) -> None:
        """Reads on from where the first of the flows stands; the others skip what they know."""
        if self._reader is not None:
            self._reader.close()
        connection, topic = self._machinery.connection, self._stream.topic
        self._reader = Reader(connection, {topic: first_of(self._members)}, tuning=_FETCH)

    def _pass_on(self, records: Sequence[Record], ends: Offsets) -> bool:
        """Has a batch written for all flows that have not seen all of it; False when none was."""
        now = time.monotonic()
        if records or now - self._looked_at > _LOOK_EVERY_SECONDS:
            self._looked_at = now
            self._look_for_losses(first_of(self._members), ends)
        wrote = False
        for members, start, end in together(self._members, ends):
            _check_distance(start, end)
            mine = [record for record in records if record.offset >= start[record.partition]]
            wrote = bool(self._write(members, start, end, mine)) or wrote
        return wrote

    def _look_for_losses(self, start: Offsets, end: Offsets) -> None:
        """Raises when records from there on were deleted before they were read.

        Also when the topic has other partitions than it had, or was made again: then the reader has
        gone back.
        """
        begins = self._machinery.admin.begin_offsets(self._stream.topic)
        whole = begins.keys() == start.keys()
        if not whole or any(begins[p] > start[p] or end[p] < start[p] for p in start):
            message = f"the log begins at {begins}, the flows stand at {dict(start)}"
            raise RuntimeError(message)

    def _write(
        self, members: Sequence[Member], start: Offsets, end: Offsets, records: Sequence[Record]
    ) -> list[Member]:
        """Steps 2 to 5 for flows that stand at the same place; gives those for which it worked."""
        began, connection = time.monotonic(), self._machinery.connection
        begun = [
            m for m in members if m.log.begun is not None or self._try(m, partial(m.log.begin, end))
        ]
        bad = 0
        rows: dict[Member, pa.Table] = {}
        if records:
            for some, made in self._make(begun, records):
                bad = made.bad
                rows.update(zip(some, made.rows, strict=True))
            read = sum(len(r.value or b"") + len(r.key or b"") for r in records)
            self._sizes.saw(len(records), max(read, sum(t.nbytes for t in rows.values())))
        able = [m for m in begun if m in rows or not records]
        tries = [
            self._writers.submit(self._try, m, partial(m.write, rows.get(m), connection))
            for m in able
        ]
        done = [m for m, wrote in zip(able, tries, strict=True) if wrote.result()]
        for member in done:
            member.passed(self._progress(member, start, end, records, bad, began))
        self._batch_at = time.monotonic()
        for member in members:
            if member.left.is_set() and member in self._members:
                self._members.remove(member)
        return done

    def _make(
        self, members: Sequence[Member], records: Sequence[Record]
    ) -> Iterator[tuple[Sequence[Member], Made]]:
        """The rows of all, or, when that fails, of each one that is able to make its own."""
        try:
            yield members, self._plan.make([m.definition for m in members], records)
        except Exception as error:  # noqa: BLE001 - one flow's failure must not reach the others
            if len(members) == 1:
                self._send_away(members[0], error)
                return
            for member in members:
                yield from self._make([member], records)

    def _progress(
        self,
        member: Member,
        start: Offsets,
        end: Offsets,
        records: Sequence[Record],
        bad: int,
        began: float,
    ) -> Progress:
        now, topic = time.monotonic(), self._stream.topic
        seen = {"newest": max(r.timestamp for r in records)} if records else {}
        return Progress(
            batch_id=member.log.last,
            seconds=now - began,
            input_rows=len(records),
            input_rate=round(len(records) / max(now - self._batch_at, 0.001), 1),
            watermark=None,
            event_time=None,
            sources=[SourceProgress({topic: start}, {topic: end})],
            operators=(),
            observed={intake_of(self._stream): {"bad": bad, **seen}},
        )

    def _try(self, member: Member, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - one flow's failure must not reach the others
            self._send_away(member, error)
            return False
        return True

    def _send_away(self, member: Member, error: Exception) -> None:
        name = self._stream.name
        _LOG.info("flow %s leaves the shared scan of %s: %s", member.flow, name, short(error))
        member.left.set()

    def _dismiss(self, member: Member) -> None:
        if member in self._members:
            self._members.remove(member)
        member.left.set()

    def _rest(self, seconds: float, *, behind: bool) -> None:
        now = time.monotonic()
        if not behind:
            self._calm_at = now
        elif now - self._calm_at > _PATIENCE_SECONDS:
            message = "it does not keep up with the stream"
            raise RuntimeError(message)
        rest = self._pacer.rest(self._thread.name, seconds, behind=behind)
        if not behind:
            self._nudged.wait(max(rest, self._trigger - seconds))

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            left = [*self._members, *self._coming]
        for member in left:
            self._dismiss(member)
        if self._reader is not None:
            self._reader.close()
        self._writers.shutdown(wait=False)


def _check_distance(start: Offsets, end: Offsets) -> None:
    """Alone, a flow divides a larger batch among several tasks."""
    if sum(offset - start.get(p, 0) for p, offset in end.items()) > SMALL_BATCH:
        message = "a batch has more offsets than one task may write"
        raise RuntimeError(message)
