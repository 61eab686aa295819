"""Records for which a function or a target failed, as rows of the quarantine that a task writes.

They go there in the transaction of the task's batch, so each is in the result or in the quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing
from mainstem.log.quarantine import quarantined
from mainstem.log.task_writer import Rows
from mainstem.vocabulary import QUARANTINE_TOPIC

STAGE = "function"
Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


def put_aside(
    connection: Connection,
    problems: Mapping[Place, str],
    *,
    name: str,
    flow: str,
    at: float,
    code: str = "FUNCTION_FAILED",
    stage: str = STAGE,
) -> Rows:
    """The records at these places, whole, with what happened to them.

    `name` is the function's, or the sink's.
    """
    kept = []
    for topic, partition in sorted({place[:2] for place in problems}):
        offsets = [o for t, p, o in problems if (t, p) == (topic, partition)]
        start, end = {partition: min(offsets)}, {partition: max(offsets) + 1}
        for records in read_range(connection, topic, start, end):
            for record in records:
                problem = problems.get((topic, partition, record.offset))
                if problem is None:
                    continue
                error = MainstemError(code, name=name, record="", problem=problem)
                out = quarantined(
                    record,
                    stage=stage,
                    reader=name,
                    code=error.code,
                    cause=error.message,
                    at=at,
                    flow=flow,
                )
                kept.append(out)
    return quarantine_rows(kept)


def quarantine_rows(kept: Sequence[Outgoing]) -> Rows:
    """Records of the quarantine as rows of a task."""
    return Rows(
        QUARANTINE_TOPIC,
        [out.key for out in kept],
        [out.value for out in kept],
        headers=[list(out.headers) for out in kept],
    )
