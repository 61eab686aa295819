"""What the engine says of a function over events before it runs: types, columns, EXPLAIN."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from mainstem.definitions.model import Definition, FunctionDefinition, TimerClock
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
    session: SparkSession,
    definition: Definition,
    function: FunctionDefinition,
    source: Definition,
) -> DataFrame:
    """No rows, with the columns that the function gives; TYPE_MISMATCH if it cannot be called."""
    event = function.parameters[0]
    fields = struct_fields(event.type) if definition.sink is None else {}
    for name, wanted in fields.values():
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
    schema = DataType.fromDDL(function.returns)
    assert isinstance(schema, StructType)
    return session.createDataFrame([], schema)


def explained(definition: Definition, function: FunctionDefinition) -> dict[str, Any]:
    """The flow in words."""
    reasons: list[str] = []
    if (stateful := definition.stateful) is not None:
        reasons = [
            "exactly once: records, changes of the state and commit token are written in one "
            "transaction per task",
            f"state is kept by {', '.join(stateful.key)} until the function clears it",
            _WHEN[stateful.clock],
        ]
    elif (handler := definition.handler) is not None:
        tries = f"{handler.tries} times" if handler.tries else "without end"
        reasons = [
            "at least once: after a crash the function may be called again for up to "
            f"{handler.most} records; its own records are written exactly once",
            f"a call that fails is tried {tries}, then the record goes to the quarantine",
        ]
    elif definition.sink is not None:
        reasons = [
            "at least once: after a failure the function is called again with the same batch; its "
            "receipts are written exactly once",
        ]
    return {
        "lane": definition.lane.value,
        "kind": f"{function.flavour} function",
        "reasons": [*reasons, "cannot run in real time: it is a Python function"],
        "plan": f"{function.signature}\n  {function.location}",
    }
