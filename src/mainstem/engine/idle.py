"""Time goes on in a stream that has gone quiet: its windows close by the clock.

Spark's watermark moves only with records: the last windows before a silence would stay open, and in
a flow over several streams one that is silent holds all. Where a stream has an `idle_timeout`, its
time goes on with the clock once it has been quiet for so long: the newest event time that was
seen, and the time since then. Spark notes the watermark of each batch with the batch, so one that
is run again closes the same windows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.options import milliseconds

_ATTEMPTS = 50
"""How often a query that looks for records is asked; the next look of the engine comes soon."""
_ALL = 2**62
"""Above the number of any batch."""


@dataclass(slots=True)
class _Seen:
    """What a flow has seen of one stream in this run."""

    delay: int
    timeout: int | None
    arrived: float
    """When the last record came, by the clock; at first, when the run began."""
    newest: int | None = None
    """The newest event time, in milliseconds; None when no record came in this run."""


@dataclass(slots=True)
class StreamTimes:
    """Event time and silence of a flow's streams with a watermark, in one run of the flow."""

    _seen: dict[str, _Seen] = field(default_factory=dict)

    @staticmethod
    def of(inputs: Sequence[Definition], now: float) -> StreamTimes:
        """The times of a run that begins now."""
        times = StreamTimes()
        for source in inputs:
            if source.kind is Kind.STREAM and source.watermark is not None:
                timeout = milliseconds(source.idle_timeout) if source.idle_timeout else None
                times._seen[source.name] = _Seen(milliseconds(source.watermark) or 0, timeout, now)
        return times

    @property
    def can_idle(self) -> bool:
        """True when the time of one of the streams goes on without records."""
        return any(seen.timeout is not None for seen in self._seen.values())

    def saw(self, stream: str, newest: int | None, now: float) -> None:
        """Records of the stream came; `newest` is the newest event time among them."""
        seen = self._seen.get(stream)
        if seen is None:
            return
        seen.arrived = now
        if newest is not None:
            seen.newest = max(newest, seen.newest or newest)

    def watermark(self, current: int, now: float, read: Collection[str]) -> int | None:
        """The watermark that the clock asks for; None when it is to stay.

        `current` is Spark's, in milliseconds; `read` are the streams whose records were all read.
        """
        wanted, steps = [], []
        for name, seen in self._seen.items():
            # the watermark is at most as far as each stream's own
            newest = seen.newest or (current + seen.delay if current > 0 else None)
            silent = int((now - seen.arrived) * 1000)
            if seen.timeout is not None and silent >= seen.timeout and name in read:
                steps.append(seen.timeout)
                if newest is None:
                    continue  # it never had a record, and holds nobody
                newest += silent
            if newest is None:
                return None
            wanted.append(newest - seen.delay)
        # each step is a batch for Spark, so they are not smaller than the time-out
        moved = bool(wanted and steps) and min(wanted) - current >= min(steps)
        return min(wanted) if moved else None

    def status(self) -> dict[str, dict[str, Any]]:
        """By stream: its newest event time and own watermark in milliseconds, and its last news."""
        return {
            name: {
                "event_time": seen.newest,
                "watermark": None if seen.newest is None else seen.newest - seen.delay,
                "arrived_at": seen.arrived,
            }
            for name, seen in self._seen.items()
        }


def move_watermark(
    query: StreamingQuery, times: StreamTimes, now: float, read: Collection[str]
) -> None:
    """Lets Spark's watermark go on, if the clock asks for it and the query rests.

    Spark plans batches under its progress lock: with the lock in hand, and no trigger at work, no
    batch is planned or runs with the watermark as it was. What Spark has computed in advance for
    the batch after the last one is forgotten; it would insist on the old watermark.
    """
    execution: Any = query._jsq
    if hasattr(execution, "streamingQuery"):
        execution = execution.streamingQuery()
    tracker, last = execution.watermarkTracker(), execution.lastExecution()
    if tracker is None or last is None:  # no batch, so no window
        return
    if times.watermark(int(tracker.currentWatermark()), now, read) is None:
        return
    lock = execution.awaitProgressLock()
    for _ in range(_ATTEMPTS):
        if not lock.tryLock():
            continue
        try:
            if query.status["isTriggerActive"]:
                continue
            wanted = times.watermark(int(tracker.currentWatermark()), now, read)
            if wanted is not None:
                tracker.setWatermark(wanted)
                execution.lastExecution().watermarkPropagator().purge(_ALL)
            return
        finally:
            lock.unlock()
