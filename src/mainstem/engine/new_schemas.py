"""A batch failed because its plan does not know a schema: the flow gets to know it, and goes on.

1. A task reaches a record whose id the plan does not know, and fails. Tasks of the batch that had
   none of those may have committed; their tokens say so. Nothing else of the batch is written.
2. The ids of all records of the batch are looked up in the log. Crash before or behind: nothing is
   kept of it; the flow starts with the versions that are registered for the topic, and fails again.
3. The flow starts again, asks the registry for what it does not know, and replays the batch with a
   plan that knows. A registry that does not answer fails the start, which is tried again: until it
   answers, the flow waits where it is. One that knows of no such schema makes the record a bad one.

What was committed before was decoded by the same schemas, so the replay gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainstem.definitions.model import Definition
from mainstem.engine.current_rows import INCOMPLETE
from mainstem.engine.micro_batch import Machinery
from mainstem.engine.ranges import read_records
from mainstem.errors import MainstemError
from mainstem.vocabulary import Offsets

Between = tuple[Mapping[str, Offsets], Mapping[str, Offsets]]


def meet_schemas(
    error: MainstemError,
    inputs: Sequence[Definition],
    machinery: Machinery,
    between: Between | None,
) -> bool:
    """True when that was why a batch failed: the flow may start again at once.

    `between` are the positions that the batch has read, by topic, if they are known.
    """
    if error.code == INCOMPLETE:
        return True  # the first batch of a run looks for what is missing (`current_rows`)
    source = next((i for i in inputs if i.topic == error.params.get("topic")), None)
    if source is None or between is None:
        return machinery.formats.meet(error)
    end = {topic: offsets for topic, offsets in between[1].items() if source.reads(topic)}
    start = {t: {p: between[0].get(t, {}).get(p, _EARLIEST) for p in end[t]} for t in end}
    spark, connection = machinery.spark.newSession(), machinery.connection
    records = read_records(spark, source, connection, start, end) if end else None
    return machinery.formats.meet(error, records)


_EARLIEST = -2
"""Kafka's word for the beginning of a partition."""
