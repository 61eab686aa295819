"""Records of the log as JSON."""

from __future__ import annotations

import base64
from typing import Any

from mainstem.schemas.codec import Codec
from mainstem.schemas.wire import schema_id
from mainstem.vocabulary import Record


def shown(record: Record, codec: Codec | None = None) -> dict[str, Any]:
    """A record as JSON; what is not UTF-8 text comes as base64.

    With a codec, what begins with a schema's id comes as what that schema says.
    """
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_shown_key(record, codec),
        **_shown_value(record.value, codec),
        "headers": [
            {"name": name, **shown_bytes("value", value)} for name, value in record.headers
        ],
    }


def _shown_key(record: Record, codec: Codec | None) -> dict[str, Any]:
    key = record.key
    read = None if key is None or codec is None else codec.shown_key(record.topic, key)
    if key is None or read is None:
        return shown_bytes("key", key)
    return {"key": read, "key_schema_id": schema_id(key)}


def _shown_value(data: bytes | None, codec: Codec | None) -> dict[str, Any]:
    read = None if data is None or codec is None else codec.shown(data)
    if data is None or read is None:
        return shown_bytes("value", data)
    return {"value": read, "schema_id": schema_id(data)}


def shown_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as a text under their name, or as base64 under `name_base64`."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
