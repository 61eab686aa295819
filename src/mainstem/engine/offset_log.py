"""The positions in a flow's checkpoint, and taking topics out of them that are not what they were.

Spark keeps two that matter: behind the last batch that is done, and behind one that was begun, if
there is one. It runs a begun batch again exactly as it was planned, topics that are gone included,
and fails. A topic that was made again under its old name has records below the old position; they
are read once the position has no such topic. Nothing of those records was read before, so nothing
comes twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from mainstem.engine.java import java_class
from mainstem.engine.status import offsets_in
from mainstem.vocabulary import Offsets

Positions = Mapping[str, Offsets]
_HEAD_LINES = 2
"""Version and settings; then a line for each input."""
_FILE_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$"


@dataclass(frozen=True, slots=True)
class Lost:
    """Topics to be taken out of the position behind the last batch, and out of the begun one."""

    done: frozenset[str]
    begun: frozenset[str]


def lost_topics(done: Positions, begun: Positions, ends: Positions) -> Lost:
    """Which topics are gone, or were made again; `ends` are those of the topics that are there."""
    remade = {
        topic
        for topic in done.keys() & ends.keys()
        if _behind(ends[topic], done[topic]) or _behind(begun.get(topic, done[topic]), done[topic])
    }
    unreadable = {t for t, at in begun.items() if t not in ends or _behind(ends[t], at)}
    return Lost(frozenset(remade | (unreadable & done.keys() & ends.keys())), frozenset(unreadable))


def _behind(first: Offsets, second: Offsets) -> bool:
    return any(first.get(partition, 0) < offset for partition, offset in second.items())


def readable(start: Positions, end: Positions, begins: Positions) -> bool:
    """True when the log still holds all between two positions; a missing start is the beginning."""
    for topic, offsets in end.items():
        for partition, offset in offsets.items():
            first = start.get(topic, {}).get(partition, 0)
            if first < offset and (topic not in begins or begins[topic].get(partition, 0) > first):
                return False
    return True


class OffsetLog:
    """The offset log of one flow; only for a flow that is not running."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        context: Any = spark.sparkContext
        self._path = java_class("org.apache.hadoop.fs.Path")
        managers = getattr(java_class(_FILE_MANAGERS), "MODULE$")
        root = self._path(checkpoint)
        self._files = managers.create(root, context._jsc.hadoopConfiguration())
        self._checkpoint = checkpoint

    def forget_lost(
        self, mine: Callable[[str], bool], ends: Callable[[Iterable[str]], Positions]
    ) -> int:
        """Takes lost topics out, of those that are `mine`.

        Gives the number of records that the begun batch lost by that: whoever writes it must split
        it as it was.
        """
        batches, commits = self._numbers("offsets"), self._numbers("commits")
        if not batches:
            return 0
        last = batches[-1]
        in_flight = last not in commits
        begun = self._lines(last) if in_flight else None
        before = last - 1 if in_flight else last
        done = self._lines(before) if before in batches else None
        at_done, at_begun = _positions(done, mine), _positions(begun, mine)
        lost = lost_topics(at_done, at_begun, ends({*at_done, *at_begun}))
        # in this order: a crash between the two leaves a batch that the next look finds as well
        if done is not None and lost.done:
            self._write(before, _without(done, lost.done))
        if begun is not None and lost.begun:
            self._write(last, _without(begun, lost.begun))
        return sum(
            max(0, offset - at_done.get(topic, {}).get(partition, 0))
            for topic in lost.begun
            for partition, offset in at_begun[topic].items()
        )

    def run_last_again(self, begins: Callable[[Iterable[str]], Positions]) -> None:
        """Lets Spark run the last batch once more, unless the log has let go of its records.

        A query that is started plans no batch before there are records, not even one that only
        closes windows; behind a batch it does. What the batch wrote is there with its token.
        """
        batches, commits = self._numbers("offsets"), self._numbers("commits")
        if not batches or batches[-1] not in commits:
            return
        last = batches[-1]
        before = self._lines(last - 1) if last - 1 in batches else None
        start, end = _positions(before, _any), _positions(self._lines(last), _any)
        if readable(start, end, begins(end)):
            self._files.delete(self._path(f"{self._checkpoint}/commits/{last}"))

    def _numbers(self, folder: str) -> list[int]:
        path = self._path(f"{self._checkpoint}/{folder}")
        if not self._files.exists(path):
            return []
        names = (str(status.getPath().getName()) for status in self._files.list(path))
        return sorted(int(name) for name in names if name.isdigit())

    def _lines(self, batch: int) -> list[str]:
        stream = self._files.open(self._path(f"{self._checkpoint}/offsets/{batch}"))
        try:
            return bytes(stream.readAllBytes()).decode().split("\n")
        finally:
            stream.close()

    def _write(self, batch: int, lines: list[str]) -> None:
        path = self._path(f"{self._checkpoint}/offsets/{batch}")
        stream = self._files.createAtomic(path, True)
        try:
            stream.write(bytearray("\n".join(lines).encode()))
            stream.close()
        except BaseException:
            stream.cancel()
            raise


def _any(_: str) -> bool:
    return True


def _positions(lines: list[str] | None, mine: Callable[[str], bool]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for line in (lines or [])[_HEAD_LINES:]:
        found |= {t: at for t, at in _offsets(line).items() if mine(t)}
    return found


def _without(lines: list[str], topics: frozenset[str]) -> list[str]:
    kept = []
    for number, line in enumerate(lines):
        if number >= _HEAD_LINES and topics & _offsets(line).keys():
            left = {t: at for t, at in json.loads(line).items() if t not in topics}
            kept.append(json.dumps(left, separators=(",", ":")))
        else:
            kept.append(line)
    return kept


def _offsets(line: str) -> dict[str, dict[int, int]]:
    return offsets_in(line) if line.startswith("{") else {}
