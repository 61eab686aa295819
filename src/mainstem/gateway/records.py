"""Records that come over HTTP: checked against the columns, then encoded as the log holds them.

Numbers keep every digit that was sent: they are read as decimals and written as they were.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError, did_you_mean
from mainstem.gateway.typed_values import Misfit, as_number, encoded, quoted
from mainstem.log.producer import Outgoing
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.edge import NotEncoded, Write, key_json

_FIELDS = frozenset(("value", "value_base64", "key", "key_base64", "timestamp", "headers"))
_MADE = ("value_base64", "key_base64")
_HEADER_FIELDS = frozenset(("name", "value", "value_base64"))
Headers = tuple[tuple[str, bytes | None], ...]


def read_body(body: bytes) -> list[Any]:
    """The list in `{"records": [...]}`; BAD_REQUEST when the body is something else."""
    try:
        document = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise MainstemError("BAD_REQUEST", problem=f"the body is not JSON: {error}") from None
    records = document.get("records") if isinstance(document, dict) else None
    if not isinstance(records, list) or not records:
        problem = 'the body must be {"records": [{"value": {...}}, ...]} with at least one record'
        raise MainstemError("BAD_REQUEST", problem=problem)
    return records


def outgoing(definition: Definition, records: Iterable[Any], codec: Codec) -> list[Outgoing]:
    """The records as they go into the topic; INVALID_RECORD names the first that does not fit.

    Each is held against the columns, and by the codec against the schema of the topic.
    """
    made = []
    write = codec.writer(definition)
    for index, record in enumerate(records):
        try:
            made.append(_outgoing(definition, record, codec, write))
        except Misfit as misfit:
            place = f"{misfit.path}: " if misfit.path else ""
            raise MainstemError(
                "INVALID_RECORD",
                index=index,
                path=misfit.path,
                name=definition.name,
                problem=place + misfit.problem,
            ) from None
    return made


def record_key(definition: Definition, key: Any, codec: Codec) -> bytes:
    """A key that was sent, as the records of it have it; BAD_REQUEST when it cannot be one."""
    try:
        if key is None:
            raise Misfit("key", "a key was expected")
        if definition.keys is not None:
            return _encoded_key(definition, definition.keys, key, codec)
        if len(definition.key) > 1:
            return _json_key(definition, _key_fields(definition, key))
        if len(definition.key) == 1:
            _key_fields(definition, key)
        return _given_key(key)
    except Misfit as misfit:
        problem = f"{misfit.path}: {misfit.problem}"
    except UnicodeEncodeError:
        problem = "key: it has half a character (a lone surrogate)"
    raise MainstemError("BAD_REQUEST", problem=problem)


def read_rows(definition: Definition, rows: Iterable[str], given: Collection[str]) -> list[Any]:
    """Rows of an INSERT, each as JSON text, as the records of a request.

    A column that is not among the `given` names is NULL; where a schema is registered, it is left
    out, as the schema may have a default for it.
    """
    named = {name.lower() for name in given} if definition.format.registered else set()
    found = (json.loads(text, parse_float=Decimal) for text in rows)
    return [
        {"value": {name: v for name, v in row.items() if not named or name.lower() in named}}
        for row in found
    ]


def _outgoing(definition: Definition, record: Any, codec: Codec, write: Write) -> Outgoing:
    if not isinstance(record, dict):
        raise Misfit("", "an object with the field value was expected")
    if not record.keys() <= _FIELDS:
        name = min(record.keys() - _FIELDS)
        raise Misfit("", f"unknown field {json.dumps(name)}.{did_you_mean(name, _FIELDS)}")
    timestamp = record.get("timestamp")
    if timestamp is not None and (type(timestamp) is not int or not 0 <= timestamp < 2**53):
        raise Misfit("timestamp", "milliseconds since 1970 were expected")
    try:
        key, value = _key_and_value(definition, record, codec, write)
        given = record.get("headers")
        headers = () if given is None else _headers(given)
        return Outgoing(key, value, timestamp=timestamp, headers=headers)
    except UnicodeEncodeError:
        raise Misfit("", "a text of it has half a character (a lone surrogate)") from None


def _key_and_value(
    definition: Definition, record: Mapping[str, Any], codec: Codec, write: Write
) -> tuple[bytes | None, bytes | None]:
    key, made = None, None
    if not record.keys().isdisjoint(_MADE):
        key, made = (_either(record, name) for name in ("key", "value"))
    value = record.get("value")
    if made is not None:
        return _key_of_made(definition, record, key, made, codec), made
    if value is None:
        return _deletion_key(definition, record.get("key"), key, codec), None
    if not isinstance(value, dict):
        raise Misfit("value", "a JSON object of the columns was expected")
    fields = _fields(definition, value)
    _check_value(definition, value)
    if key is None:
        key = _key_data(definition, record.get("key"), value, fields, codec)
    try:
        return key, write(fields)
    except NotEncoded as refused:
        raise _refused("value", refused) from None


def _either(record: Mapping[str, Any], name: str) -> bytes | None:
    """The bytes of a key or value that comes as the log is to hold it, if it does."""
    made = _bytes(record, f"{name}_base64")
    if made is not None and record.get(name) is not None:
        raise Misfit(name, f"give either {name} or {name}_base64")
    return made


def _key_of_made(
    definition: Definition,
    record: Mapping[str, Any],
    key: bytes | None,
    made: bytes,
    codec: Codec,
) -> bytes | None:
    """The key of a value that comes as the log is to hold it, which must be one that fits."""
    value = _decoded(definition, made, codec)
    if not isinstance(value, dict):
        raise Misfit("value", "a JSON object of the columns was expected")
    if definition.format is Format.JSON:
        _fields(definition, value)
    _check_value(definition, value)
    if key is not None:
        return key
    fields = _fields(definition, _of_key(definition, value))
    return _key_data(definition, record.get("key"), value, fields, codec)


def _of_key(definition: Definition, value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in definition.key if name in value}


def _decoded(definition: Definition, made: bytes, codec: Codec) -> Any:
    """What the bytes of a value say that comes as the log is to hold it."""
    try:
        return json.loads(codec.text(definition, made), parse_float=Decimal)
    except (NotDecoded, ValueError, RecursionError) as error:
        raise Misfit("value_base64", f"not a value of {definition.name}: {error}") from None


def _bytes(record: Mapping[str, Any], name: str) -> bytes | None:
    text = record.get(name)
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        pass
    raise Misfit(name, "base64 was expected")


def _headers(given: Any) -> Headers:
    """`[{"name": ..., "value": ...}]`, as records are shown."""
    if not isinstance(given, list):
        raise Misfit("headers", 'a list such as [{"name": "trace", "value": "7"}] was expected')
    made = []
    for index, header in enumerate(given):
        place = f"headers[{index}]"
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise Misfit(place, "an object with name and value was expected")
        text = header.get("value")
        if header.keys() - _HEADER_FIELDS or not (text is None or isinstance(text, str)):
            raise Misfit(place, "name and value are texts, and there is no more than those")
        data = _bytes(header, "value_base64")
        made.append((header["name"], text.encode() if isinstance(text, str) else data))
    return tuple(made)


def _refused(part: str, refused: NotEncoded) -> Misfit:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in refused.path)
    return Misfit(part + path, refused.problem)


def _fields(definition: Definition, value: dict[str, Any]) -> dict[str, str]:
    """JSON text of each field, in the order of the columns."""
    fields = {}
    for column in definition.columns:
        name = column.name
        if name in value:
            item = value[name]
            if type(item) is str and column.type == "string":
                fields[name] = quoted(item)
            else:
                fields[name] = encoded(item, column.type, f"value.{name}")
    if len(fields) < len(value):
        name = next(name for name in value if name not in fields)
        known = [column.name for column in definition.columns]
        raise Misfit(f"value.{name}", f"there is no such column.{did_you_mean(name, known)}")
    return fields


def _check_value(definition: Definition, value: Mapping[str, Any]) -> None:
    _check_time(definition, value)
    if definition.format is Format.RAW and not any(v is not None for v in value.values()):
        raise Misfit("value", "its only column needs a value")


def _check_time(definition: Definition, value: Mapping[str, Any]) -> None:
    """Every flow would put a record without its event time aside."""
    if definition.kind is Kind.STREAM and definition.event_time and definition.time is None:
        column = definition.column(definition.event_time)
        if column is not None and value.get(column.name) is None:
            raise Misfit(f"value.{column.name}", "it is the event time, and needs a value")


def _key_data(
    definition: Definition,
    given: Any,
    value: Mapping[str, Any],
    fields: Mapping[str, str],
    codec: Codec,
) -> bytes | None:
    """A record's key: the one that was sent with it, or the one that its columns make."""
    keys = definition.keys
    if keys is None:
        return _key_of(definition, value, fields) if given is None else _given_key(given)
    if given is not None:
        return _encoded_key(definition, keys, given, codec)
    if definition.kind is Kind.TABLE:
        _check_primary_key(definition, value)
    elif len(definition.key) == 1 and value.get(definition.key[0]) is None:
        return None
    return _in_format(keys, {name: fields.get(name, "null") for name in definition.key}, codec)


def _encoded_key(definition: Definition, keys: Definition, key: Any, codec: Codec) -> bytes:
    """A key that was sent, in its format."""
    return _in_format(keys, _key_fields(definition, key), codec)


def _in_format(keys: Definition, fields: Mapping[str, str], codec: Codec) -> bytes:
    if keys.format is Format.RAW and "null" in fields.values():
        raise Misfit("key", "a key in the format raw needs a value")
    try:
        return codec.writer(keys)(fields)
    except NotEncoded as refused:
        raise _refused("key", refused) from None


def _check_primary_key(definition: Definition, value: Mapping[str, Any]) -> None:
    for name in definition.key:
        if value.get(name) is None:
            raise Misfit(f"value.{name}", "a column of the primary key needs a value")


def _key_of(
    definition: Definition, value: Mapping[str, Any], fields: Mapping[str, str]
) -> bytes | None:
    key = definition.key
    if definition.kind is Kind.TABLE:
        _check_primary_key(definition, value)
    elif not key:
        return None
    elif len(key) == 1:
        single = value.get(key[0])
        return None if single is None else _given_key(single)
    return _json_key(definition, {name: fields.get(name, "null") for name in key})


def _deletion_key(definition: Definition, key: Any, made: bytes | None, codec: Codec) -> bytes:
    if definition.kind is Kind.STREAM:
        raise Misfit("value", "a record of a stream needs a value")
    if made is not None:
        return made
    if definition.keys is not None:
        return _encoded_key(definition, definition.keys, key, codec)
    return _json_key(definition, _key_fields(definition, key))


def _key_fields(definition: Definition, key: Any) -> dict[str, str]:
    """JSON text of each column of a key that was sent."""
    if isinstance(key, dict) and set(key) == set(definition.key):
        types = {column.name: column.type for column in definition.columns}
        return {name: encoded(key[name], types[name], f"key.{name}") for name in definition.key}
    if key is not None and not isinstance(key, (dict, list)) and len(definition.key) == 1:
        return _key_fields(definition, {definition.key[0]: key})
    names = ", ".join(definition.key)
    what = "to delete a row, the key" if definition.kind is Kind.TABLE else "the key"
    raise Misfit("key", f"{what} must be an object with {names}")


def _json_key(definition: Definition, fields: Mapping[str, str]) -> bytes:
    columns = [c for name in definition.key if (c := definition.column(name)) is not None]
    return key_json(columns, fields)


def _given_key(key: Any) -> bytes:
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, Decimal):
        return f"{key:f}".encode()
    return json.dumps(key, default=as_number, separators=(",", ":")).encode()
