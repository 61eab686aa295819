"""The keeper of the quarantine: finds records that flows had to leave out, and keeps them whole.

Flows only count bad records (see `decode`), which costs next to nothing. When a batch had some,
the keeper reads that range of the topic again, picks the bad records and writes them to the
quarantine together with its own position (group `mainstem.quarantine.<topic>`) in one
transaction: however often a range is read, and however many flows read the stream, a bad record
is kept exactly once. How many records broke each rule, those among them that are dropped, is
written in the same transaction (`rule_counts`). Where several streams have records of their own
names in one topic, each has a position for the bad ones of its name, and they share the topic's for
those without a name. A crash before the transaction leaves the position where it was, and the next
report of any flow of the stream, or its start, covers the gap.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Row, SparkSession

from mainstem.definitions.model import Definition, Format, OnViolation
from mainstem.definitions.rules import told
from mainstem.engine.decode import read_bad, read_dropped
from mainstem.engine.formats import Formats
from mainstem.engine.rules import has, judged
from mainstem.engine.spark_errors import short
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.quarantine import quarantined
from mainstem.log.rule_counts import RuleCounts, counted, read_rule_counts
from mainstem.vocabulary import (
    QUARANTINE_COUNTS_TOPIC,
    QUARANTINE_TOPIC,
    Clock,
    Column,
    Offsets,
    Record,
    group_of,
)

_LOG = logging.getLogger(__name__)
_SAVE_EVERY_SECONDS = 10.0
_RECORDS_PER_TRANSACTION = 1000


@dataclass(frozen=True, slots=True)
class Report:
    """What a flow saw of a stream: a range of it, and how many bad records (None: not counted)."""

    stream: Definition
    start: Mapping[str, Offsets]
    """By topic: a wildcard stream has many. One that is missing was read from its beginning."""
    end: Mapping[str, Offsets]
    bad: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a stream's bad records, with the keeper's position for them."""

    where: str
    """A stream's own: where it reads is a topic or a pattern. Of a stream whose records have a name
    it is also that."""
    named: bool | None = None
    """As `decode.bad_records` has it."""

    @property
    def group(self) -> str:
        """The group that has the position."""
        return group_of(f"quarantine.{self.where}")


def parts_of(stream: Definition) -> tuple[Part, ...]:
    """What the keeper looks through for a stream."""
    if stream.record is None:
        return (Part(stream.topic),)
    return Part(f"{stream.topic}/{stream.record}", named=True), Part(stream.topic, named=False)


class Keeper:
    """Takes reports from any thread; works in one thread of its own."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        admin: Admin,
        clock: Clock,
        formats: Formats,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._admin = admin
        self._clock = clock
        self._formats = formats
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._positions: dict[Part, dict[str, dict[int, int]]] = {}
        self._saved_at: dict[Part, float] = {}
        self._unsaved: set[Part] = set()
        self._kept: dict[str, int] = {}
        self._counts: dict[Part, RuleCounts] = {}
        """Of streams with rules."""
        self._thread = threading.Thread(target=self._work, name="quarantine", daemon=True)

    def start(self) -> None:
        """Begins to work on reports."""
        self._thread.start()

    def stop(self) -> None:
        """Finishes what was reported, saves positions and ends."""
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join(30)

    def report(self, report: Report) -> None:
        """Takes note of what a flow saw; returns at once."""
        self._waiting.put(partial(self._handle, report))

    def forget(self, stream: Definition) -> None:
        """A reader of the stream ended: where it was kept up to is read from the log again.

        A topic may have been dropped, and a new one of the same name begins from nothing.
        """
        self._waiting.put(partial(self._forget, stream))

    def kept(self, stream: str) -> int:
        """Records of the stream that were put into quarantine since the engine started."""
        return self._kept.get(stream, 0)

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            self._try(work)
        for part in list(self._unsaved):
            self._try(partial(self._save, part))

    @staticmethod
    def _try(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the next report covers the same range again
            _LOG.warning("quarantine: %s", short(error))

    def _handle(self, report: Report) -> None:
        report = replace(report, stream=judged(report.stream))
        for part in parts_of(report.stream):
            self._look_through(report, part)

    def _look_through(self, report: Report, part: Part) -> None:
        position = self._position(report, part)
        ahead = {
            topic: {p: o for p, o in end.items() if o > position[topic].get(p, 0)}
            for topic, end in report.end.items()
            if topic in position  # it may be gone by now, and its records with it
        }
        ahead = {topic: offsets for topic, offsets in ahead.items() if offsets}
        if not ahead:
            return
        start = {topic: dict(position[topic]) for topic in ahead}
        end = {topic: {**start[topic], **offsets} for topic, offsets in ahead.items()}
        covered = all(
            offset <= start[topic].get(p, 0)
            for topic in ahead
            for p, offset in report.start.get(topic, {}).items()
        )
        if report.bad == 0 and covered:
            position.update(end)
            self._unsaved.add(part)
            if self._clock.now() - self._saved_at.get(part, 0.0) >= _SAVE_EVERY_SECONDS:
                self._save(part)
            return
        there = self._admin.all_end_offsets(end)
        for topic in [t for t in end if _beyond(end[t], there.get(t, {}))]:
            # gone, or made again: what was reported is no more, and the next report begins anew
            del position[topic], start[topic], end[topic]
        if not end:
            return
        if not self._keep(report.stream, part, start, end, there):
            self._forget_part(part)
            self._look_through(report, part)
            return
        position.update(end)
        self._unsaved.discard(part)

    def _keep(
        self,
        stream: Definition,
        part: Part,
        start: Mapping[str, Offsets],
        end: Mapping[str, Offsets],
        there: Mapping[str, Offsets],
    ) -> bool:
        """Keeps the bad records of a range; False when the log knows of a later position."""
        broken: Counter[str] = Counter()
        counts = self._counts.get(part)
        kept = 0
        # from here on the position is final, and whoever else is at it fails
        producer = TransactionalProducer(self._connection, part.group)
        try:
            if self._is_kept(part, start, there):
                return False
            session = self._spark.newSession()
            parts = (session, stream, self._connection, self._formats, start, end)
            if has(stream, OnViolation.DROP) and part.named is not False:
                broken.update({row.rule: row.records for row in read_dropped(*parts).collect()})
            rows = read_bad(*parts, named=part.named).toLocalIterator()
            bad = self._bad(rows, stream, broken)
            with producer.transaction() as transaction:
                # one transaction for the whole range: the position moves only when all are kept
                for chunk in _chunks(bad):
                    transaction.send(QUARANTINE_TOPIC, chunk)
                    kept += len(chunk)
                transaction.offsets(part.group, end)
                if counts is not None and broken:
                    # at the end: who follows the topic waits for transactions that write to it
                    counts = counts.and_more(broken, end)
                    transaction.send(QUARANTINE_COUNTS_TOPIC, [counted(stream.name, counts)])
        finally:
            producer.close()
        # only now: before the commit nobody can read them, and a range that failed is read again
        self._kept[stream.name] = self._kept.get(stream.name, 0) + kept
        if counts is not None:
            self._counts[part] = counts
        return True

    def _is_kept(
        self, part: Part, start: Mapping[str, Offsets], there: Mapping[str, Offsets]
    ) -> bool:
        """True when some of what is behind a position was kept: by another engine, say."""
        for topic, offsets in start.items():
            saved = self._admin.group_offsets(part.group, topic)
            ends = there.get(topic, {})  # what is beyond is of an earlier topic of that name
            if any(offsets.get(p, 0) < at <= ends.get(p, 0) for p, at in saved.items()):
                return True
        return False

    def _bad(
        self, rows: Iterator[Row], stream: Definition, broken: Counter[str]
    ) -> Iterator[Outgoing]:
        """The rows as records of the quarantine; the rules that they break are counted."""
        for row in rows:
            broken.update(row.broken or ())
            yield _outgoing(row, stream, self._clock, self._formats)

    def _position(self, report: Report, part: Part) -> dict[str, dict[int, int]]:
        """Where the keeper is in the report's topics that are there, from the log if need be."""
        if part not in self._positions:
            # ends what a keeper that crashed left open: its position is final after this
            TransactionalProducer(self._connection, part.group).close()
        known = self._positions.setdefault(part, {})
        for topic in report.start.keys() - report.end.keys():
            known.pop(topic, None)  # deleted; one of the same name begins from nothing
        new = [topic for topic in report.end if topic not in known or topic not in report.start]
        begins = self._admin.all_begin_offsets(new)
        ends = self._admin.all_end_offsets(new)
        for topic in new:
            begin, end = begins.get(topic), ends.get(topic)
            if begin is None or end is None:
                known.pop(topic, None)
                continue
            saved = self._admin.group_offsets(part.group, topic)
            # outside of what the topic holds: records aged out, or the topic was made anew
            known[topic] = {
                p: saved[p] if p in saved and first <= saved[p] <= end.get(p, 0) else first
                for p, first in begin.items()
            }
        if report.stream.rules and part.named is not False and part not in self._counts:
            counts = read_rule_counts(self._connection, self._admin, report.stream.name)
            # topics of a wildcard stream come and go; what was counted of them stays
            anew = report.stream.pattern is None and counts.of_another(known)
            self._counts[part] = RuleCounts() if anew else counts
        return known

    def _save(self, part: Part) -> None:
        self._saved_at[part] = self._clock.now()
        self._admin.commit_offsets(part.group, self._positions[part])
        self._unsaved.discard(part)

    def _forget(self, stream: Definition) -> None:
        for part in parts_of(stream):
            self._forget_part(part)

    def _forget_part(self, part: Part) -> None:
        self._positions.pop(part, None)
        self._counts.pop(part, None)
        self._unsaved.discard(part)


def _beyond(offsets: Offsets, ends: Offsets) -> bool:
    return any(offset > ends.get(partition, 0) for partition, offset in offsets.items())


def _chunks(records: Iterator[Outgoing]) -> Iterator[list[Outgoing]]:
    chunk: list[Outgoing] = []
    for record in records:
        chunk.append(record)
        if len(chunk) == _RECORDS_PER_TRANSACTION:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _outgoing(row: Row, stream: Definition, clock: Clock, formats: Formats) -> Outgoing:
    record = Record(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        key=None if row.key is None else bytes(row.key),
        value=None if row.value is None else bytes(row.value),
        timestamp=int(row.timestamp.timestamp() * 1000),
        headers=tuple(
            (h.key, None if h.value is None else bytes(h.value)) for h in row.headers or ()
        ),
    )
    if row.broken:
        stage = "rule"
        error = MainstemError("RULE_BROKEN", name=stream.name, rules=told(stream, row.broken))
    elif row.mistaken is not None:
        stage = "time"
        error = MainstemError("EVENT_TIME_OUT_OF_BOUNDS", name=stream.name, problem=row.mistaken)
    else:
        stage = "decode"
        problem = diagnose(record.value or b"", stream, formats, record.key)
        error = MainstemError("RECORD_NOT_DECODED", name=stream.name, problem=problem)
    return quarantined(
        record,
        stage=stage,
        reader=stream.name,
        code=error.code,
        cause=error.message,
        at=clock.now(),
    )


_SCALARS: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "tinyint": (int,),
    "smallint": (int,),
    "int": (int,),
    "bigint": (int,),
    "float": (int, float, str),
    "double": (int, float, str),
    "timestamp": (str, int),
    "date": (str, int),
}


def diagnose(value: bytes, definition: Definition, formats: Formats, key: bytes | None) -> str:
    """Why a record does not fit the columns, as near as can be told without Spark."""
    if definition.keys is not None and key is not None:
        problem = formats.key_problem(definition.keys, key)
        if problem is not None:
            return problem
    if definition.format is Format.JSON:
        return diagnose_json(value, definition.value_columns)
    return formats.problem(definition, value)


def diagnose_json(value: bytes, columns: tuple[Column, ...]) -> str:
    """Why a value does not fit the columns, as near as plain JSON tells."""
    try:
        document = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(document, dict):
        return f"a JSON object was expected, not {type(document).__name__}"
    for column in columns:
        field = document.get(column.name)
        kinds = _SCALARS.get(column.type)
        if field is None or kinds is None:
            continue
        wrong_kind = not isinstance(field, kinds) or (isinstance(field, bool) and bool not in kinds)
        if wrong_kind:
            return f'field "{column.name}" is not a {column.type}'
    return "a field does not fit its column's type"
