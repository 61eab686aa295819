"""A batch that is written, and not yet committed by Spark: what may be done behind it.

Whatever is done there is done again when the batch runs again, so it is written like a task of
the batch: with a token of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mainstem.log.task_writer import TaskWrite
from mainstem.vocabulary import COMMITS_TOPIC, Offsets


@dataclass(frozen=True, slots=True)
class Passed:
    """What the batch read, and what Spark says of it."""

    batch_id: int
    start: Mapping[str, Offsets]
    """By topic; one that is missing was read from its beginning."""
    end: Mapping[str, Offsets]
    """Empty when the batch read nothing."""
    watermark: int
    """What had passed before the batch, in milliseconds: older windows are closed."""
    dropped: int
    """How many rows Spark dropped for being late; a row may stand for several records."""
    recovering: bool
    """True when the batch may have been written before: then Spark may not have counted."""
    epoch: str


def behind(flow: str, task: str, topic: str, batch: Passed, previous: int | None) -> TaskWrite:
    """The write of something behind a batch; `previous` is the last batch that had such a write."""
    return TaskWrite(
        flow=flow,
        task=task,
        batch_id=batch.batch_id,
        topic=topic,
        tokens_topic=COMMITS_TOPIC,
        previous_batch=previous,
        recovering=batch.recovering,
        epoch=batch.epoch,
    )
