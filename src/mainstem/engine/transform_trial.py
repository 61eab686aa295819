"""Transforms tried on some records, which are decoded and told apart as in the flow of a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.connect.targets.target import GONE, OFFSET, PARTITION, REFUSED, TIME, TOPIC
from mainstem.definitions.model import Definition
from mainstem.definitions.transform_effects import Rows, after_all
from mainstem.definitions.transforms import Transform
from mainstem.engine.encode import JSON_OPTIONS
from mainstem.engine.formats import Versions
from mainstem.engine.transform_checks import check_transforms
from mainstem.engine.transforms import PASSED, transformed
from mainstem.engine.values import ROW, corrupt_of, row_of
from mainstem.vocabulary import HIDDEN_PREFIX, Column

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_TRANSFORMS: TypeAdapter[tuple[Transform, ...]] = TypeAdapter(tuple[Transform, ...])
_BEFORE = HIDDEN_PREFIX + "before"
_BAD = HIDDEN_PREFIX + "bad"
_KAFKA = pa.schema([("value", pa.binary()), ("offset", pa.int64())])
_NOT_DECODED = "it does not hold the columns, or is no JSON"


def tried_transforms(spark: SparkSession, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request: the columns behind the transforms, and what becomes of each record.

    `definition` says the columns; records are JSON texts, before as after. In the place of a salt
    stands its reference: whoever may try transforms need not be able to try out secrets.
    """
    definition = _DEFINITION.validate_python(payload["definition"])
    transforms = _TRANSFORMS.validate_python(payload["transforms"])
    session, name = spark.newSession(), definition.name
    columns = after_all(Rows(definition.columns, definition.key), transforms).columns
    check_transforms(session, definition.columns, transforms, name)
    rows = _decoded(session, definition, payload["records"])
    rows = transformed(rows, definition.columns, transforms, name, str)
    made = rows.select(
        F.col(_BEFORE).alias("before"),
        _object(columns).alias("after"),
        F.col(REFUSED).alias("refused"),
        F.col(PASSED).alias("passed"),
        F.col(_BAD).alias("bad"),
        F.col(OFFSET).alias("offset"),
    )
    return {
        "columns": [{"name": c.name, "type": c.type} for c in columns],
        "records": [_told(row.asDict()) for row in made.sort("offset").collect()],
    }


def _decoded(session: SparkSession, definition: Definition, records: Sequence[str]) -> DataFrame:
    """The records as a target's rows, as if they were in the topic one behind the other."""
    values = [record.encode() for record in records]
    raw = session.createDataFrame(pa.table([values, range(len(values))], schema=_KAFKA))
    parsed = raw.select("value", "offset", row_of(definition, Versions()))
    names = [column.name for column in definition.columns]
    return parsed.select(
        *(F.col(ROW).getField(name).alias(name) for name in names),
        F.to_json(ROW, JSON_OPTIONS).alias(_BEFORE),
        corrupt_of(definition, Versions()).isNotNull().alias(_BAD),
        F.lit(definition.topic).alias(TOPIC),
        F.lit(0).alias(PARTITION),
        F.col("offset").alias(OFFSET),
        F.current_timestamp().alias(TIME),
        F.lit(False).alias(GONE),
    )


def _object(columns: Sequence[Column]) -> SparkColumn:
    values = (F.col("`" + c.name.replace("`", "``") + "`") for c in columns)
    return F.to_json(F.struct(*values), JSON_OPTIONS)


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    told = {"record": row["offset"] + 1, "before": None, "after": None, "cause": None}
    if row["bad"]:
        return {**told, "result": "bad", "cause": _NOT_DECODED}
    told["before"] = row["before"]
    if row["refused"] is not None:
        return {**told, "result": "refused", "cause": f"{row['refused']} fails"}
    if not row["passed"]:
        return {**told, "result": "left out"}
    return {**told, "result": "passed", "after": row["after"]}
