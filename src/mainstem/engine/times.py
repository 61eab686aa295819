"""A record's event time, and which event times are taken for a mistake.

One record with the year 3000 would take the watermark there, and everything after it would be
late. So an event time that is NULL, too far after the record's own time stamp, or too far before
it goes into the quarantine. Only what the log holds decides, never the clock: a flow that reads
the record again, and the keeper of the quarantine, come to the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.event_time import TIME_TYPES
from mainstem.definitions.model import Definition
from mainstem.definitions.options import milliseconds
from mainstem.engine.attempt import attempt
from mainstem.engine.spark_errors import query_error
from mainstem.errors import MainstemError
from mainstem.vocabulary import EVENT_TIME, METADATA_COLUMNS, Column

MAX_AHEAD = "1 day"
"""How far ahead of its own time stamp a record may be, unless its stream says otherwise."""
_FIRST = "1971-01-01T00:00:00Z"
"""Seconds that were taken for milliseconds end in January 1970, whatever year they mean."""
_FOREVER = "forever"
_LONGEST = 1 << 62
"""Microseconds that may be added to any time stamp of a record."""
_SHOWN = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"


def expression(definition: Definition) -> SparkColumn | None:
    """The event time as an expression over the row; NULL where it fails; None: it is a column."""
    query = definition.time
    if query is None:
        return None
    if definition.processing_time:
        return F.current_timestamp()  # Spark notes it with the batch: a replay has the same
    # a record that makes the expression fail would fail the flow each time it is read
    return attempt(F.expr(query.text.removeprefix("SELECT ")))


def metadata_read(definition: Definition) -> Collection[str]:
    """Metadata columns that the event time is made of."""
    if definition.time is None:
        return ()
    return [name for name in METADATA_COLUMNS if name in definition.time.columns_read]


def mistaken(definition: Definition, time: SparkColumn, recorded: SparkColumn) -> SparkColumn:
    """What is wrong with the event time of a record that was `recorded` then; NULL: nothing."""
    if definition.event_time is None or definition.processing_time:
        return F.lit(None).cast("string")
    moment = time.cast("timestamp")
    shown = F.date_format(moment, _SHOWN)
    stamp = F.date_format(recorded, _SHOWN)
    # numbers: to add an interval to a time, Spark asks the calendar of the time zone
    micros, stamped = F.unix_micros(moment), F.unix_micros(recorded)
    wrong = F.when(time.isNull(), F.lit("it is NULL"))
    ahead, behind = definition.max_ahead or MAX_AHEAD, definition.max_behind
    if ahead != _FOREVER:
        said = F.concat(
            F.lit("it is "), shown, F.lit(f", more than {ahead} after the record's own "), stamp
        )
        wrong = wrong.when(micros > stamped + _micros(ahead), said)
    if behind is None:
        said = F.concat(F.lit("it is "), shown, F.lit(", before 1971"))
        wrong = wrong.when(moment < F.lit(_FIRST).cast("timestamp"), said)
    elif behind != _FOREVER:
        said = F.concat(
            F.lit("it is "), shown, F.lit(f", more than {behind} before the record's own "), stamp
        )
        wrong = wrong.when(micros < stamped - _micros(behind), said)
    return wrong


def check_expression(
    session: SparkSession, definition: Definition, columns: Sequence[Column]
) -> None:
    """Refuse an expression that Spark cannot compute of these columns, or that gives no time."""
    query = definition.time
    if query is None:
        return
    fields = [f"`{column.name.replace('`', '``')}` {column.type}" for column in columns]
    fields += [f"{name} {kind}" for name, kind in METADATA_COLUMNS.items()]
    empty: DataFrame = session.createDataFrame([], ", ".join(fields))
    empty.createOrReplaceTempView("_mainstem_record")
    try:
        [found] = session.sql(f"{query.text} FROM _mainstem_record").schema.fields
    except PySparkException as error:
        raise query_error(error, query) from None
    kind = found.dataType.simpleString()
    if kind not in TIME_TYPES:
        text, start = query.text.removeprefix("SELECT "), query.location
        raise MainstemError(
            "INVALID_OPTION",
            location=replace(start, column=start.column + len("SELECT ")),
            option="event_time",
            value=text,
            problem=f"it is a {kind.upper()}, not a TIMESTAMP",
            advice=f"Make a time of it: timestamp_millis({text}), to_timestamp({text}).",
        )


def event_time_type(definition: Definition) -> str:
    """Spark's type of the column `_event_time`."""
    column = definition.column(definition.event_time or EVENT_TIME)
    return "timestamp" if column is None else column.type


def _micros(interval: str) -> SparkColumn:
    length = milliseconds(interval)
    assert length is not None, interval  # `definitions.options` lets nothing else through
    return F.lit(min(length * 1000, _LONGEST)).cast("bigint")
