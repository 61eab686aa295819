"""Python functions in a Spark session: exactly those that a query calls, under their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.functions import arrow_udf

from mainstem.definitions.model import Flavour, FunctionDefinition
from mainstem.engine.function_worker import (
    call_per_batch,
    call_per_group,
    call_per_row,
    load,
    rows_of,
)
from mainstem.engine.spark_errors import flow_error

_arrow_udf: Any = arrow_udf
"""PySpark's own type hints do not know all of its forms."""


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
            continue
        aggregate = function.flavour is Flavour.AGGREGATE
        call: Any = _group(function) if aggregate else _batch(function, traced)
        session.udf.register(function.name, _arrow_udf(call, function.returns))


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


def _batch(function: FunctionDefinition, traced: bool) -> Callable[..., pa.Array]:
    run = call_per_row if function.flavour is Flavour.SCALAR else call_per_batch

    # by the annotations Spark knows what it is
    def call(*arrays: pa.Array) -> pa.Array:
        return run(function, arrays, traced=traced)

    return call


def _group(function: FunctionDefinition) -> Callable[..., object]:
    def call(*arrays: pa.Array) -> object:
        return call_per_group(function, arrays)

    return call


def _rows(function: FunctionDefinition, traced: bool) -> type:
    class Rows:
        """What Spark calls for each row."""

        def eval(self, *arguments: Any) -> Iterator[tuple[Any, ...]]:
            yield from rows_of(function, arguments, traced=traced)

    return Rows
