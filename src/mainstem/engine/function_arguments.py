"""Are the arguments of a Python function of the types that it takes? Asked of Spark's analysis.

Spark itself hands a Python function whatever stands in the brackets. Here the analysed plan is
walked for the calls in it; what a worker can turn into the parameter's type without loss passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from mainstem.definitions.calls import place_of_call
from mainstem.definitions.model import FunctionDefinition, Query
from mainstem.definitions.places import place_in
from mainstem.definitions.query import reparse
from mainstem.definitions.types import struct_fields, type_parts
from mainstem.errors import MainstemError

_CALLS = ("PythonUDF", "PythonUDAF", "PythonUDTF")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def check_arguments(rows: DataFrame, query: Query) -> None:
    """TYPE_MISMATCH for the first call whose arguments do not fit, at its place in the query."""
    functions = {function.name: function for function in query.functions}
    if not functions:
        return
    plan: Any = rows._jdf.queryExecution().analyzed()
    for call in _calls(plan):
        function = functions.get(call.name())
        if function is None:
            continue
        for parameter, given in zip(function.parameters, _types(call), strict=False):
            if not fits(given, parameter.type):
                raise MainstemError(
                    "TYPE_MISMATCH",
                    location=place_in(query, _offset(call, query, function)),
                    problem=f'parameter "{parameter.name}" of function "{function.name}" is a '
                    f"{parameter.type}, not a {given}",
                )


def fits(given: str, wanted: str) -> bool:
    """True when every value of a type can be had in another, by Spark's short names."""
    if given in (wanted, "void"):
        return True
    if wanted.startswith("decimal("):
        return _fits_decimal(given, wanted)
    if given.startswith("array<") and wanted.startswith("array<"):
        return fits(given[6:-1], wanted[6:-1])
    if given.startswith("map<") and wanted.startswith("map<"):
        pairs = zip(type_parts(given[4:-1]), type_parts(wanted[4:-1]), strict=True)
        return all(fits(one, other) for one, other in pairs)
    if given.startswith("struct<") and wanted.startswith("struct<"):
        ours, theirs = struct_fields(given).values(), struct_fields(wanted).values()
        return [name for name, _ in ours] == [name for name, _ in theirs] and all(
            fits(one, other) for (_, one), (_, other) in zip(ours, theirs, strict=True)
        )
    if wanted in _WHOLE:
        return given in _WHOLE[: _WHOLE.index(wanted)]
    if wanted == "double":
        return given == "float" or given in _WHOLE or given.startswith("decimal(")
    if wanted == "timestamp":
        return given == "date"
    return wanted == "float" and given in _WHOLE[:2]


def _fits_decimal(given: str, wanted: str) -> bool:
    precision, scale = _decimal(wanted)
    if given in _DIGITS:
        return _DIGITS[given] <= precision - scale
    if not given.startswith("decimal("):
        return False
    other_precision, other_scale = _decimal(given)
    return other_scale <= scale and other_precision - other_scale <= precision - scale


def _decimal(spark_type: str) -> tuple[int, int]:
    precision, scale = spark_type[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _calls(plan: Any) -> Iterator[Any]:
    """The calls of Python functions in a plan of Spark's JVM."""
    for expression in _items(plan.expressions()):
        yield from _calls_in(expression)
    for child in _items(plan.children()):
        yield from _calls(child)


def _calls_in(expression: Any) -> Iterator[Any]:
    kind = expression.getClass().getSimpleName()
    if kind in _CALLS:
        yield expression
    if kind.endswith(("Subquery", "Exists", "ListQuery")):
        yield from _calls(expression.plan())
    for child in _items(expression.children()):
        yield from _calls_in(child)


def _types(call: Any) -> list[str]:
    return [str(child.dataType().simpleString()) for child in _items(call.children())]


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _offset(call: Any, query: Query, function: FunctionDefinition) -> int:
    start = call.origin().startIndex()
    if start.isDefined():
        return int(start.get())
    parsed = reparse(query)
    return place_of_call(parsed, function)
