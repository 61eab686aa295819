"""Documents of MongoDB in captured changes: a text of JSON in place of a row.

Debezium writes them in MongoDB's extended JSON, strict mode, where a value whose type JSON does not
know is an object: `{"$oid": "..."}`. `PLAIN` makes values of these by replacing their text. That is
safe, for a quote within a text has a backslash before it: what looks like such an object is one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from mainstem.definitions.types import struct_fields

ID = "_id"
KEY = "id"
"""In a record's key: the document's `_id`, as a text of JSON."""
_NUMBER = r"-?\d+"
PLAIN: tuple[tuple[str, str], ...] = (
    (r'\{\s*"\$oid"\s*:\s*("[0-9a-fA-F]{24}")\s*\}', "$1"),
    (rf'\{{\s*"\$numberLong"\s*:\s*"({_NUMBER})"\s*\}}', "$1"),
    (r'\{\s*"\$numberDecimal"\s*:\s*("[^"\\]*")\s*\}', "$1"),
    (rf'\{{\s*"\$date"\s*:\s*({_NUMBER})\s*\}}', "$1"),
    (r'\{\s*"\$binary"\s*:\s*("[^"\\]*")\s*,\s*"\$type"\s*:\s*"[0-9a-fA-F]+"\s*\}', "$1"),
)
"""What is replaced, and by what, in the words of Java. A date becomes a number of milliseconds."""
_PLAIN = tuple((re.compile(found, re.ASCII), r"\1") for found, _ in PLAIN)
_MICROSECONDS = 1000


def plain_document(text: str) -> str:
    """The text of a document, or of a value in one, as plain JSON."""
    for found, by in _PLAIN:
        text = found.sub(by, text)
    return text


def document_row(text: str | None, type_: str) -> dict[str, Any] | None:
    """The columns of a document, as `json_text` takes them; ValueError for what is none."""
    if text is None:
        return None
    document = _of_type(dict, json.loads(plain_document(text), parse_float=Decimal))
    return {name: _value(document.get(name), kind) for name, kind in struct_fields(type_).values()}


def key_row(key: bytes | None, type_: str) -> dict[str, Any] | None:
    """The columns of a row that is told by its key alone."""
    if key is None:
        return None
    return document_row(f'{{"{ID}": {json.loads(key)[KEY]}}}', type_)


def _value(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ == "string":
        return value if isinstance(value, str) else _text(value)
    if type_.startswith("array<"):
        return [_value(item, type_[len("array<") : -1]) for item in _of_type(list, value)]
    if type_.startswith("struct<"):
        fields, inner = struct_fields(type_).values(), _of_type(dict, value)
        return {name: _value(inner.get(name), kind) for name, kind in fields}
    if type_.startswith("decimal("):
        return Decimal(value)
    read = _READ.get(type_)
    return value if read is None else read(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain_number)


def _plain_number(value: Any) -> Any:
    return float(value)


def _of_type(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError("it does not fit its column")
    return value


def _real(value: Any) -> float:
    return float(value if isinstance(value, Decimal) else _of_type(int, value))


def is_documents(fields: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether changes are those of documents, by the fields of their schema."""
    return fields["after"].get("type") == "string"


_READ: dict[str, Callable[[Any], Any]] = {
    "boolean": partial(_of_type, bool),
    "int": partial(_of_type, int),
    "bigint": partial(_of_type, int),
    "float": _real,
    "double": _real,
    "timestamp": lambda millis: _of_type(int, millis) * _MICROSECONDS,
    "binary": lambda text: base64.b64decode(text, validate=True),
}
