"""Records of the log as JSON."""

from __future__ import annotations

import base64
from typing import Any

from mainstem.vocabulary import Record


def shown(record: Record) -> dict[str, Any]:
    """A record as JSON; what is not UTF-8 text comes as base64."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **shown_bytes("key", record.key),
        **shown_bytes("value", record.value),
        "headers": [
            {"name": name, **shown_bytes("value", value)} for name, value in record.headers
        ],
    }


def shown_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as a text under their name, or as base64 under `name_base64`."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
