"""Batches of Protobuf values in a worker: rows and back, the bad ones told apart."""

from __future__ import annotations

import json
import resource
from typing import Any

import pyarrow as pa
import pytest

from mainstem.engine.protobuf_rows import message_rows, message_values, plain
from mainstem.engine.spark_errors import flow_error
from mainstem.schemas.arrow_types import arrow_type
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.vocabulary import Column

COLUMNS = (
    Column("id", "bigint"),
    Column("at", "timestamp"),
    Column("d", "date"),
    Column("m", "decimal(6,2)"),
    Column("tags", "array<string>"),
    Column("more", "map<int,struct<at:timestamp>>"),
)
OWN = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
import "google/type/date.proto"; import "google/type/decimal.proto";
message s { optional int64 id = 1; google.protobuf.Timestamp at = 2; google.type.Date d = 3;
google.type.Decimal m = 4; repeated string tags = 5; map<int32, I> more = 6;
message I { google.protobuf.Timestamp at = 1; } }"""
OLD = 'syntax = "proto3"; message Old { int32 id = 1; }'


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def own(registry: MemoryRegistry, row: dict[str, Any]) -> bytes:
    return written_by(registry, json.dumps(OWN), row)


def test_rows_of_several_schemas_keep_their_order(registry: MemoryRegistry) -> None:
    new = own(registry, {"id": 1, "tags": ["a"], "at": "1970-01-01T00:00:01Z"})
    old = written_by(registry, json.dumps(OLD), {"id": 2})
    far = own(registry, {"id": 3, "m": {"value": "12345.6"}})
    unknown, cut = b"\0\0\0\0\x63\0", new[:-1]
    values = [old, new, None, far, b"", old, cut, unknown, new, b"\0\0\0\0\1\2\2"] * 300
    known = KnownSchemas(registry)
    rows = message_rows(
        pa.array(values, pa.binary()), {1: known.protobuf(1), 2: known.protobuf(2)}, COLUMNS
    )
    ids = [row and row["id"] for row in rows.to_pylist()]
    assert ids == [2, 1, None, None, None, 2, None, None, 1, None] * 300
    first = rows[1].as_py()
    assert (first["tags"], first["at"].timestamp(), first["m"]) == (["a"], 1.0, None)
    assert len(message_rows(pa.array([], pa.binary()), {}, COLUMNS)) == 0


def test_what_is_written_is_read(registry: MemoryRegistry) -> None:
    row = {
        "id": "5",
        "at": "2026-01-01T00:00:00.000001Z",
        "d": {"year": 2026, "month": 1, "day": 1},
        "m": {"value": "1.50"},
        "tags": ["x", "y"],
        "more": {"1": {"at": "1970-01-01T00:00:00Z"}, "2": {}},
    }
    value = own(registry, row)
    reading = KnownSchemas(registry).protobuf(1)
    rows = message_rows(pa.array([value, value], pa.binary()), {1: reading}, COLUMNS)
    again = message_values(rows.slice(1), reading, COLUMNS, "s")
    back = message_rows(again, {1: reading}, COLUMNS)
    assert back.to_pylist() == [rows[0].as_py()]


@pytest.mark.parametrize("row", [{"tags": ["a", None]}, {"at": 2**62}, {"d": 2**30}])
def test_what_it_has_no_words_for_stops_the_flow(
    registry: MemoryRegistry, row: dict[str, Any]
) -> None:
    own(registry, {})
    kind = pa.struct([pa.field(c.name, arrow_type(c.type)) for c in COLUMNS])
    with pytest.raises(RuntimeError) as raised:
        reading = KnownSchemas(registry).protobuf(1)
        message_values(pa.array([row], kind), reading, COLUMNS, "s")
    error = flow_error(raised.value, "s")
    assert (error.code, error.params["name"]) == ("ROW_NOT_WRITABLE", "s")


def test_plain_values_of_parts_of_arrays() -> None:
    kind = arrow_type("array<struct<at:timestamp,m:map<string,date>>>")
    rows = [
        [{"at": 0, "m": [("a", 0)]}],
        None,
        [],
        [{"at": 1, "m": None}, None, {"at": None, "m": [("b", 1), ("c", None)]}],
    ]
    values = pa.array(rows, kind)
    assert plain(values) == rows
    assert plain(values.slice(2)) == rows[2:]


def test_a_schema_that_is_none_of_ours(registry: MemoryRegistry) -> None:
    registry.register("x", Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; enum E { A = 0; }'))
    reading = KnownSchemas(registry).protobuf(1)
    rows = message_rows(pa.array([b"\0\0\0\0\1\0"], pa.binary()), {1: reading}, COLUMNS)
    assert rows.to_pylist() == [None]


def test_many_empty_messages_take_no_memory(registry: MemoryRegistry) -> None:
    """A megabyte of them would be gigabytes: bad, whether anybody wants them or not."""
    fields = "".join(f"string f{n} = {n};" for n in range(1, 500))
    inner = f"message I {{ {fields} }}"
    wide = f'syntax = "proto3"; message W {{ int64 id = 1; repeated I i = 2; {inner} }}'
    good = written_by(registry, json.dumps(wide), {"id": "1", "i": [{"f1": "x"}] * 100})
    few = good[:6] + b"\x12\0" * 10_000
    heavy = good[:6] + b"\x12\0" * 500_000
    nested = good[:6] + b"\x12\xa0\x8d\x06" + b"\x12\0" * 50_000
    reading = KnownSchemas(registry).protobuf(1)
    columns = (Column("id", "bigint"),)
    values = pa.array([good, heavy, few, nested, heavy, good], pa.binary())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = message_rows(values, {1: reading}, columns)
    assert [row and row["id"] for row in rows.to_pylist()] == [1, None, 0, 0, None, 1]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1 << 20, f"{grown} kB more"
