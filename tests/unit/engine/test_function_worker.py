"""Python functions as the engine's workers run them."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mainstem.definitions.model import FunctionDefinition
from mainstem.definitions.python_functions import load_functions
from mainstem.engine.function_worker import call_per_batch, call_per_group, call_per_row, rows_of
from mainstem.engine.spark_errors import flow_error
from mainstem.errors import MainstemError

HEAD = """
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, NamedTuple, TypedDict
import pyarrow as pa
import pyarrow.compute as pc
from mainstem import function

@dataclass
class Point:
    x: float
    tags: dict[str, int] | None

class Word(NamedTuple):
    text: str
    size: int

"""


def function(text: str) -> FunctionDefinition:
    [found] = load_functions([("functions/f.py", HEAD + text)]).values()
    return found


def failure(call: Any, *args: Any, **more: Any) -> MainstemError:
    with pytest.raises(RuntimeError) as caught:
        call(*args, **more)
    return flow_error(caught.value, "flow")


def per_row(text: str, *columns: Any, traced: bool = False) -> list[Any]:
    arrays = [c if isinstance(c, pa.Array) else pa.array(c) for c in columns]
    found: list[Any] = call_per_row(function(text), arrays, traced=traced).to_pylist()
    return found


def test_values_and_nulls() -> None:
    text = "@function\ndef f(a: int, b: str | None = 'z') -> str:\n    return f'{a}{b}'\n"
    assert per_row(text, [1, None, 3], ["x", "y", None]) == ["1x", None, "3None"]
    assert per_row(text, pa.array([1], pa.int32())) == ["1z"]


def test_records_lists_and_maps() -> None:
    text = """
@function
def f(p: Point, all: list[Point]) -> Point | None:
    return Point(p.x + sum(q.x for q in all), {**(p.tags or {}), "n": len(all)})
"""
    point = pa.struct([("x", pa.float64()), ("tags", pa.map_(pa.string(), pa.int64()))])
    one = {"x": 1.0, "tags": [("a", 1)]}
    points = pa.array([one, None], point)
    lists = pa.array([[one, {"x": 2.0, "tags": None}], []], pa.list_(point))
    assert per_row(text, points, lists) == [{"x": 4.0, "tags": [("a", 1), ("n", 2)]}, None]


def test_decimals_and_times() -> None:
    text = (
        "@function\ndef f(a: Decimal) -> Annotated[Decimal, 'decimal(10,2)']:\n    return a / 3\n"
    )
    assert per_row(text, pa.array([Decimal("1.00")])) == [Decimal("0.33")]
    text = "@function\ndef f(a: datetime) -> datetime:\n    return a + timedelta(days=1)\n"
    day = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert per_row(text, pa.array([day], pa.timestamp("us", "UTC"))) == [day.replace(day=30)]
    text = "@function\ndef f(a: int) -> datetime:\n    return datetime(2026, 1, a)\n"
    assert per_row(text, [2]) == [datetime(2026, 1, 2, tzinfo=UTC)]


def test_a_failure_names_function_exception_and_records() -> None:
    text = "@function\ndef f(a: int) -> int:\n    return 10 // a\n"
    error = failure(
        per_row, text, [1, 0, 5, 0], pa.array([0, 0, 1, 1], pa.int32()), [7, 8, 9, 10], traced=True
    )
    assert error.code == "FUNCTION_FAILED"
    assert error.message == (
        'function "f" failed for the record at partition 0, offset 8: '
        "ZeroDivisionError: integer division or modulo by zero"
    )
    [(problem, places)] = error.params["records"].items()
    assert problem.startswith("ZeroDivisionError")
    assert places == [[0, 8], [1, 10]]


@pytest.mark.parametrize(
    ("returns", "value"),
    [("int", "None"), ("int", "'x'"), ("int", "1.5"), ("int", "True"), ("str", "3"),
     ("int", "2**70"), ("list[int]", "['x']"), ("list[int]", "[1.5]")],
)  # fmt: skip
def test_a_value_of_another_type_is_a_failure(returns: str, value: str) -> None:
    text = f"@function\ndef f(a: int) -> {returns}:\n    return {value}\n"
    error = failure(per_row, text, [1, 1], [0, 0], [5, 6], traced=True)
    assert [p for places in error.params["records"].values() for p in places] == [[0, 5], [0, 6]]


def test_without_a_trace_the_failure_still_says_why() -> None:
    error = failure(per_row, "@function\ndef f(a: int) -> int:\n    raise SystemExit\n", [1])
    assert (error.code, error.params["records"]) == ("FUNCTION_FAILED", {})
    assert json.dumps(error.params)


def test_a_file_that_cannot_be_run() -> None:
    text = (
        "import no_such_package\n@function\ndef f(a: int) -> int:\n    return no_such_package.x\n"
    )
    error = failure(per_row, text, [1])
    assert error.code == "FUNCTION_NOT_LOADED"
    assert "no_such_package" in error.message


def test_vectorised() -> None:
    array = "Annotated[pa.Array, 'bigint']"
    head = f"@function(vectorised=True)\ndef f(a: {array}) -> {array}:\n    return "
    given = [pa.array([2, None], pa.int32())]
    assert call_per_batch(function(head + "pc.add(a, 1)"), given, traced=False).to_pylist() == [
        3,
        None,
    ]
    for wrong in ("a[:1]", "[1, 2]"):
        error = failure(call_per_batch, function(head + wrong), given, traced=False)
        assert error.code == "FUNCTION_FAILED"
    traced = [pa.array([1, 0, 2]), pa.array([0, 0, 0], pa.int32()), pa.array([4, 5, 6])]
    error = failure(call_per_batch, function(head + "pc.divide(10, a)"), traced, traced=True)
    assert list(error.params["records"].values()) == [[[0, 5]]]


def test_table() -> None:
    text = """
@function(table=True)
def f(text: str) -> Iterator[Word]:
    for word in text.split():
        yield Word(word, len(word))
    if text == "bad":
        raise ValueError(text)
"""
    assert list(rows_of(function(text), ["a bc"], traced=False)) == [("a", 1), ("bc", 2)]
    assert list(rows_of(function(text), [None], traced=False)) == []
    error = failure(lambda: list(rows_of(function(text), ["bad", 1, 9], traced=True)))
    assert error.params["records"] == {"ValueError: bad": [[1, 9]]}


def test_aggregate() -> None:
    text = """
@function(aggregate=True)
def f(a: Annotated[pa.Array, "double"]) -> float | None:
    return pc.max(a).as_py()
"""
    assert call_per_group(function(text), [pa.array([1, 4, None])]) == 4.0
    assert call_per_group(function(text), [pa.array([], pa.int64())]) is None
