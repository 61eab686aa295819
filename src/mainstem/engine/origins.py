"""Rows of inputs with the places of their records, and the events at some places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.late import RECORD
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.origins import ORIGIN
from mainstem.engine.decode import quoted, read_between
from mainstem.engine.encode import JSON_OPTIONS, row_id
from mainstem.engine.formats import Formats
from mainstem.engine.held_table import latest_of
from mainstem.engine.ranges import load_between
from mainstem.engine.table_records import changes_in
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.schemas import wire
from mainstem.vocabulary import Offsets


class Place(NamedTuple):
    """Where a record is, and the stream or table whose record it is."""

    source: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """A record of a stream or table: where and when, and its row as JSON."""

    place: Place
    time: int
    """Milliseconds since the epoch."""
    schema_id: int | None
    text: str
    id: str
    """Of a table: the key as JSON."""


class Inputs:
    """Reads inputs from the log, each row with its record."""

    def __init__(
        self, session: SparkSession, connection: Connection, formats: Formats, admin: Admin
    ) -> None:
        self._session = session
        self._connection = connection
        self._formats = formats
        self._admin = admin

    def extent(self, source: Definition) -> tuple[dict[str, Offsets], dict[str, Offsets]]:
        """Where the topics of an input begin and end."""
        topics = self._admin.topics_of(source)
        begin, end = self._admin.all_begin_offsets(topics), self._admin.all_end_offsets(topics)
        return {t: begin[t] for t in begin if t in end}, {t: end[t] for t in end if t in begin}

    def rows(
        self, source: Definition, metadata: Collection[str] = (), before: int | None = None
    ) -> DataFrame:
        """The rows of a stream, or those of a table as they are, with `ORIGIN` and `RECORD`.

        With `before`, without the records of a later time (in milliseconds).
        """
        rows = self._records(source, metadata, *self.extent(source))
        if before is not None:
            rows = rows.filter(F.unix_millis(F.col(RECORD)["timestamp"]) <= F.lit(before))
        if source.kind is Kind.TABLE:
            rows = latest_of(rows).filter(~F.col("_gone"))
        return _with_origin(rows, source)

    def rows_at(
        self, source: Definition, places: Collection[Place], metadata: Collection[str] = ()
    ) -> DataFrame:
        """The rows of some records, all of them of this input, whether newer ones came or not."""
        _, end = self.extent(source)
        start: dict[str, dict[int, int]] = {}
        stop: dict[str, dict[int, int]] = {}
        for topic in {place.topic for place in places} or end:
            # partitions without a wanted record are read from their end on
            start[topic], stop[topic] = dict(end[topic]), dict(end[topic])
        for _, topic, partition, offset in sorted(places):
            start[topic][partition] = min(start[topic][partition], offset)
            stop[topic][partition] = offset + 1
        rows = _with_origin(self._records(source, metadata, start, stop), source)
        return at_places(rows, places)

    def events(self, source: Definition, places: Collection[Place]) -> dict[Place, Event]:
        """The events at some places."""
        rows = self.rows_at(source, places)
        found = rows.select(RECORD, row_text(source).alias("text"), row_id(source).alias("id"))
        events = (_event(source, row) for row in found.collect())
        return {event.place: event for event in events}

    def _records(
        self,
        source: Definition,
        metadata: Collection[str],
        start: Mapping[str, Offsets],
        end: Mapping[str, Offsets],
    ) -> DataFrame:
        if source.kind is not Kind.TABLE:
            parts = (self._session, source, self._connection, self._formats)
            return read_between(*parts, start, end, metadata=metadata)
        raw = load_between(self._session, source, self._connection, (), start, end)
        raw = raw.select("*", F.struct(*raw.columns).alias("record"))
        changes = changes_in(raw, source, self._formats, ("record",))
        return changes.withColumnRenamed("_record", RECORD)


def _with_origin(rows: DataFrame, source: Definition) -> DataFrame:
    told = rows.drop("_gone", "_partition", "_offset", "_id") if source.kind is Kind.TABLE else rows
    return told.select("*", F.array(_place(source)).alias(ORIGIN))


def row_text(definition: Definition) -> Column:
    """A row as JSON, as the log has it."""
    columns = (F.col(quoted(column.name)) for column in definition.columns)
    return F.to_json(F.struct(*columns), JSON_OPTIONS)


def at_places(rows: DataFrame, places: Collection[Place]) -> DataFrame:
    """Those of some rows with `ORIGIN` whose records are at these places."""
    wanted = _text(F.col(ORIGIN)[0]).isin(*map(_key, places)) if places else F.lit(False)
    return rows.filter(wanted)


def place_of(row: Any) -> Place:
    """An element of `ORIGIN`."""
    return Place(row.s, row.t, row.p, row.o)


def _place(source: Definition) -> Column:
    record = F.col(RECORD)
    return F.struct(
        F.lit(source.name).alias("s"),
        record["topic"].alias("t"),
        record["partition"].alias("p"),
        record["offset"].alias("o"),
    )


def _text(place: Column) -> Column:
    return F.concat_ws(" ", place["t"], place["p"], place["o"])


def _key(place: Place) -> str:
    return f"{place.topic} {place.partition} {place.offset}"


def _event(source: Definition, row: Any) -> Event:
    record = row[RECORD]
    schema_id = None
    if source.format.registered and record.value is not None:
        schema_id = wire.schema_id(bytes(record.value))
    place = Place(source.name, record.topic, record.partition, record.offset)
    return Event(place, round(record.timestamp.timestamp() * 1000), schema_id, row.text, row.id)
