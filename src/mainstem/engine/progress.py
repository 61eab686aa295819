"""What Spark tells of each batch of a flow, fetched from the JVM in one piece.

PySpark's own listener asks for every field by itself: a hundred calls for a small batch, several
hundred when it has state. The same document as JSON is one call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from mainstem.engine.java import java_class
from mainstem.engine.status import offsets_from
from mainstem.vocabulary import Offsets

_LOG = logging.getLogger(__name__)
_PLACES = ("start", "end", "latest")
PARTS = {
    "look": ("latestOffset", "getBatch"),
    "plan": ("queryPlanning",),
    "run": ("addBatch",),
    "note": ("walCommit", "commitBatch", "commitOffsets"),
}
"""What a batch's time goes into, and Spark's names for it: to look for records, to plan, to compute
and write, and to note down how far it is."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Where a batch began and ended in one input, by topic."""

    start: Mapping[str, Offsets]
    end: Mapping[str, Offsets]
    latest: Mapping[str, Offsets] = field(default_factory=dict)
    """Where the input ended when the batch began; empty where nobody tells."""

    @property
    def behind(self) -> int:
        """How many records the batch has left."""
        ends = ((self.end.get(topic, {}), latest) for topic, latest in self.latest.items())
        return sum(max(0, o - end.get(p, 0)) for end, latest in ends for p, o in latest.items())


@dataclass(frozen=True, slots=True)
class Range:
    """What a batch has read of some topics, all sources together."""

    start: Mapping[str, Offsets]
    end: Mapping[str, Offsets]
    alike: bool
    """False when two sources of a topic were not at the same places: Spark asks for the end of a
    topic once for each."""


def range_of(sources: Sequence[SourceProgress], mine: Callable[[str], bool]) -> Range:
    """From the first to the last place that the batch has read in the topics that are `mine`."""
    start: dict[str, dict[int, int]] = {}
    end: dict[str, dict[int, int]] = {}
    for source in sources:
        for places, known, outermost in ((source.start, start, min), (source.end, end, max)):
            for topic in filter(mine, places):
                at = known.setdefault(topic, {})
                for partition, offset in places[topic].items():
                    at[partition] = outermost(at.get(partition, offset), offset)
    alike = all(
        places[topic] == known[topic]
        for source in sources
        for places, known in ((source.start, start), (source.end, end))
        for topic in filter(mine, places)
    )
    return Range(start, end, alike)


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch that Spark has committed."""

    batch_id: int
    seconds: float
    split: Mapping[str, float]
    """The same in parts: seconds that went into each of `PARTS`."""
    input_rows: int
    input_rate: float
    watermark: str | None
    event_time: str | None
    sources: Sequence[SourceProgress]
    operators: Sequence[Mapping[str, Any]]
    """Those that keep state, in Spark's own words."""
    observed: Mapping[str, Mapping[str, Any]]
    """Observations by their name (`decode.intake_of`); a value that is null is left out."""

    @staticmethod
    def of(text: str) -> Progress:
        """Reads Spark's document."""
        document = json.loads(text)
        times = document.get("eventTime", {})
        return Progress(
            batch_id=document["batchId"],
            seconds=document["batchDuration"] / 1000,
            split=_split(document.get("durationMs", {})),
            input_rows=document["numInputRows"],
            # Spark leaves out what is no number
            input_rate=round(document.get("inputRowsPerSecond", 0.0), 1),
            watermark=times.get("watermark"),
            event_time=times.get("max"),
            sources=[
                SourceProgress(*(offsets_from(source.get(f"{which}Offset")) for which in _PLACES))
                for source in document["sources"]
            ],
            operators=document["stateOperators"],
            observed={
                name: {field: value for field, value in seen.items() if value is not None}
                for name, seen in document.get("observedMetrics", {}).items()
            },
        )


def _split(took: Mapping[str, int]) -> dict[str, float]:
    return {
        part: round(sum(took.get(step, 0) for step in steps) / 1000, 3)
        for part, steps in PARTS.items()
    }


class ProgressListener(StreamingQueryListener):
    """Passes on the progress of the one query of a flow's session, from Spark's listener thread."""

    def __init__(self, pass_on: Callable[[Progress], None]) -> None:
        wrapper = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"
        self._jlistenerobj = java_class(wrapper)(_Calls(pass_on))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Never called: `_Calls` stands in Spark's place for this object."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Never called."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Never called."""


class _Calls:
    """What the JVM calls, with events that live there."""

    def __init__(self, pass_on: Callable[[Progress], None]) -> None:
        self._pass_on = pass_on

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:
        """A batch has ended."""
        try:
            self._pass_on(Progress.of(event.progress().json()))
        except Exception:  # noqa: BLE001 - an error here would go to Spark's listener bus
            _LOG.exception("progress of a flow could not be recorded")

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:
        """The runner looks for ended queries itself."""

    class Java:
        """The interface, as Py4J wants to know it."""

        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]  # noqa: RUF012 - Py4J takes only a list
