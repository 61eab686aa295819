"""Spark's errors -> ours: by Spark's error conditions, never by their text."""

from __future__ import annotations

import json
import re

from pyspark.errors import PySparkException, QueryContextType
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from mainstem.definitions.model import Query
from mainstem.definitions.places import place_in
from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.wire import error_from_document, error_to_document
from mainstem.vocabulary import SourceLocation

_LONGEST = 500
MARK = "=mainstem="
"""Around an error of ours inside the text of one of Spark's."""
_POSITION = re.compile(r";?\s*line \d+,? pos \d+.*", re.DOTALL)
_LEAD = re.compile(r"^(: |Caused by: )")
_JAVA_CLASS = re.compile(r"^(\w+\.)+[\w$]+: ")
_TYPE_CONDITIONS = (
    "DATATYPE_MISMATCH",
    "CAST_",
    "INCOMPATIBLE_",
    "INVALID_EXTRACT_",
    "UNEXPECTED_INPUT_TYPE",
)
_DATA_CONDITIONS = ("CAST_INVALID_INPUT", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
_LOST = ("KAFKA_DATA_LOSS", "COULD_NOT_READ_OFFSET_RANGE", "STREAMING_SOURCE_DATA_LOSS")


def query_error(error: PySparkException, query: Query) -> MainstemError:
    """What Spark says of a query, at its place in the file."""
    ours = _from_task(str(error))
    if ours is not None:
        return ours.at(query.location)
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    location = _place(error, query)
    if condition.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")):
        name = (parameters.get("objectName") or parameters.get("fieldName", "")).replace("`", "")
        known = (parameters.get("proposal") or parameters.get("fields", "")).replace("`", "")
        suggestion = did_you_mean(name.split(".")[-1], [k.strip() for k in known.split(",")])
        return MainstemError(
            "UNKNOWN_COLUMN",
            location=location,
            column=name,
            known=known or "see DESCRIBE",
            suggestion=suggestion,
        )
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters.get("routineName", "").replace("`", "")
        own = " Functions of functions/ are called in SQL." if query.python is not None else ""
        return MainstemError("FUNCTION_NOT_ALLOWED", location=location, name=name, suggestion=own)
    problem = short(error)
    if condition.startswith(_TYPE_CONDITIONS):
        return MainstemError("TYPE_MISMATCH", location=location, problem=problem)
    return MainstemError("INVALID_QUERY", location=location, problem=problem)


def is_data_error(error: PySparkException) -> bool:
    """True when a value, not the query's shape, is what Spark complains of."""
    return (error.getCondition() or "").startswith(_DATA_CONDITIONS)


def flow_error(error: BaseException, flow: str) -> MainstemError:
    """Why a running flow stopped, short enough for a status line."""
    if isinstance(error, MainstemError):
        return error
    text = str(error)
    found = _from_task(text)
    if found is not None:
        return found
    if any(condition in text for condition in _LOST) or "OffsetOutOfRange" in text:
        return MainstemError("FLOW_DATA_LOST", name=flow, problem=short(error))
    return MainstemError("FLOW_FAILED", name=flow, problem=short(error))


def short(error: BaseException) -> str:
    """The first sentence of an error, without positions, traces and SQL states."""
    lines = [_LEAD.sub("", line.strip()) for line in str(error).splitlines() if line.strip()]
    # an error that came through Spark ends with the line that matters
    causes = [line for line in lines if re.match(r"^[\w.$]*(Error|Exception)\b.*:", line)]
    text = causes[-1] if causes else lines[0] if lines else type(error).__name__
    text = _JAVA_CLASS.sub("", text)
    text = _POSITION.sub("", text)
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text)
    return text[:_LONGEST]


def task_failure(error: MainstemError) -> str:
    """Our error as a text that `flow_error` finds again inside Spark's own."""
    return f"{MARK}{json.dumps(error_to_document(error))}{MARK}"


def complaint(code: str, params: SparkColumn) -> SparkColumn:
    """An expression that fails with an error of ours; `params` is a struct of what it tells."""
    document = F.to_json(F.struct(F.lit(code).alias("title"), params.alias("params")))
    return F.raise_error(F.concat(F.lit(MARK), document, F.lit(MARK))).cast("string")


def retold(error: BaseException) -> str:
    """An error of a Spark job in few words; one of ours keeps all that `flow_error` needs."""
    ours = _from_task(str(error))
    if ours is None:
        return short(error)
    ours.params.pop("records", None)  # as many as there are; whoever needs them has the error
    return task_failure(ours)


def _from_task(text: str) -> MainstemError | None:
    match = re.search(f"{MARK}(.*?){MARK}", text, re.DOTALL)
    return None if match is None else error_from_document(json.loads(match.group(1)))


def _place(error: PySparkException, query: Query) -> SourceLocation:
    if error.getCondition() == "MISSING_AGGREGATION":
        # Spark marks the whole query, and names the expression
        written = (error.getMessageParameters() or {}).get("expression", "").strip('"')
        found = re.search(rf"\b{re.escape(written)}\b", query.text)
        if found is not None:
            return place_in(query, found.start())
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.SQL:
            start = context.startIndex()
            if 0 <= start <= len(query.text):
                return place_in(query, start)
    return query.location
