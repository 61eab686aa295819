"""What the edge takes, every flow reads; what it refuses, they would put aside."""

from __future__ import annotations

import base64

import pytest
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.formats import Formats
from mainstem.engine.refit import refit
from mainstem.errors import MainstemError
from mainstem.gateway.records import outgoing, read_body
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry

pytestmark = pytest.mark.spark

TYPES = {
    "tiny": "TINYINT",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "x": "DOUBLE",
    "p": "DECIMAL(6, 2)",
    "b": "BOOLEAN",
    "s": "STRING",
    "d": "DATE",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "data": "BINARY",
    "list": "ARRAY<INT>",
    "place": "STRUCT<n: INT, s: STRING>",
    "more": "MAP<STRING, INT>",
}
LITERALS = [
    "null", "true", "0", "-1", "127", "128", "2147483648", "9223372036854775808", "1.5", "1.0",
    "1e2", "1e400", "12345.67", "0.125", '""', '"7"', '"NaN"', '"Infinity"', '"nan"', '"x"',
    '"2026-01-01"', '"2026-1-1"', '"20260101"', '"2026-W01-1"', '"2026-02-30"',
    '"2026-01-01T00:00:00Z"', '"2026-01-01 00:00:00"', '"2026-01-01T00:00"', '"2026-01-01T00"',
    '"2026-01-01T00:00:00.123456789Z"', '"2026-01-01T00:00:00+01:00"', '"2026-01-01T00:00:00+0100"',
    '"20260101T000000Z"', '"2026-01-01T24:00:00Z"', '"10000-01-01T00:00:00Z"', '"AAA="', '"AA"',
    '"2026-01-01T00:00Z"', '"2026-01-01x00:00:00"', '"2026-01-01t00:00:00z"',
    '"2026-01-01T00:00:00,5"', '"2026-01-01T00:00:00-01"', '"9999-12-31T23:59:59.999999Z"',
    '"-12.50"', '"1e2"',
    "[]", "[1, null]", '["1"]', "{}", '{"n": 1}', '{"n": "1"}', '{"n": 1.5}', '{"a": null}',
]  # fmt: skip


def stream() -> Definition:
    statement = parse_one(f"CREATE STREAM s ({', '.join(f'{n} {t}' for n, t in TYPES.items())})")
    assert isinstance(statement, Create)
    return statement.definition


def problems(spark: SparkSession, values: list[bytes]) -> list[str | None]:
    """What the decoder of the flows says of each value."""
    definition = TypeAdapter(Definition).dump_python(stream(), mode="json")
    records = [
        {
            "id": n,
            "key": None,
            "value": base64.b64encode(value).decode(),
            "cause": "",
            "topic": "s",
            "partition": 0,
            "offset": n,
            "timestamp": 1_700_000_000_000,
        }
        for n, value in enumerate(values)
    ]
    payload = {"definition": definition, "query": None, "records": records}
    answer = refit(spark, Formats(MemoryRegistry()), payload)
    return [record["problem"] for record in answer["records"]]


def test_the_edge_and_the_flows_agree(spark: SparkSession) -> None:
    codec = Codec(KnownSchemas(MemoryRegistry()))
    cases = [(name, literal) for name in TYPES for literal in LITERALS]
    given = [f'{{"{name}": {literal}}}'.encode() for name, literal in cases]
    taken: list[bytes | None] = []
    for value in given:
        try:
            [record] = outgoing(stream(), read_body(b'{"records":[{"value":%s}]}' % value), codec)
            taken.append(record.value)
        except MainstemError as error:
            assert error.code == "INVALID_RECORD"
            taken.append(None)
    written = [value for value in taken if value is not None]
    misread = [v for v, p in zip(written, problems(spark, written), strict=True) if p is not None]
    assert misread == [], "the edge took them, and the flows put them aside"
    refused = [v for v, t in zip(given, taken, strict=True) if t is None]
    readable = {v for v, p in zip(refused, problems(spark, refused), strict=True) if p is None}
    stricter = {v for v, case in zip(given, cases, strict=True) if is_stricter(*case)}
    assert readable <= stricter, "the flows would have read them, and the edge refused them"


def is_stricter(name: str, literal: str) -> bool:
    """Whether the edge asks for more than the flows do, so that nothing is taken for another."""
    match name:
        case "s":  # a text, not what looks like one
            return not literal.startswith('"')
        case "d" | "at" | "local":  # ISO-8601, not seconds, and no day of a longer text
            return True
        case "tiny":  # flows take 128 for -128
            return literal == "128"
        case "p":  # flows round, and take an exponent in a text
            return literal in ("0.125", '"1e2"')
        case "place":  # a field that there is not
            return literal == '{"a": null}'
        case _:
            return False
