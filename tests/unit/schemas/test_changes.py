"""Captured changes by their own schemas: what fits the columns, and what has to wait."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Captured
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.schemas.change_text import change_text
from mainstem.schemas.changes import NotAChange, beginning, change_reading
from mainstem.testing.changes import Given, change_value, given, told
from mainstem.vocabulary import Column, SourceLocation

ID = given("id", "bigint", "int64")
PRICE = given("price", "decimal(10,2)", "string", **told("numeric", 10, 2))
CLOCK = given("clock", "string", "int64", "io.debezium.time.MicroTime")
NOTE = given("note", "string", "string")


def stream(*columns: Given) -> Definition:
    """The stream of changes of a table with these columns."""
    captures = Connection("postgres-cdc", ())
    place = SourceLocation("shop.sql", 1, 1)
    source = Definition("shop", Kind.SOURCE, "", place, "", captures=captures)
    known = tuple(Column(column.name, column.type) for column in columns)
    table = Captured("public.orders", "shop.public.orders", known, ("id",), whole=True)
    changes, _ = definitions_of(source, [table])
    return changes


def value(row: dict[str, Any] | None, *columns: Given, op: str = "c") -> bytes:
    return change_value(columns, op, row)


def test_versions_are_told_by_what_values_begin_with() -> None:
    first, second = value({"id": 1}, ID, NOTE), value({"id": 2, "note": "x"}, ID, NOTE)
    assert beginning(first) == beginning(second)
    assert first.startswith(beginning(first))
    assert json.loads(first[len(beginning(first)) : -1])["after"] == {"id": 1, "note": None}
    assert beginning(value({"id": 1}, ID)) != beginning(first)
    assert change_reading(beginning(first), stream(ID, NOTE)).times == frozenset()
    clock = beginning(value({"id": 1}, ID, CLOCK))
    assert change_reading(clock, stream(ID, CLOCK)).times == {"clock"}


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{}", b'{"schema":1,"payload":{}}', b'{"payload":{}}', b'{"schema":{},"payload":{}}',
        b'{"schema":{"fields":[{"field":"after"}]},"payload":{}}', b'{"schema":{[[},"payload":{}}',
    ],
)  # fmt: skip
def test_what_is_no_change(text: bytes) -> None:
    with pytest.raises(NotAChange):
        change_reading(beginning(text), stream(ID))


FITS = [
    (PRICE, PRICE),
    (given("price", "decimal(12,4)", ""), PRICE),
    (given("price", "string", ""), given("price", "", "string", **told("numeric", 5, 1))),
    (given("price", "decimal(19,2)", ""), given("price", "", "string", **told("money", 9, 0))),
    (given("n", "bigint", ""), given("n", "", "int32")),
    (given("n", "double", ""), given("n", "", "float")),
    (NOTE, given("note", "", "string", "io.debezium.data.Json")),
    (CLOCK, CLOCK),
]


@pytest.mark.parametrize(("column", "written"), FITS)
def test_what_fits(column: Given, written: Given) -> None:
    change_reading(beginning(value({"id": 1}, ID, written)), stream(ID, column))


DOES_NOT_FIT = [
    (PRICE, given("price", "", "string", **told("numeric", 12, 3))),
    (PRICE, given("price", "", "string", **told("numeric", 11, 2))),
    (PRICE, given("price", "", "string")),
    (PRICE, given("price", "", "double")),
    (PRICE, given("price", "", "bytes", "org.apache.kafka.connect.data.Decimal")),
    (given("n", "int", ""), given("n", "", "int64")),
    (given("n", "bigint", ""), given("n", "", "int64", "io.debezium.time.MicroTimestamp")),
    (given("at", "timestamp_ntz", ""), given("at", "", "int64", "io.debezium.time.Timestamp")),
    (NOTE, given("note", "", "string", "io.debezium.time.ZonedTimestamp")),
    (NOTE, given("note", "", "int64")),
    (given("l", "array<string>", ""), given("l", "", "string")),
    (NOTE, given("note", "", "bytes")),
    (NOTE, given("other", "", "string")),
]


@pytest.mark.parametrize(("column", "written"), DOES_NOT_FIT)
def test_what_does_not_fit_waits(column: Given, written: Given) -> None:
    with pytest.raises(MainstemError) as caught:
        change_reading(beginning(value({"id": 1}, ID, written)), stream(ID, column))
    assert caught.value.code == "SOURCE_CHANGED"
    assert f'"{written.name}"' in caught.value.message


def test_a_column_that_is_gone_is_null() -> None:
    changes = stream(ID, NOTE)
    found = json.loads(change_text(changes, value({"id": 1}, ID)))
    assert found["after"] == {"id": 1, "note": None}


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        (PRICE, "NaN"),
        (PRICE, "x"),
        (given("d", "date", "int32", "io.debezium.time.Date"), 2_147_483_647),
        (given("t", "timestamp", "string", "io.debezium.time.ZonedTimestamp"), "infinity"),
        (given("b", "binary", "bytes"), "*"),
    ],
)
def test_a_value_that_cannot_be_read(column: Given, bad: Any) -> None:
    with pytest.raises(NotAChange):
        change_text(stream(ID, column), value({"id": 1, column.name: bad}, ID, column))


def test_names_of_columns_may_be_any() -> None:
    odd = replace(NOTE, name='pay "load" ü')
    found = json.loads(change_text(stream(ID, odd), value({"id": 1, odd.name: "},"}, ID, odd)))
    assert found["after"] == {"id": 1, odd.name: "},"}


def test_texts_that_are_numbers_and_times() -> None:
    free = given("free", "string", "string", **told("numeric", 131089, 0))
    changes = stream(ID, free, CLOCK, NOTE)
    row = {"id": 1, "free": "NAN", "clock": 86_400_000_000, "note": "NAN"}
    found = json.loads(change_text(changes, value(row, ID, free, CLOCK, NOTE)))["after"]
    assert found == {"id": 1, "free": "NaN", "clock": "24:00:00", "note": "NAN"}
    row = {"id": 1, "clock": 45_000_000_000, "free": "NEGATIVE_INFINITY"}
    found = json.loads(change_text(changes, value(row, ID, free, CLOCK, NOTE)))["after"]
    assert (found["free"], found["clock"]) == ("-Infinity", "12:30:00")


def test_what_a_binary_log_writes_otherwise() -> None:
    columns = {
        "big": given("big", "decimal(20,0)", "bytes", "org.apache.kafka.connect.data.Decimal",
                     parameters={"scale": "0", "connect.decimal.precision": "20"}),
        "bits": given("bits", "string", "bytes", "io.debezium.data.Bits",
                      parameters={"length": "9"}),
        "mood": given("mood", "string", "string", "io.debezium.data.Enum"),
        "tags": given("tags", "string", "string", "io.debezium.data.EnumSet"),
        "year": given("year", "int", "int32", "io.debezium.time.Year"),
        "none": given("none", "int", "int32", "io.debezium.time.Year"),
        "since": given("since", "timestamp", "string", "io.debezium.time.ZonedTimestamp"),
        "span": given("span", "string", "int64", "io.debezium.time.MicroTime"),
        "flag": given("flag", "smallint", "boolean"),
    }  # fmt: skip
    row = {
        "id": 1, "big": 18446744073709551615, "bits": "VQE=", "mood": "so\\, so", "tags": "x,y",
        "year": 2026, "none": 1900, "since": "1970-01-01T00:00:00Z", "span": -3_020_399_500_000,
        "flag": True,
    }  # fmt: skip
    changes = stream(ID, *columns.values())
    written = change_value((ID, *columns.values()), "c", row)
    of_mysql = written.replace(b"connector.postgresql.", b"connector.mysql.")
    found = json.loads(change_text(changes, of_mysql))["after"]
    assert found == {
        "id": 1, "big": 18446744073709551615, "bits": "101010101", "mood": "so, so", "tags": "x,y",
        "year": 2026, "none": 0, "since": None, "span": "-838:59:59.5", "flag": 1,
    }  # fmt: skip
    as_it_is = json.loads(change_text(changes, written))["after"]
    assert (as_it_is["mood"], as_it_is["since"]) == ("so\\, so", "1970-01-01T00:00:00.000000Z")
