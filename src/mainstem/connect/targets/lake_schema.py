"""Columns of lake tables: which ones rows need, and whether those of a table take them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.connect.targets.target import TIME, Shape, mismatch
from mainstem.errors import MainstemError
from mainstem.schemas.arrow_types import arrow_type

_PARTITIONS = {"none": (), "day": ("date",), "hour": ("date", "hour")}
_PARTITION_TYPES = {"date": pa.date32(), "hour": pa.int32()}
_TEXTS = re.compile(r"variant|(?:var)?char\(\d+\)")


def partitions_of(by: str) -> tuple[str, ...]:
    """The columns that a table is divided by."""
    return _PARTITIONS[by]


def check_partitions(options: Mapping[str, Any], shape: Shape) -> None:
    """Refuse to divide a table by time whose rows change."""
    if shape.upserts and options["partition_by"] != "none":
        raise MainstemError(
            "INVALID_OPTION",
            option="partition_by",
            value=options["partition_by"],
            problem="rows are upserted, and would move from one part of the table to another",
            advice="Leave the option out, or append the rows of a stream.",
        )


def schema_of(shape: Shape, by: str, what: str) -> pa.Schema:
    """The columns of a table for such rows; refuses what has no type in a lake."""
    fields = []
    for column in shape.columns:
        text = column.type.strip().lower()
        kind = pa.string() if _TEXTS.fullmatch(text) else arrow_type(column.type)
        if kind == pa.struct([]):
            raise mismatch(
                what,
                f'column "{column.name}" is a {column.type}, for which it has no type',
                "Cast the column in a query before the sink.",
            )
        fields.append(pa.field(column.name, kind))
    taken = {column.name.lower() for column in shape.columns}
    for name in partitions_of(by):
        if name in taken:
            raise mismatch(
                what,
                f'"{name}" is a column of the rows, and the one that the table is divided by',
                "Give the column another name: TRANSFORM (rename(...)).",
            )
        fields.append(pa.field(name, _PARTITION_TYPES[name]))
    return pa.schema(fields)


def missing_from(there: pa.Schema, wanted: pa.Schema) -> list[pa.Field]:
    """The fields that a table does not have yet."""
    known = {name.lower() for name in there.names}
    return [field for field in wanted if field.name.lower() not in known]


def check_columns(there: pa.Schema, wanted: pa.Schema, what: str) -> None:
    """Refuse a table whose columns do not take the rows."""
    given = {field.name.lower(): field for field in wanted}
    for field in there:
        mine = given.get(field.name.lower())
        if mine is None and not field.nullable:
            raise mismatch(
                what,
                f'column "{field.name}" takes no NULL, and the rows do not have it',
                "Let it take NULL there, or add it to what the sink reads.",
            )
        if mine is not None and not _takes(field.type, mine.type):
            raise mismatch(
                what,
                f'column "{field.name}" is {field.type}, and the rows have {mine.type}',
                "Cast the column in a query before the sink.",
            )


def _takes(there: pa.DataType, given: pa.DataType) -> bool:
    """True when every value of a type is one of the other."""
    is_ = pa.types
    if is_.is_integer(there) and is_.is_integer(given):
        return bool(given.bit_width <= there.bit_width)
    if is_.is_floating(there) and is_.is_floating(given):
        return bool(given.bit_width <= there.bit_width)
    if is_.is_decimal(there) and is_.is_decimal(given):
        whole = there.precision - there.scale >= given.precision - given.scale
        return whole and bool(there.scale >= given.scale)
    if is_.is_timestamp(there) and is_.is_timestamp(given):
        return (there.tz is None) == (given.tz is None) and there.unit in ("us", "ns")
    for same in (_is_text, _is_bytes):
        if same(there) or same(given):
            return same(there) and same(given)
    if _is_list(there) and _is_list(given):
        return _takes(there.value_type, given.value_type)
    if is_.is_map(there) and is_.is_map(given):
        keys = _takes(there.key_type, given.key_type)
        return keys and _takes(there.item_type, given.item_type)
    if is_.is_struct(there) and is_.is_struct(given):
        mine = {field.name: field for field in there}
        return all(f.name in mine and _takes(mine[f.name].type, f.type) for f in given)
    return bool(there == given)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def fitted(rows: pa.Table, schema: pa.Schema, partitions: Sequence[str]) -> pa.Table:
    """The rows with the columns of a table, in their order; what the rows do not have is NULL."""
    given = {name.lower(): name for name in rows.column_names}
    columns = []
    for field in schema:
        name = given.get(field.name.lower())
        if name is not None:
            columns.append(rows[name].cast(field.type))
        elif field.name in partitions:
            columns.append(_of_time(rows[TIME], field.name).cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, schema=schema)


def _of_time(times: pa.ChunkedArray, part: str) -> pa.ChunkedArray:
    """Day or hour of the records, in UTC."""
    return times.cast(pa.timestamp("us")).cast(pa.date32()) if part == "date" else pc.hour(times)
