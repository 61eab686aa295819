"""Lines of CSV -> JSON text of a definition's columns, and back, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal

from mainstem.definitions.model import Definition
from mainstem.schemas.csv_text import BadLine, join_line, split_line
from mainstem.vocabulary import Column

COMMA = ","
_escape = json.encoder.encode_basestring
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = {"NaN": "NaN", "Inf": "Infinity", "-Inf": "-Infinity"}
_LINE_END = re.compile(r"\r?\n\Z")


def row_text(definition: Definition, line: str) -> str:
    """The JSON object of a line; raises BadLine."""
    columns = definition.value_columns
    fields = split_line(_LINE_END.sub("", line), definition.delimiter or COMMA)
    if len(fields) != len(columns):
        message = f"it has {len(fields)} fields, not {len(columns)}"
        raise BadLine(message)
    parts = [f"{_escape(c.name)}:{_json(f, c)}" for f, c in zip(fields, columns, strict=True)]
    return "{" + ",".join(parts) + "}"


def line_of(definition: Definition, fields: Mapping[str, str]) -> str:
    """The line of a row, whose fields come as JSON text."""
    texts = [fields.get(column.name, "null") for column in definition.value_columns]
    return join_line([_plain(text) for text in texts], definition.delimiter or COMMA)


def _plain(text: str) -> str | None:
    value = json.loads(text, parse_float=str, parse_int=str)
    return text if isinstance(value, bool) else value


def _json(field: str | None, column: Column) -> str:
    if field is None:
        return "null"
    kind = column.type
    if kind in ("tinyint", "smallint", "int", "bigint") and _WHOLE.fullmatch(field):
        return str(int(field))
    if kind in ("float", "double"):
        if _NUMBER.fullmatch(field):
            return repr(float(field)) if abs(float(field)) != float("inf") else '"Infinity"'
        finite = _NOT_FINITE.get(field, field)
        if finite in _NOT_FINITE.values():
            return _escape(finite)
    if kind.startswith("decimal(") and _NUMBER.fullmatch(field):
        return f"{Decimal(field):f}"
    if kind == "boolean" and field.lower() in ("true", "false"):
        return field.lower()
    if kind in ("string", "date", "timestamp", "timestamp_ntz"):
        return _escape(field)
    message = f'field "{column.name}" is not a {kind}'
    raise BadLine(message)
