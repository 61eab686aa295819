"""Keys and values inside JSON, as Confluent REST Proxy has them: binary, JSON, Avro or text."""

from __future__ import annotations

import base64
import binascii
import json
from decimal import Decimal
from typing import Any

from mainstem.errors import MainstemError
from mainstem.gateway.typed_values import as_number
from mainstem.schemas.codec import Codec
from mainstem.schemas.wire import NotFramed
from mainstem.vocabulary import Record

BINARY, JSON, AVRO, STRING = "binary", "json", "avro", "string"
FORMATS = (BINARY, JSON, AVRO, "jsonschema", "protobuf")


def check_client_topic(topic: str) -> None:
    """Refuse topics that no client may write to."""
    if topic.startswith("_"):
        raise MainstemError("NAME_RESERVED", what="topic", name=topic)


def to_bytes(form: str, value: Any) -> bytes | None:
    """A key or value that was sent; None stays None."""
    if value is None:
        return None
    if form == BINARY:
        try:
            if isinstance(value, str):
                return base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error):
            pass
        raise MainstemError("BAD_REQUEST", problem="base64 was expected for binary data")
    if form == STRING:
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        raise MainstemError("BAD_REQUEST", problem="a text was expected for data of type STRING")
    return json.dumps(value, default=as_number, separators=(",", ":")).encode()


def read_json(body: bytes) -> Any:
    """A body in JSON."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise MainstemError("BAD_REQUEST", problem=f"the body is not JSON: {error}") from None


def shown_as(form: str, record: Record, codec: Codec) -> str:
    """A record as JSON text, with key and value in a form; BAD_REQUEST when they are not in it."""
    try:
        key, value = (_text(form, data, codec) for data in (record.key, record.value))
    except (ValueError, OverflowError, RecursionError):
        place = f"{record.topic}-{record.partition}@{record.offset}"
        problem = f"the record {place} is not {form}: seek behind it, or read as binary"
        raise MainstemError("BAD_REQUEST", problem=problem) from None
    return (
        f'{{"topic":{json.dumps(record.topic)},"key":{key},"value":{value},'
        f'"partition":{record.partition},"offset":{record.offset}}}'
    )


def _text(form: str, data: bytes | None, codec: Codec) -> str:
    if data is None:
        return "null"
    if form == BINARY:
        return json.dumps(base64.b64encode(data).decode())
    if form != JSON:
        try:
            return codec.natural(data)
        except NotFramed:  # a key, say, that is plain text
            return json.dumps(data.decode())
    text = data.decode()
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text)
    return text
