"""Python functions in a Spark session: exactly those that a query calls, under their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from mainstem.definitions.model import Flavour, FunctionDefinition
from mainstem.engine.function_worker import (
    call_per_batch,
    call_per_group,
    call_per_row,
    load,
    rows_of,
)
from mainstem.engine.spark_errors import flow_error


def register(
    session: SparkSession, functions: Sequence[FunctionDefinition], *, traced: bool = False
) -> None:
    """Make the functions callable in the session's SQL.

    With `traced` the last two arguments of every call are partition and offset of the record.
    """
    for function in functions:
        if function.flavour is Flavour.TABLE:
            fields = function.returns.removeprefix("struct<").removesuffix(">")
            table: Any = udtf(_rows(function, traced), returnType=fields)
            session.udtf.register(function.name, table)
        elif function.flavour is Flavour.AGGREGATE:
            call = _call(function, call_per_group)
            _register(session, function, call, ArrowUDFType.GROUPED_AGG)
        else:
            per_row = function.flavour is Flavour.SCALAR
            call = _call(function, call_per_row if per_row else call_per_batch, traced=traced)
            _register(session, function, call, ArrowUDFType.SCALAR)


def check_loads(spark: SparkSession, functions: Sequence[FunctionDefinition]) -> None:
    """FUNCTION_NOT_LOADED when a worker cannot make a module of a function's source."""
    if not functions:
        return
    wanted = tuple(functions)

    def loads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for function in wanted:
            load(function)
        yield from batches

    try:
        spark.range(1).coalesce(1).mapInArrow(loads, "id long").collect()
    except PySparkException as error:
        raise flow_error(error, wanted[0].name) from None


def _register(session: SparkSession, function: FunctionDefinition, call: Any, kind: Any) -> None:
    session.udf.register(function.name, arrow_udf(call, function.returns, kind))


def _call(function: FunctionDefinition, run: Callable[..., Any], **how: bool) -> Any:
    """What Spark calls with a batch or a group; without annotations, which Spark would read."""

    def call(*arrays):  # type: ignore[no-untyped-def]
        return run(function, arrays, **how)

    return call


def _rows(function: FunctionDefinition, traced: bool) -> type:
    class Rows:
        """What Spark calls for each row."""

        def eval(self, *arguments: Any) -> Iterator[tuple[Any, ...]]:
            yield from rows_of(function, arguments, traced=traced)

    return Rows
