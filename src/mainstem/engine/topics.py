"""Topics of a wildcard stream come and go: what its flows go on without, and what they do not.

Spark knows one switch for all kinds of loss. Off, it goes on without a word; on, a flow over a
pattern would fail for good when one of a hundred topics is deleted. So it is off for patterns, and
before a batch is written the writer asks here:

- A topic that is gone was deleted with its records, by somebody who may do that: the flow goes on.
- Records that aged out of a topic before they were read are a loss: the flow stops, as any other.
- A topic that was deleted and made again begins from nothing, and Spark would leave out what is
  below the old position: the flow stops, and its next start takes the topic up from its beginning.
  (One that has more records by then than were read of the old one cannot be told from it.)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from mainstem.definitions.model import Definition
from mainstem.definitions.patterns import TopicPattern
from mainstem.engine.offset_log import OffsetLog
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.vocabulary import Offsets

_LOG = logging.getLogger(__name__)


def wildcard_topics(name: str, inputs: Sequence[Definition], admin: Admin) -> WildcardTopics | None:
    """The topics of a flow's wildcard inputs; None when it has no such input."""
    patterns = [source.pattern for source in inputs if source.pattern is not None]
    return WildcardTopics(name, patterns, admin) if patterns else None


class WildcardTopics:
    """The topics that the patterns of one flow stand for."""

    def __init__(self, flow: str, patterns: Sequence[TopicPattern], admin: Admin) -> None:
        self._flow = flow
        self._patterns = patterns
        self._admin = admin

    def forget_lost(self, spark: SparkSession, checkpoint: str) -> int:
        """Takes topics that are gone or were made again out of the checkpoint of a stopped flow.

        Gives the number of records that its begun batch lost by that.
        """
        return OffsetLog(spark, checkpoint).forget_lost(self._mine, self._admin.all_end_offsets)

    def watch(self, start: Mapping[str, Offsets], end: Mapping[str, Offsets]) -> None:
        """What the writer asks before a batch is written."""
        mine = set(filter(self._mine, start))
        for topic in sorted(mine - end.keys()):
            _LOG.info("flow %s: topic %s was deleted", self._flow, topic)
        for topic, begin in self._admin.all_begin_offsets(mine & end.keys()).items():
            _check(self._flow, topic, begin, start[topic], end[topic])

    def _mine(self, topic: str) -> bool:
        return any(pattern.matches(topic) for pattern in self._patterns)


def _check(name: str, topic: str, begin: Offsets, start: Offsets, end: Offsets) -> None:
    spans = {p: (first, start.get(p, first), end.get(p, first)) for p, first in begin.items()}
    remade = any(new < old for _, old, new in spans.values())
    if remade and any(first < min(old, new) for first, old, new in spans.values()):
        raise MainstemError("FLOW_TOPIC_REMADE", name=name, topic=topic)
    for partition, (first, old, new) in spans.items():
        if old < min(first, new):
            problem = f"{topic}-{partition} was read up to {old} and now begins at {first}"
            raise MainstemError("FLOW_DATA_LOST", name=name, problem=problem)
