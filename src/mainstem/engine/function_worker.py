"""Runs inside Spark's Python workers: makes a module of a function's source and calls it.

The engine's driver sends the source text; it runs functions over DataFrames only (`pipelines`). A
worker runs the text once and keeps the module. Every failure is told with the record that the
function was called for, when the call says which one that is (`traced`: the last two arguments are
its partition and offset).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.definitions.model import FunctionDefinition
from mainstem.engine.function_values import fitter, givers, taker
from mainstem.engine.spark_errors import task_failure
from mainstem.errors import MainstemError
from mainstem.schemas.arrow_types import arrow_type

MOST_RECORDS = 5_000
"""So many failed records are told at once; the others fail again when these are put aside."""
_LONGEST_PROBLEM = 300
USER_ERRORS = (Exception, SystemExit)
"""What a user's code may raise without ending the worker."""
NOT_FITTING = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for a value that is not of its type."""

Place = tuple[int, int]
"""Partition and offset of a record."""


@cache
def load(function: FunctionDefinition) -> Callable[..., Any]:
    """The function itself, from a module of its own."""
    module = ModuleType(f"mainstem_functions_{function.version}")
    # dataclasses look their module up
    sys.modules[module.__name__] = module
    file = function.location.file
    try:
        # the project's own code: whoever may apply may run it
        exec(compile(function.source, file, "exec"), module.__dict__)  # noqa: S102
        found: Callable[..., Any] = getattr(module, function.name)
    except USER_ERRORS as error:
        failure = MainstemError(
            "FUNCTION_NOT_LOADED", name=function.name, file=file, problem=problem_of(error)
        )
        raise RuntimeError(task_failure(failure)) from None
    return found


def call_per_row(
    function: FunctionDefinition, arrays: Sequence[pa.Array], *, traced: bool
) -> pa.Array:
    """A scalar function over the rows of a batch."""
    call = load(function)
    arguments, places = _split(arrays, traced)
    columns = [
        _given(array, parameter.type)
        for array, parameter in zip(arguments, function.parameters, strict=False)
    ]
    strict = [
        column
        for column, parameter in zip(columns, function.parameters, strict=False)
        if column.null_count and not parameter.nullable
    ]
    absent = _any_null(strict)
    values = [give(c) for give, c in zip(givers(call, function), columns, strict=False)]
    take = taker(function)
    failures = Failures(function, places)
    results: list[Any] = []
    for index, row in enumerate(zip(*values, strict=True)):
        result = None
        if absent is None or not absent[index]:
            try:
                result = take(call(*row))
            except USER_ERRORS as error:
                failures.add(index, error)
        results.append(result)
    failures.raise_if_any()
    return _column(function, results, failures)


def call_per_batch(
    function: FunctionDefinition, arrays: Sequence[pa.Array], *, traced: bool
) -> pa.Array:
    """A vectorised function over a batch."""
    call = load(function)
    arguments, places = _split(arrays, traced)
    columns = [
        _given(array, parameter.type)
        for array, parameter in zip(arguments, function.parameters, strict=False)
    ]
    try:
        return _vector(call, function, columns)
    except USER_ERRORS as error:
        failures = Failures(function, places)
        for index in range(len(columns[0])):
            try:
                _vector(call, function, [column.slice(index, 1) for column in columns])
            except USER_ERRORS as single:
                failures.add(index, single)
        failures.raise_if_any()
        # it fails with the batch as a whole, with none of its rows alone
        raise failed(function, error, {}) from None


def call_per_group(function: FunctionDefinition, arrays: Sequence[pa.Array]) -> Any:
    """An aggregate function over the rows of a group."""
    call = load(function)
    columns = [
        _given(array, parameter.type)
        for array, parameter in zip(arrays, function.parameters, strict=False)
    ]
    try:
        result = taker(function)(call(*columns))
        return pa.scalar(result, type=arrow_type(function.returns)).as_py()
    except USER_ERRORS as error:
        raise failed(function, error, {}) from None


def rows_of(
    function: FunctionDefinition, arguments: Sequence[Any], *, traced: bool
) -> Iterator[tuple[Any, ...]]:
    """The rows that a table function gives for one row."""
    call = load(function)
    places: list[Place] = []
    if traced:
        *arguments, partition, offset = arguments
        places = [(partition, offset)]
    parameters = function.parameters
    if any(a is None and not p.nullable for a, p in zip(arguments, parameters, strict=False)):
        return
    try:
        columns = [
            pa.array([None if value is None else fitter(p.type)(value)], type=arrow_type(p.type))
            for value, p in zip(arguments, parameters, strict=False)
        ]
        given = [g(c)[0] for g, c in zip(givers(call, function), columns, strict=False)]
        take = taker(function)
        rows = [take(row) for row in call(*given)]
        table = pa.array(rows, type=arrow_type(function.returns)).to_pylist()
    except USER_ERRORS as error:
        problem = {problem_of(error): places} if places else {}
        raise failed(function, error, problem) from None
    for row in table:
        yield tuple(row.values())


class Failures:
    """Which rows of a batch failed, and why."""

    def __init__(self, function: FunctionDefinition, places: list[Place]) -> None:
        self._function = function
        self._places = places
        self._first: BaseException | None = None
        self._found: dict[str, list[Place]] = {}
        self._count = 0

    def add(self, index: int, error: BaseException) -> None:
        """The call for a row failed."""
        if self._first is None:
            self._first = error
        if self._places and self._count < MOST_RECORDS:
            self._count += 1
            self._found.setdefault(problem_of(error), []).append(self._places[index])

    def raise_if_any(self) -> None:
        """FUNCTION_FAILED with all that failed."""
        if self._first is not None:
            raise failed(self._function, self._first, self._found) from None


def failed(
    function: FunctionDefinition,
    error: BaseException,
    records: dict[str, list[Place]],
    where: str = "",
) -> RuntimeError:
    """FUNCTION_FAILED, with the records that it failed for, or in words where it did."""
    first = next((place for places in records.values() for place in places), None)
    if first is not None:
        where = f" for the record at partition {first[0]}, offset {first[1]}"
    failure = MainstemError(
        "FUNCTION_FAILED",
        name=function.name,
        problem=problem_of(error),
        record=where,
        records=records,
    )
    # only text gets through Spark to the driver
    return RuntimeError(task_failure(failure))


def _split(arrays: Sequence[pa.Array], traced: bool) -> tuple[Sequence[pa.Array], list[Place]]:
    if not traced:
        return arrays, []
    partitions, offsets = arrays[-2].to_pylist(), arrays[-1].to_pylist()
    return arrays[:-2], list(zip(partitions, offsets, strict=True))


def _given(array: pa.Array, spark_type: str) -> pa.Array:
    """The argument in the type of its parameter; the query's analysis allowed only safe ways."""
    wanted = arrow_type(spark_type)
    return array if array.type == wanted else pc.cast(array, wanted)


def _any_null(columns: Sequence[pa.Array]) -> list[bool] | None:
    if not columns:
        return None
    absent = pc.is_null(columns[0])
    for column in columns[1:]:
        absent = pc.or_(absent, pc.is_null(column))
    found: list[bool] = absent.to_pylist()
    return found


def _column(function: FunctionDefinition, results: list[Any], failures: Failures) -> pa.Array:
    """The results as Arrow; a value that is not of the type that was promised is a failure."""
    wanted = arrow_type(function.returns)
    try:
        return pa.array(results, type=wanted)
    except NOT_FITTING:
        for index, result in enumerate(results):
            try:
                pa.array([result], type=wanted)
            except NOT_FITTING as error:
                failures.add(index, error)
        failures.raise_if_any()
        raise


def _vector(
    call: Callable[..., Any], function: FunctionDefinition, columns: Sequence[pa.Array]
) -> pa.Array:
    result = call(*columns)
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array) or len(result) != len(columns[0]):
        what = f"{len(result)} values" if isinstance(result, pa.Array) else type(result).__name__
        message = f"an array of {len(columns[0])} values was expected, not {what}"
        raise TypeError(message)
    return _given(result, function.returns)


def problem_of(error: BaseException) -> str:
    """What a user's code raised, in a line."""
    lines = str(error).strip().splitlines()
    words = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return words[:_LONGEST_PROBLEM]
