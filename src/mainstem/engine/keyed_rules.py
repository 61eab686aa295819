"""What the engine says of a stateful function before it runs: types, columns, EXPLAIN."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from mainstem.definitions.model import Definition, Stateful, TimerClock
from mainstem.definitions.types import struct_fields
from mainstem.engine.function_arguments import fits
from mainstem.errors import MainstemError
from mainstem.vocabulary import METADATA_COLUMNS

_WHEN = {
    None: "it has no timer",
    TimerClock.EVENT: "timers ring by the time of the records, less the watermark of the stream",
    TimerClock.WALL: "timers ring by the wall clock",
}


def rows_of_function(
    session: SparkSession, definition: Definition, stateful: Stateful, source: Definition
) -> DataFrame:
    """No rows, with the columns that the function gives; TYPE_MISMATCH if it cannot be called."""
    event = stateful.function.parameters[0]
    for name, wanted in struct_fields(event.type).values():
        column = source.column(name)
        given = METADATA_COLUMNS[name.lower()] if column is None else column.type
        if not fits(given, wanted):
            raise MainstemError(
                "TYPE_MISMATCH",
                location=definition.location,
                problem=f'field "{name}" of parameter "{event.name}" of function '
                f'"{definition.name}" is a {wanted}, and column "{name}" of '
                f'"{source.name}" is a {given}',
            )
    schema = DataType.fromDDL(stateful.function.returns)
    assert isinstance(schema, StructType)
    return session.createDataFrame([], schema)


def explained(definition: Definition, stateful: Stateful) -> dict[str, Any]:
    """The flow in words."""
    function = stateful.function
    return {
        "lane": definition.lane.value,
        "kind": "stateful function",
        "reasons": [
            "exactly once: records, changes of the state and commit token are written in one "
            "transaction per task",
            f"state is kept by {', '.join(stateful.key)} until the function clears it",
            _WHEN[stateful.clock],
            "cannot run in real time: it is a Python function",
        ],
        "plan": f"{function.signature}\n  {function.location}",
    }
