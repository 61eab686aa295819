"""CloudEvents 1.0 that come over HTTP (structured, binary and in batches), as records of a stream.

Columns `ce_id`, `ce_source`, `ce_type`, ... take the attributes of those names, a column `data` the
whole data; without such a column, the data is an object of the stream's columns. All attributes are
headers of the record, too, as CloudEvents' Kafka binding has them, and `partitionkey` is the key
where the stream has no key of its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.gateway.typed_values import as_number

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_PREFIX = "ce-"
_COLUMN = "ce_"
_NAME = re.compile(r"[a-z0-9]{1,64}")
_REQUIRED = ("id", "source", "type", "specversion")
_VERSION = "1.0"
_DATA = ("data", "data_base64")
_KEY = "partitionkey"


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """One event: its attributes as texts, and its data, JSON or bytes."""

    attributes: Mapping[str, str]
    data: Any


def read_events(headers: Mapping[str, str], body: bytes) -> list[CloudEvent]:
    """The events of a request; header names are small. BAD_REQUEST says what is wrong."""
    content = headers.get("content-type", "")
    kind = content.partition(";")[0].strip().lower()
    if kind == STRUCTURED:
        return [_structured(_json(body), "the event")]
    if kind == BATCH:
        documents = _json(body)
        if not isinstance(documents, list) or not documents:
            raise _bad("a batch is a list of at least one event")
        return [_structured(each, f"event {index}") for index, each in enumerate(documents)]
    if f"{_PREFIX}specversion" in headers:
        return [_binary(headers, content, body)]
    raise _bad(
        f"no CloudEvent: send {STRUCTURED}, {BATCH}, or ce-id, ce-source, ce-type and"
        " ce-specversion as headers"
    )


def as_record(event: CloudEvent, definition: Definition) -> dict[str, Any]:
    """The event as a record of a request."""
    attributes = event.attributes
    columns = {column.name: column.type for column in definition.columns}
    row = {
        name: attributes.get(name.removeprefix(_COLUMN))
        for name in columns
        if name.startswith(_COLUMN)
    }
    if "data" in columns:
        row["data"] = _data(event.data, columns["data"])
    elif isinstance(event.data, dict):
        row = {**row, **event.data}
    elif event.data is not None:
        problem = f'its data is no JSON object, and "{definition.name}" has no column data'
        raise _bad(problem)
    kafka_headers = [
        {"name": "content-type" if name == "datacontenttype" else f"ce_{name}", "value": value}
        for name, value in attributes.items()
    ]
    record: dict[str, Any] = {"value": row, "headers": kafka_headers}
    if not definition.key and _KEY in attributes:
        record["key"] = attributes[_KEY]
    return record


def _data(data: Any, column_type: str) -> Any:
    if isinstance(data, bytes):
        return base64.b64encode(data).decode() if column_type == "binary" else _text(data)
    if data is None or column_type != "string" or isinstance(data, str):
        return data
    return json.dumps(data, default=as_number)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _bad("its data is not UTF-8 text: a column data of BINARY takes any") from None


def _structured(document: Any, which: str) -> CloudEvent:
    if not isinstance(document, dict):
        raise _bad(f"{which} is no JSON object")
    attributes = {
        name: _attribute(value, f"{which}: {name}")
        for name, value in document.items()
        if name not in _DATA and value is not None
    }
    _check(attributes, which)
    if document.get("data_base64") is not None:
        try:
            return CloudEvent(attributes, base64.b64decode(document["data_base64"], validate=True))
        except (ValueError, TypeError):
            raise _bad(f"{which}: data_base64 is not base64") from None
    return CloudEvent(attributes, document.get("data"))


def _binary(headers: Mapping[str, str], content: str, body: bytes) -> CloudEvent:
    attributes = {
        name.removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    _check(attributes, "the event")
    if content:
        attributes["datacontenttype"] = content
    if not body:
        return CloudEvent(attributes, None)
    kind = content.partition(";")[0].strip().lower()
    if not kind or kind == "application/json" or kind.endswith("+json"):
        return CloudEvent(attributes, _json(body))
    return CloudEvent(attributes, body)


def _attribute(value: Any, which: str) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case _:
            raise _bad(f"{which} is no text, whole number or truth value")


def _check(attributes: Mapping[str, str], which: str) -> None:
    for name in _REQUIRED:
        if not attributes.get(name):
            raise _bad(f"{which}: {name} is missing")
    if attributes["specversion"] != _VERSION:
        raise _bad(f"{which}: specversion {_VERSION} was expected")
    for name in attributes:
        if _NAME.fullmatch(name) is None:
            raise _bad(f"{which}: an attribute's name has small letters and digits only")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON: {error}") from None


def _bad(problem: str) -> MainstemError:
    return MainstemError("BAD_REQUEST", problem=problem)
