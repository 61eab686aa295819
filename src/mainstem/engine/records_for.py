"""The input of a function over events: what it takes, and where each record stands in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, FunctionDefinition
from mainstem.definitions.state import event_time_of
from mainstem.definitions.types import struct_fields
from mainstem.engine.decode import Intake, mentioned_metadata, read_stream

TOPIC, PARTITION, OFFSET, TIME = PLACE = (
    "_mainstem_topic",
    "_mainstem_partition",
    "_mainstem_offset",
    "_mainstem_time",
)
"""The last columns: where each record stands in the log, and its event time."""


def records_for(
    session: SparkSession,
    function: FunctionDefinition,
    source: Definition,
    intake: Intake,
    more: Mapping[str, str],
) -> DataFrame:
    """The fields of the function's record, `more` columns (name -> input column), and the place."""
    event = struct_fields(function.parameters[0].type).values()
    place = ("_topic", "_partition", "_offset", event_time_of(source))
    metadata = mentioned_metadata({name for name, _ in event} | {*place})
    rows = read_stream(session, source, replace(intake, metadata=metadata))
    others = {**more, **dict(zip(PLACE, place, strict=True))}
    return rows.select(
        *(F.col(_quoted(name)).cast(kind).alias(name) for name, kind in event),
        *(F.col(_quoted(column)).alias(name) for name, column in others.items()),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
