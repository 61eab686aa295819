"""Calls a `@stream` or `@table` function with its inputs: what it returns is the query's answer.

Functions over DataFrames are the one kind of user's code that the engine's own process runs (those
of `sink`, too): a DataFrame exists nowhere else. This one is called when it is planned and when its
flow starts (over tables, for each batch).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.definitions.model import FunctionDefinition, Query
from mainstem.engine.function_worker import USER_ERRORS, load, problem_of
from mainstem.engine.pipeline_shape import steps_of, with_shape
from mainstem.engine.spark_errors import flow_error, query_error
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

_RUNS = "must be executed with writeStream.start()"
"""What Spark says to `count`, `collect` and others over a stream."""


def call_pipeline(session: SparkSession, query: Query) -> DataFrame:
    """What the query's function makes of the session's views of its inputs."""
    function = query.python
    assert function is not None
    call = load_here(function)
    frames = [
        session.table(f"`{name}`").alias(parameter.name)
        for name, parameter in zip(query.inputs, function.parameters, strict=True)
    ]
    running = {active.id for active in session.streams.active}
    try:
        rows = call(*frames)
    except MainstemError:
        raise
    except PySparkException as error:
        if _RUNS in str(error):  # Spark has no condition for it
            raise _failed(function, "it asks for rows", line_of(error, function)) from None
        raise query_error(error, replace(query, location=line_of(error, function))) from None
    except USER_ERRORS as error:
        problem, place = problem_of(error), line_of(error, function)
        raise _failed(function, problem, place) from None
    finally:
        started = [active for active in session.streams.active if active.id not in running]
        for one in started:
            one.stop()
    if started:
        raise _failed(function, "it starts a streaming query by itself")
    if not isinstance(rows, DataFrame):
        raise _failed(function, f"it returns {type(rows).__name__}, not a DataFrame")
    # what is in the checkpoint is of the plan that was applied
    if query.mentioned and with_shape(query, steps_of(rows, query)) != query:
        raise _failed(function, "it returns another plan than when it was applied")
    return rows


def load_here(function: FunctionDefinition) -> Callable[..., Any]:
    """The function itself, in this process."""
    try:
        call = load(function)
    except RuntimeError as error:
        raise flow_error(error, function.name).at(function.location) from None
    # what it hands to Spark's workers goes there whole: they have no such module
    cloudpickle.register_pickle_by_value(sys.modules[call.__module__])  # type: ignore[no-untyped-call]
    return call


def _failed(
    function: FunctionDefinition, problem: str, place: SourceLocation | None = None
) -> MainstemError:
    return MainstemError(
        "PIPELINE_FAILED",
        location=place or function.location,
        name=function.name,
        problem=problem,
    )


def line_of(error: BaseException, function: FunctionDefinition) -> SourceLocation:
    """The last line of the user's file that was running."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == function.location.file and frame.lineno is not None:
            lines = function.source.splitlines()
            text = lines[frame.lineno - 1] if frame.lineno <= len(lines) else ""
            column = (frame.colno or 0) + 1
            return SourceLocation(function.location.file, frame.lineno, column, text)
    return function.location
