"""Captured changes -> columns, in Spark: one parse of a payload, then what its numbers mean.

The payload is parsed to types that depend on the columns alone, so all versions are parsed alike;
decimals, bytes and times with a zone are read by the parser itself. What is left (`change_column`)
is made of the parsed row, in a step of its own: there Spark would parse anew for every field.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields
from mainstem.engine.attempt import attempt
from mainstem.engine.documents import parsed_documents
from mainstem.engine.formats import NEW_CHANGE, Versions
from mainstem.engine.spark_errors import complaint
from mainstem.schemas.changes import (
    BEGIN,
    KEY_HEADERS,
    LEFT_OUT,
    NO_NUMBERS,
    NO_YEAR,
    OTHER_KEY,
    PAYLOAD,
    SNAPSHOT,
    SNAPSHOT_PARTS,
    ChangeReading,
    unavailable,
)

_SIDES = ("before", "after")
_STRICT = {"mode": "FAILFAST"}
_SOURCE = (
    "struct<lsn:bigint,txId:bigint,ts_us:bigint,snapshot:string,"
    # of MySQL's binary log
    "file:string,pos:bigint,row:int,gtid:string,"
    # of SQL Server, and of MongoDB
    "commit_lsn:string,change_lsn:string,event_serial_no:bigint,"
    "ord:int,lsid:string,txnNumber:bigint>"
)
_RAW = {
    "date": "int",
    "timestamp_ntz": "bigint",
    "smallint": "string",  # MySQL's may come as a boolean
}
_BOUNDS = {
    # the years 1 to 9999: what is beyond has no text that all would read, infinity among it
    "date": (-719_162, 2_932_896),
    "timestamp_ntz": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
_SQL_SERVER = ("commit_lsn", "change_lsn", "event_serial_no")
_STRICT = {"mode": "FAILFAST"}
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
    documents = any(reading.documents for reading in versions.changes)
    sides = (
        f"{side}:{'string' if documents else _raw(_type(definition, side))}" for side in _SIDES
    )
    schema = f"struct<op:string,{','.join(sides)},source:{_SOURCE}>"
    row = attempt(F.from_json(text.cast("string"), schema, _STRICT))
    types = (_type(definition, side) for side in _SIDES)
    return parsed_documents(row, *types) if documents else row


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
            commit, number = source.getField("commit_lsn"), source.getField("ord")
            second = F.floor(source.getField("ts_us") / F.lit(1_000_000))
            return F.coalesce(
                F.concat(high, F.lit("/"), low),
                F.when(commit.isNotNull(), _joined(source, *_SQL_SERVER)),
                F.when(number.isNotNull(), F.concat_ws(":", second, number)),
                _joined(source, "file", "pos", "row"),
            )
        case "transaction":
            session = source.getField("txnNumber").isNotNull()
            return F.coalesce(
                source.getField("txId").cast("string"),
                source.getField("gtid"),
                source.getField("commit_lsn"),
                F.when(session, _joined(source, "lsid", "txnNumber")),
            )
        case "at":
            return F.timestamp_micros(source.getField("ts_us"))
        case _ if name == SNAPSHOT:
            number = source.getField("ord").cast("string")
            time = F.when(number.isNotNull(), source.getField("ts_us").cast("string"))
            parts = [source.getField(part).cast("string") for part in SNAPSHOT_PARTS]
            return F.concat_ws(" ", *parts, number, time)
        case _ if name == LEFT_OUT:
            return _left_out(row.getField("after"), _type(definition, "after"))
        case _ if name == OTHER_KEY:
            type_ = _type(definition, name)
            key = attempt(F.from_json(_key_header(), _raw(type_), _STRICT))
            return _struct(key, type_, versions)
    return _struct(row.getField(name), _type(definition, name), versions)


def _struct(side: SparkColumn, type_: str, versions: Versions) -> SparkColumn:
    """A row of which a payload tells."""
    made = F.struct(
        *(
            _text(_value(side.getField(field), kind), field, versions).alias(field)
            for field, kind in struct_fields(type_).values()
        )
    )
    return F.when(side.isNotNull(), made)


def _left_out(row: SparkColumn, type_: str) -> SparkColumn:
    """The names of the columns whose values were left out; NULL when there are none."""
    fields = [(f, kind) for f, kind in struct_fields(type_).values() if unavailable(kind)]
    none = F.lit(None).cast("array<string>")
    if not fields:
        return none
    tests = [_is_unavailable(row.getField(field), kind) for field, kind in fields]
    names = [F.when(test, F.lit(field)) for test, (field, _) in zip(tests, fields, strict=True)]
    some = reduce(lambda one, other: one | other, (F.coalesce(t, F.lit(False)) for t in tests))
    return F.when(some, F.array_compact(F.array(*names))).otherwise(none)


def _key_header() -> SparkColumn:
    """The text of the header that tells the other key; NULL without one."""
    found = F.filter("_headers", lambda header: header.getField("key").isin(*KEY_HEADERS))
    return F.get(found, F.lit(0)).getField("value").cast("string")


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


def _joined(source: SparkColumn, *parts: str) -> SparkColumn:
    return F.concat_ws(":", *(source.getField(part).cast("string") for part in parts))


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


def _is_unavailable(raw: SparkColumn, type_: str) -> SparkColumn:
    """True where a mark stands for a value that was left out; not for NULL."""
    kind = _raw(type_)
    tests = [raw == _literal(mark, kind) for mark in unavailable(type_)]
    return reduce(lambda one, other: one | other, tests)


def _value(raw: SparkColumn, type_: str) -> SparkColumn:
    if unavailable(type_):
        raw = F.when(~_is_unavailable(raw, type_), raw)
    if type_.startswith("array<") and _item(type_) in _RAW:
        return F.transform(raw, lambda item: _value(item, _item(type_)))
    match type_:
        case "date":
            return F.date_from_unix_date(raw)
        case "timestamp_ntz":
            return F.timestamp_micros(raw).cast("timestamp_ntz")
        case "smallint":
            flag = F.when(raw == "true", "1").when(raw == "false", "0").otherwise(raw)
            return flag.cast("smallint")
    return raw


def _text(value: SparkColumn, field: str, versions: Versions) -> SparkColumn:
    """The value; where a version writes it otherwise than its source does, as that does."""
    ways: list[tuple[Callable[[ChangeReading], bool], Callable[[SparkColumn], SparkColumn]]] = [
        (lambda r: field in r.times, _time_text),
        (lambda r: field in r.numbers, _number_text),
        (lambda r: field in r.enums, lambda text: F.replace(text, F.lit("\\,"), F.lit(","))),
        (lambda r: field in r.years, lambda year: F.when(year == NO_YEAR, 0).otherwise(year)),
        (lambda r: field in r.moments, lambda at: F.when(at != F.timestamp_micros(F.lit(0)), at)),
    ]
    for size in {size for r in versions.changes for name, size in r.bits if name == field}:
        column = (field, size)
        ways.append((partial(_has_bits, column), partial(_bits_text, size=size)))
    for test, make in ways:
        if readings := [reading for reading in versions.changes if test(reading)]:
            value = F.when(_is_one_of(readings, versions), make(value)).otherwise(value)
    return value


def _has_bits(column: tuple[str, int], reading: ChangeReading) -> bool:
    return column in reading.bits


def _number_text(text: SparkColumn) -> SparkColumn:
    """A number without bounds as PostgreSQL writes it."""
    said = text
    for theirs, ours in NO_NUMBERS.items():
        said = F.when(text == theirs, ours).otherwise(said)
    return said


def _time_text(text: SparkColumn) -> SparkColumn:
    """A time of day, or MySQL's longer ones and those below zero, as the source writes it."""
    micros = text.cast("bigint")
    seconds = F.abs(micros) / F.lit(1_000_000)
    whole = F.floor(seconds)
    clock = F.format_string(
        "%s%02d:%02d:%02d",
        F.when(micros < 0, "-").otherwise(""),
        F.floor(whole / 3600),
        F.floor(whole / 60) % 60,
        whole % 60,
    )
    fraction = F.format_string(".%06d", F.abs(micros) % 1_000_000)
    made = F.when(
        F.abs(micros) % 1_000_000 != 0, F.concat(clock, F.regexp_replace(fraction, "0+$", ""))
    ).otherwise(clock)
    return F.when(micros.isNotNull(), made)


def _bits_text(text: SparkColumn, size: int) -> SparkColumn:
    """So many binary digits; the bytes come with the lowest first."""
    pairs = F.rpad(F.hex(F.unbase64(text)), 16, "0")
    turned = F.concat(*(F.substring(pairs, at, 2) for at in range(15, 0, -2)))
    return F.lpad(F.conv(turned, 16, 2), size, "0")


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
