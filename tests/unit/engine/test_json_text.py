"""Values as JSON text, and back."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from mainstem.engine.json_text import key_reader, key_text, reader, writer

MOMENT = datetime(2026, 3, 29, 1, 30, 0, 123456, UTC)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", 'a"\\\n\u2028é', '"a\\"\\\\\\n\u2028é"'),
        ("bigint", -(2**63), "-9223372036854775808"),
        ("double", 0.1, "0.1"),
        ("double", 1e300, "1e+300"),
        ("boolean", True, "true"),
        ("decimal(38,18)", Decimal("12345678901234567890.000000000000000001"), None),
        ("date", date(2026, 2, 28), '"2026-02-28"'),
        ("timestamp", MOMENT, '"2026-03-29T01:30:00.123456Z"'),
        ("binary", b"\x00\xff", '"AP8="'),
        ("array<bigint>", [1, None, 3], "[1,null,3]"),
        ("map<string,double>", [("a", 1.0), ("b", None)], '{"a":1.0,"b":null}'),
        ("map<bigint,string>", [(1, "x")], '{"1":"x"}'),
        ("struct<a:bigint,b:array<string>>", {"a": 1, "b": None}, '{"a":1,"b":null}'),
        ("string", None, "null"),
    ],
)
def test_there_and_back(kind: str, value: Any, text: str | None) -> None:
    written = writer(kind)(value)
    assert text is None or written == text
    json.loads(written)
    assert reader(kind)(written.encode()) == value


def test_times_of_other_zones_are_written_in_utc() -> None:
    there = MOMENT.astimezone(timezone(timedelta(hours=-7)))
    assert writer("timestamp")(there) == writer("timestamp")(MOMENT)


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "NaN"), (float("-inf"), "-Infinity")])
def test_numbers_that_json_has_not(value: float, text: str) -> None:
    written = writer("double")(value)
    assert json.loads(written) == text
    assert repr(reader("double")(written.encode())) == repr(value)


def test_keys() -> None:
    kinds = ("string", "decimal(10,2)", "timestamp", "bigint")
    values = ["a,]", Decimal("1.10"), MOMENT, None]
    text = key_text([writer(kind) for kind in kinds], values)
    assert key_reader(kinds)(text) == values
