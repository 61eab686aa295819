"""How `mainstem consume` reads: alone from a position to the end or on, or as a group's member."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from mainstem.cli.context import Session
from mainstem.cli.output import Format, RowWriter
from mainstem.cli.positions import last_records, parse_start, start_offsets
from mainstem.cli.record_text import COLUMNS, compile_format, envelope
from mainstem.cli.registered import RegisteredValues
from mainstem.definitions.patterns import TopicPattern, parse_pattern
from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.admin import Admin
from mainstem.log.consumer import GroupConsumer, Reader, read_range
from mainstem.vocabulary import Offsets, Record

_POLL_SECONDS = 0.5
_POLL_RECORDS = 1_000
_LOOK_FOR_TOPICS_SECONDS = 1.0


class Sink(Protocol):
    """Where records go, one after the other."""

    def __enter__(self) -> Sink: ...

    def __exit__(self, *_: object) -> None: ...

    def write(self, records: Iterable[Record]) -> None:
        """Print records and let the reader see them."""
        ...


class _Rows:
    def __init__(self, form: Format, read: RegisteredValues) -> None:
        self._writer = RowWriter(form, COLUMNS)
        self._read = read

    def __enter__(self) -> _Rows:
        self._writer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.__exit__()

    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            self._writer.row(envelope(record, self._read, self._read.key))
        self._writer.flush()


class _Formatted:
    def __init__(self, text: str) -> None:
        self._encode = compile_format(text)

    def __enter__(self) -> _Formatted:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def write(self, records: Iterable[Record]) -> None:
        sys.stdout.flush()
        for record in records:
            sys.stdout.buffer.write(self._encode(record))
        sys.stdout.buffer.flush()


def sink_for(session: Session, text: str | None) -> Sink:
    """Rows in the output format (JSON lines when none was asked for), or a format string."""
    return (
        _Rows(session.form(Format.JSONL), RegisteredValues(session))
        if text is None
        else _Formatted(text)
    )


class Consumption:
    """One run of `consume`, over the topic of a stream or over all those of a wildcard stream."""

    def __init__(self, session: Session, target: str, *, count: int | None, follow: bool) -> None:
        self._session = session
        self._left = count
        self._follow = follow
        self._admin = Admin(session.connection)
        self._pattern: TopicPattern | None = None
        self._topics = self._resolve(target)
        self.shown = 0
        self.position: dict[str, dict[int, int]] = {}
        """Topic -> partition -> next offset, for the user to go on from."""

    def close(self) -> None:
        """Give back the connection."""
        self._admin.close()

    def alone(self, start_text: str, sink: Sink) -> None:
        """Read from a position, without a group."""
        start = parse_start(start_text)
        connection = self._session.connection
        begins = self._admin.all_begin_offsets(self._topics)
        ends = self._admin.all_end_offsets(begins)
        if isinstance(start, int) and start < 0:
            last = [
                record
                for topic, end in ends.items()
                for record in last_records(connection, topic, -start, begins[topic], end)
            ]
            last.sort(key=lambda r: (r.timestamp, r.topic, r.partition, r.offset))
            self._show(last[start:], sink)
            offsets = ends
        else:
            offsets = {
                topic: start_offsets(self._admin, topic, start, begins[topic], end)
                for topic, end in ends.items()
            }
        for topic, at in offsets.items():
            self.position[topic] = {**at, **self.position.get(topic, {})}
        if self._follow:
            self._follow_on(offsets, sink)
            return
        for topic, end in ends.items():
            for batch in read_range(connection, topic, offsets[topic], end):
                if self._finished:
                    return
                self._show(batch, sink)

    def _follow_on(self, offsets: Mapping[str, Offsets], sink: Sink) -> None:
        reader = Reader(self._session.connection, offsets)
        known = set(offsets)
        looked_at = time.monotonic()
        try:
            while not self._finished:
                self._show(reader.poll(_POLL_RECORDS, _POLL_SECONDS), sink)
                if self._pattern and time.monotonic() - looked_at > _LOOK_FOR_TOPICS_SECONDS:
                    looked_at = time.monotonic()
                    there = self._admin.matching(self._pattern)
                    new = self._admin.all_begin_offsets(t for t in there if t not in known)
                    for topic in known.difference(there):
                        reader.remove(topic)
                    for topic, begin in new.items():
                        reader.add(topic, begin)
                    known = known.intersection(there) | new.keys()
        finally:
            reader.close()

    def as_group(self, group: str, start: str, sink: Sink) -> None:
        """Read as a member of a group; what was shown is committed, so nothing is skipped."""
        ends = self._admin.all_end_offsets(self._topics)
        consumer = GroupConsumer(self._session.connection, group, list(ends), start=start)
        try:
            while not self._finished:
                wanted = min(self._left or _POLL_RECORDS, _POLL_RECORDS)
                records = consumer.poll(wanted, _POLL_SECONDS)
                self._show(records, sink)
                if records:
                    consumer.commit()
                elif not self._follow and all(
                    self._caught_up(consumer, group, start, topic, end)
                    for topic, end in ends.items()
                ):
                    return
        finally:
            consumer.close()

    def _caught_up(
        self, consumer: GroupConsumer, group: str, start: str, topic: str, end: dict[int, int]
    ) -> bool:
        """True when nothing is left before `end` for this member, or for all when it has no part.

        Offsets alone do not tell: the last ones may be transaction markers.
        """
        fresh = end if start == "latest" else self._admin.begin_offsets(topic)
        place = {**fresh, **self._admin.group_offsets(group, topic)}
        mine = consumer.assignment().get(topic) or list(end)
        rest = read_range(
            self._session.connection, topic, place, {p: end[p] for p in mine if p in end}
        )
        return next(rest, None) is None

    @property
    def _finished(self) -> bool:
        return self._left is not None and self._left <= 0

    def _show(self, records: list[Record], sink: Sink) -> None:
        if self._left is not None:
            records = records[: self._left]
            self._left -= len(records)
        if not records:
            return
        sink.write(records)
        self.shown += len(records)
        for record in records:
            self.position.setdefault(record.topic, {})[record.partition] = record.offset + 1

    def _resolve(self, target: str) -> list[str]:
        """The topics of a stream or table of that name, or the topic of that name itself."""
        try:
            found = self._session.client.object(target)
            if not found.get("wildcard"):
                return [str(found["topic"])]
            self._pattern = parse_pattern(str(found["topic"]))
            return self._admin.matching(self._pattern)
        except MainstemError as error:
            if error.code not in ("UNKNOWN_RELATION", "GATEWAY_UNREACHABLE", "NOT_RUNNING"):
                raise
        if self._admin.topic(target) is None:
            known = [topic.name for topic in self._admin.topics()]
            raise MainstemError(
                "UNKNOWN_TOPIC", topic=target, suggestion=did_you_mean(target, known)
            )
        return [target]
