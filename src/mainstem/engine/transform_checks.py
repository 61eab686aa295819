"""What only Spark can say of transforms: whether it can compute a condition, and read a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.connect.targets.target import GONE, OFFSET, PARTITION, TIME, TOPIC
from mainstem.definitions.model import Query
from mainstem.definitions.transform_effects import Rows, after, base
from mainstem.definitions.transforms import Filter, Timestamp, Transform
from mainstem.engine.spark_errors import query_error, short
from mainstem.engine.transforms import transformed
from mainstem.engine.values import schema_of
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_SELECT = "SELECT "
_VIEW = "_mainstem_transforms"
_CONDITION_TYPES = ("boolean", "void")
_SOME_TIME = "2024-02-29 13:14:15.678901"


def check_transforms(
    session: SparkSession, columns: Sequence[Column], transforms: Sequence[Transform], name: str
) -> None:
    """Refuse a condition that Spark cannot compute of the columns, and a pattern it cannot read."""
    rows = session.createDataFrame([], schema_of(columns))
    hidden = {TOPIC: "string", PARTITION: "int", OFFSET: "bigint", TIME: "timestamp"}
    rows = rows.select(
        "*",
        *(F.lit(None).cast(kind).alias(column) for column, kind in hidden.items()),
        F.lit(False).alias(GONE),
    )
    known = Rows(tuple(columns))
    for index, transform in enumerate(transforms):
        match transform:
            case Filter():
                before = transformed(rows, columns, transforms[:index], name, _unresolved)
                _check_condition(before, transform)
            case Timestamp(pattern=str(pattern)):
                kind = base(known.column(transform.column).type)
                _check_pattern(session, pattern, transform, read=kind == "string")
            case _:
                pass
        known = after(known, transform)


def _check_condition(rows: DataFrame, transform: Filter) -> None:
    place = transform.location
    query = Query(
        text=f"{_SELECT}{transform.condition}",
        canonical="",
        inputs=(),
        location=replace(place, column=place.column - len(_SELECT)),
    )
    try:
        rows.createOrReplaceTempView(_VIEW)
        [found] = rows.sparkSession.sql(f"{query.text} FROM {_VIEW}").schema.fields
    except PySparkException as error:
        refused = query_error(error, query)
        if refused.location == query.location:  # Spark does not say where
            refused.location = place
        raise refused from None
    kind = found.dataType.simpleString()
    if kind not in _CONDITION_TYPES:
        raise MainstemError(
            "INVALID_TRANSFORM",
            location=place,
            problem=f"it is a {kind.upper()}, not a condition",
            advice="Compare it with something: a filter is true or false for a row.",
        )


def _check_pattern(
    session: SparkSession, pattern: str, transform: Timestamp, *, read: bool
) -> None:
    """Write a time by the pattern, and read it if that is what will be done."""
    time = F.date_format(F.lit(_SOME_TIME).cast("timestamp"), pattern)
    try:
        session.range(1).select(F.to_timestamp(time, pattern) if read else time).collect()
    except PySparkException as error:
        raise MainstemError(
            "INVALID_TRANSFORM",
            location=transform.location,
            problem=f"the pattern '{pattern}' cannot be used: {short(error)}",
            advice="Letters of a pattern are y M d H m s S; others stand in single quotes.",
        ) from None


def _unresolved(reference: str) -> str:
    """A plan that only shows its types needs no secrets."""
    return reference
