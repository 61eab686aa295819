"""Captured changes -> columns, in Spark: one parse of a payload, then what its numbers mean.

The payload is parsed to types that depend on the columns alone, so all versions are parsed alike;
decimals, bytes and times with a zone are read by the parser itself. What is left (`change_column`)
is made of the parsed row, in a step of its own: there Spark would parse anew for every field.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields
from mainstem.engine.attempt import attempt
from mainstem.engine.formats import NEW_CHANGE, Versions
from mainstem.engine.spark_errors import complaint
from mainstem.schemas.changes import (
    BEGIN,
    NO_NUMBERS,
    PAYLOAD,
    SNAPSHOT,
    SNAPSHOT_PARTS,
    ChangeReading,
    unavailable,
)

_SIDES = ("before", "after")
_SOURCE = "struct<lsn:bigint,txId:bigint,ts_us:bigint,file:string,pos:bigint,snapshot:string>"
_RAW = {"date": "int", "timestamp_ntz": "bigint"}
_BOUNDS = {
    # the years 1 to 9999: what is beyond has no text that all would read, infinity among it
    "date": (-719_162, 2_932_896),
    "timestamp_ntz": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
_DAY_MICROS = 86_400_000_000
_FRAMED = (
    f"startswith(value, X'{BEGIN.hex()}') AND contains(value, X'{PAYLOAD.hex()}')"
    " AND is_valid_utf8(CAST(value AS STRING))"
)


def parsed_change(definition: Definition, versions: Versions) -> SparkColumn:
    """The payload of a record of a known version; NULL for any other, and for a bad one."""
    text = F.when(F.octet_length("value") < 0, F.lit(b""))  # not NULL: Spark would see through it
    for reading in versions.changes:
        size = len(reading.beginning)
        payload = F.expr(f"substring(value, {size + 1}, octet_length(value) - {size + 1})")
        text = text.when(_begins(reading), payload)
    sides = (f"{side}:{_raw(_type(definition, side))}" for side in _SIDES)
    schema = f"struct<op:string,{','.join(sides)},source:{_SOURCE}>"
    return attempt(F.from_json(text.cast("string"), schema, {"mode": "FAILFAST"}))


def change_column(
    row: SparkColumn, definition: Definition, versions: Versions, name: str
) -> SparkColumn:
    """A column of a stream of changes, made of the parsed row and the value."""
    source = row.getField("source")
    match name:
        case "op":
            return row.getField("op")
        case "position":
            lsn = source.getField("lsn")
            high, low = F.hex(F.shiftrightunsigned(lsn, 32)), F.hex(lsn.bitwiseAND(0xFFFFFFFF))
            return F.concat(high, F.lit("/"), low)
        case "transaction":
            return source.getField("txId").cast("string")
        case "at":
            return F.timestamp_micros(source.getField("ts_us"))
        case _ if name == SNAPSHOT:
            parts = (source.getField(part).cast("string") for part in SNAPSHOT_PARTS)
            return F.concat_ws(" ", *parts)
    side = row.getField(name)
    fields = struct_fields(_type(definition, name)).values()
    made = F.struct(
        *(_text(_value(side.getField(f), kind), f, versions).alias(f) for f, kind in fields)
    )
    return F.when(side.isNotNull(), made)


def corrupt_change(row: SparkColumn, definition: Definition, versions: Versions) -> SparkColumn:
    """Not null for a bad record; one of a version that the plan does not know fails the batch.

    So nobody passes it over: whoever runs the plan looks at it, and runs the batch again.
    """
    refused = [
        F.col("value").startswith(_bytes(start)) for start in sorted(versions.refused_starts)
    ]
    new = F.expr(_FRAMED)
    for known in (*map(_begins, versions.changes), *refused):
        new = new & ~known
    params = F.struct(F.lit(definition.name).alias("name"), F.lit(definition.topic).alias("topic"))
    unread = F.when(new, complaint(NEW_CHANGE, params)).otherwise(F.lit(""))
    beyond = F.lit(False)
    for test in _beyond(row, definition):
        beyond = beyond | F.coalesce(test, F.lit(False))
    return (
        F.when(F.col("value").isNotNull() & row.isNull(), unread)
        .when(row.getField("op").isNull(), F.lit(""))
        .when(beyond, F.lit(""))
    )


def _type(definition: Definition, side: str) -> str:
    column = definition.column(side)
    assert column is not None
    return column.type


def _raw(type_: str) -> str:
    """What a payload has for a value of a type."""
    if type_.startswith("array<"):
        return f"array<{_raw(_item(type_))}>"
    if type_.startswith("struct<"):
        fields = (f"{_quoted(f)}:{_raw(kind)}" for f, kind in struct_fields(type_).values())
        return f"struct<{','.join(fields)}>"
    return _RAW.get(type_, type_)


def _value(raw: SparkColumn, type_: str) -> SparkColumn:
    if type_.startswith("array<") and _item(type_) in _RAW:
        return F.transform(raw, lambda item: _value(item, _item(type_)))
    match type_:
        case "date":
            return F.date_from_unix_date(raw)
        case "timestamp_ntz":
            return F.timestamp_micros(raw).cast("timestamp_ntz")
    nothing = unavailable(type_)
    return raw if nothing is None else F.when(raw != _literal(nothing, type_), raw)


def _text(value: SparkColumn, field: str, versions: Versions) -> SparkColumn:
    """The value; a time of day, and a number without bounds, as PostgreSQL writes it."""
    times = [reading for reading in versions.changes if field in reading.times]
    if times:
        value = F.when(_is_one_of(times, versions), _time_text(value)).otherwise(value)
    numbers = [reading for reading in versions.changes if field in reading.numbers]
    if numbers:
        said = F.lit(None).cast("string")
        for theirs, ours in NO_NUMBERS.items():
            said = F.when(value == theirs, ours).otherwise(said)
        value = F.when(_is_one_of(numbers, versions), F.coalesce(said, value)).otherwise(value)
    return value


def _time_text(micros: SparkColumn) -> SparkColumn:
    """A time of day as PostgreSQL writes it."""
    number = micros.cast("bigint")
    moment = F.timestamp_micros(number).cast("timestamp_ntz").cast("string")
    clock = F.substring(moment, len("1970-01-01 ") + 1, len("00:00:00.000000"))
    return F.when(number == _DAY_MICROS, F.lit("24:00:00")).otherwise(clock)


def _is_one_of(readings: Sequence[ChangeReading], versions: Versions) -> SparkColumn:
    """True for records of some of the versions that there are."""
    if len(readings) == len(versions.changes):
        return F.lit(True)
    found = F.lit(False)
    for reading in readings:
        found = found | _begins(reading)
    return found


def _beyond(row: SparkColumn, definition: Definition) -> Iterator[SparkColumn]:
    """True for each date and time that is out of bounds."""
    for side in _SIDES:
        for field, kind in struct_fields(_type(definition, side)).values():
            raw = row.getField(side).getField(field)
            if kind in _BOUNDS:
                yield ~raw.between(*_BOUNDS[kind])
            elif kind.startswith("array<") and _item(kind) in _BOUNDS:
                yield F.exists(raw, _outside(_item(kind)))


def _outside(kind: str) -> Callable[[SparkColumn], SparkColumn]:
    return lambda item: ~item.between(*_BOUNDS[kind])


def _begins(reading: ChangeReading) -> SparkColumn:
    return F.col("value").startswith(_bytes(reading.beginning))


def _literal(value: object, type_: str) -> SparkColumn:
    """A literal of what a parser makes of a value."""
    if isinstance(value, list):
        return F.array(*(_literal(item, _item(type_)) for item in value))
    if type_ == "binary":
        return _bytes(base64.b64decode(str(value)))
    return F.lit(value).cast(type_)


def _bytes(data: bytes) -> SparkColumn:
    return F.lit(bytearray(data))


def _item(type_: str) -> str:
    return type_[len("array<") : -1]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
