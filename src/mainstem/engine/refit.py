"""Records out of quarantine, mended by a query if one is given, and held against their columns.

The check is the decoder's own, so that what passes here passes in every flow.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.definitions.fix import RELATION
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.rules import told
from mainstem.engine.decode import bad_records
from mainstem.engine.formats import Formats
from mainstem.engine.quarantine import diagnose
from mainstem.engine.spark_errors import is_data_error, query_error, short
from mainstem.errors import MainstemError

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_QUERY: TypeAdapter[Query] = TypeAdapter(Query)
_ID = "_id"
_KAFKA = pa.schema(
    [
        (_ID, pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_RAW = pa.schema(
    [
        (_ID, pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("cause", pa.string()),
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", pa.timestamp("us", "UTC")),
    ]
)
_READABLE = (
    _ID, "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value", "cause",
    "_topic", "_partition", "_offset", "_timestamp",
)  # fmt: skip

Row = tuple[int, bytes | None, bytes | None]
"""Id, key and value of a record."""


def refit(spark: SparkSession, formats: Formats, payload: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request: each record as it would be written, and what is wrong with it.

    Records that the query leaves out are not in the answer.
    """
    session = spark.newSession()
    records: Sequence[dict[str, Any]] = payload["records"]
    if payload["query"] is None:
        rows = [(r["id"], _bytes(r["key"]), _bytes(r["value"])) for r in records]
    else:
        rows = _mended(session, records, _QUERY.validate_python(payload["query"]))
    problems: dict[int, str] = {}
    if payload["definition"] is not None:
        definition = _DEFINITION.validate_python(payload["definition"])
        problems = _problems(session, rows, records, definition, formats)
    # a mistake in the query far more often than a wish to delete
    there = {r["id"] for r in records if r["value"] is not None}
    problems |= {id: "it has no value (NULL)" for id, _, v in rows if v is None and id in there}
    return {
        "records": [
            {
                "id": id,
                "key": _text(key),
                "value": _text(value),
                "problem": problems.get(id),
            }
            for id, key, value in rows
        ]
    }


def _mended(session: SparkSession, records: Sequence[dict[str, Any]], query: Query) -> list[Row]:
    raw = _frame(session, [_raw(record) for record in records], _RAW)
    raw.selectExpr(*_READABLE).createOrReplaceTempView(RELATION)
    try:
        names = _checked_columns(session.sql(query.text))
        # the id beside what the query gives says which record a row belongs to
        found = session.sql(f"SELECT {_ID}, {query.text[len('SELECT') :]}")
        rows = found.selectExpr(
            _ID, *(f"CAST(CAST({name} AS STRING) AS BINARY) AS {name}" for name in names)
        ).collect()
    except PySparkException as error:
        if is_data_error(error):
            raise MainstemError("TYPE_MISMATCH", problem=short(error)) from None
        raise query_error(error, query) from None
    if len({row[_ID] for row in rows}) < len(rows):
        raise MainstemError("INVALID_QUERY", problem="it gives more than one row for a record")
    keys = {record["id"]: _bytes(record["key"]) for record in records}
    return [
        (row[_ID], _plain(row["key"]) if "key" in names else keys[row[_ID]], _plain(row["value"]))
        for row in rows
    ]


def _checked_columns(rows: DataFrame) -> list[str]:
    names = sorted(name.lower() for name in rows.columns)
    if names not in (["value"], ["key", "value"]):
        problem = f"it gives {', '.join(rows.columns)}; it must give value, and may give key"
        raise MainstemError("INVALID_QUERY", problem=problem)
    return names


def _problems(
    session: SparkSession,
    rows: list[Row],
    records: Sequence[dict[str, Any]],
    definition: Definition,
    formats: Formats,
) -> dict[int, str]:
    if not rows:
        return {}
    places = {r["id"]: (r["topic"], r["partition"], r["offset"]) for r in records}
    times = {r["id"]: _moment(r["timestamp"]) for r in records}
    raw = _frame(session, [(*row, *places[row[0]], times[row[0]]) for row in rows], _KAFKA)
    bad = {
        row[_ID]: f"it breaks {told(definition, row.broken)}" if row.broken else row.mistaken
        for row in bad_records(raw, definition, formats).collect()
    }
    return {
        id: bad[id] or diagnose(value or b"", definition, formats, key)
        for id, key, value in rows
        if id in bad
    }


def _frame(session: SparkSession, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> DataFrame:
    """Rows as a DataFrame. By way of Arrow they need no Python worker, which takes seconds."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def _raw(record: dict[str, Any]) -> tuple[Any, ...]:
    return (
        record["id"],
        _bytes(record["key"]),
        _bytes(record["value"]),
        record["cause"],
        record["topic"],
        record["partition"],
        record["offset"],
        _moment(record["timestamp"]),
    )


def _moment(milliseconds: int) -> datetime | None:
    """A record may carry any number for its time; one that is none is no reason to give up."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _plain(data: bytearray | None) -> bytes | None:
    return None if data is None else bytes(data)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
