"""Records that come over HTTP: checked against the columns, then encoded as the log holds them.

Numbers keep every digit that was sent: they are read as decimals and written as they were.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.producer import Outgoing
from mainstem.schemas.codec import Codec
from mainstem.schemas.edge import NotEncoded, Write, key_json

_RANGES = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DAY, _CLOCK = r"\d{4}-\d{2}-\d{2}", r"[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?"
_TIMES = {
    "date": re.compile(_DAY, re.ASCII),
    "timestamp": re.compile(rf"{_DAY}({_CLOCK}(Z|[+-]\d{{2}}(:?\d{{2}})?)?)?)?", re.ASCII),
    "timestamp_ntz": re.compile(rf"{_DAY}({_CLOCK})?)?", re.ASCII),
}
"""The spellings of ISO-8601 that every flow reads, too."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


class _Misfit(Exception):
    """A value that does not fit, and where it stands."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


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
        except _Misfit as misfit:
            place = f"{misfit.path}: " if misfit.path else ""
            raise MainstemError(
                "INVALID_RECORD",
                index=index,
                path=misfit.path,
                name=definition.name,
                problem=place + misfit.problem,
            ) from None
    return made


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
        raise _Misfit("", "an object with the field value was expected")
    unknown = record.keys() - {"value", "key", "timestamp"}
    if unknown:
        raise _Misfit("", f'unknown field "{min(unknown)}" beside value, key and timestamp')
    timestamp = record.get("timestamp")
    if timestamp is not None and (type(timestamp) is not int or not 0 <= timestamp < 2**53):
        raise _Misfit("timestamp", "milliseconds since 1970 were expected")
    value = record.get("value")
    if value is None:
        key = _deletion_key(definition, record.get("key"), codec)
        return Outgoing(key, None, timestamp=timestamp)
    if not isinstance(value, dict):
        raise _Misfit("value", "a JSON object of the columns was expected")
    fields = _fields(definition, value)
    _check_time(definition, value)
    if definition.format is Format.RAW and not any(v is not None for v in value.values()):
        raise _Misfit("value", "its only column needs a value")
    data = _key_data(definition, record.get("key"), value, fields, codec)
    try:
        return Outgoing(data, write(fields), timestamp=timestamp)
    except NotEncoded as refused:
        raise _refused("value", refused) from None


def _refused(part: str, refused: NotEncoded) -> _Misfit:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in refused.path)
    return _Misfit(part + path, refused.problem)


def _fields(definition: Definition, value: dict[str, Any]) -> dict[str, str]:
    """JSON text of each field, in the order of the columns."""
    known = {column.name: column for column in definition.columns}
    for name in value.keys() - known.keys():
        raise _Misfit(f"value.{name}", f"there is no such column.{did_you_mean(name, known)}")
    return {
        name: _encoded(value[name], column.type, f"value.{name}")
        for name, column in known.items()
        if name in value
    }


def _check_time(definition: Definition, value: dict[str, Any]) -> None:
    """Every flow would put a record without its event time aside."""
    if definition.kind is Kind.STREAM and definition.event_time and definition.time is None:
        column = definition.column(definition.event_time)
        if column is not None and value.get(column.name) is None:
            raise _Misfit(f"value.{column.name}", "it is the event time, and needs a value")


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
        raise _Misfit("key", "a key in the format raw needs a value")
    try:
        return codec.writer(keys)(fields)
    except NotEncoded as refused:
        raise _refused("key", refused) from None


def _check_primary_key(definition: Definition, value: Mapping[str, Any]) -> None:
    for name in definition.key:
        if value.get(name) is None:
            raise _Misfit(f"value.{name}", "a column of the primary key needs a value")


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


def _deletion_key(definition: Definition, key: Any, codec: Codec) -> bytes:
    if definition.kind is Kind.STREAM:
        raise _Misfit("value", "a record of a stream needs a value")
    if definition.keys is not None:
        return _encoded_key(definition, definition.keys, key, codec)
    return _json_key(definition, _key_fields(definition, key))


def _key_fields(definition: Definition, key: Any) -> dict[str, str]:
    """JSON text of each column of a key that was sent."""
    if isinstance(key, dict) and set(key) == set(definition.key):
        types = {column.name: column.type for column in definition.columns}
        return {name: _encoded(key[name], types[name], f"key.{name}") for name in definition.key}
    if key is not None and not isinstance(key, (dict, list)) and len(definition.key) == 1:
        return _key_fields(definition, {definition.key[0]: key})
    names = ", ".join(definition.key)
    what = "to delete a row, the key" if definition.kind is Kind.TABLE else "the key"
    raise _Misfit("key", f"{what} must be an object with {names}")


def _json_key(definition: Definition, fields: Mapping[str, str]) -> bytes:
    columns = [c for name in definition.key if (c := definition.column(name)) is not None]
    return key_json(columns, fields)


def _given_key(key: Any) -> bytes:
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, Decimal):
        return f"{key:f}".encode()
    return json.dumps(key, default=_number, separators=(",", ":")).encode()


def _number(value: Any) -> Any:
    return float(value)  # only decimals come here: json reads nothing else that it cannot write


def _encoded(value: Any, type_name: str, path: str) -> str:
    """The value as JSON text, when it fits the Spark type."""
    if value is None:
        return "null"
    if type_name.startswith("array<"):
        return _array(value, type_name[6:-1], path)
    if type_name.startswith("struct<"):
        return _struct(value, type_name, path)
    if type_name.startswith("map<"):
        return _map(value, type_name, path)
    if type_name == "variant":
        return json.dumps(value, default=_number)
    return _scalar(value, type_name, path)


def _array(value: Any, element: str, path: str) -> str:
    if not isinstance(value, list):
        raise _Misfit(path, "a list was expected")
    return "[" + ",".join(_encoded(v, element, f"{path}[{i}]") for i, v in enumerate(value)) + "]"


def _struct(value: Any, type_name: str, path: str) -> str:
    if not isinstance(value, dict):
        raise _Misfit(path, "an object was expected")
    types = dict(struct_fields(type_name).values())
    for name in value.keys() - types.keys():
        raise _Misfit(f"{path}.{name}", f"there is no such field.{did_you_mean(name, types)}")
    pieces = (
        f"{json.dumps(name)}:{_encoded(item, types[name], f'{path}.{name}')}"
        for name, item in value.items()
    )
    return "{" + ",".join(pieces) + "}"


def _map(value: Any, type_name: str, path: str) -> str:
    if not isinstance(value, dict):
        raise _Misfit(path, "an object was expected")
    element = _map_values(type_name)
    pieces = (
        f"{json.dumps(name)}:{_encoded(item, element, f'{path}.{name}')}"
        for name, item in value.items()
    )
    return "{" + ",".join(pieces) + "}"


def _map_values(type_name: str) -> str:
    """The type of a map's values: behind the first comma that is outside of brackets."""
    depth = 0
    for at, character in enumerate(type_name[4:-1], 4):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            return type_name[at + 1 : -1].strip()
    return "string"


def _scalar(value: Any, type_name: str, path: str) -> str:
    if type_name in _RANGES:
        return _integer(value, type_name, path)
    if type_name in ("float", "double"):
        if value in _NOT_FINITE or (type(value) in (int, Decimal)):
            return json.dumps(value) if isinstance(value, str) else str(value)
        raise _Misfit(path, f"a number was expected, not {_shown(value)}")
    if match := _DECIMAL.fullmatch(type_name):
        return _decimal(value, int(match[1]), int(match[2]), path)
    if type_name == "boolean":
        if isinstance(value, bool):
            return "true" if value else "false"
        raise _Misfit(path, f"true or false was expected, not {_shown(value)}")
    if not isinstance(value, str):
        raise _Misfit(path, f"a text ({type_name}) was expected, not {_shown(value)}")
    _check_text(value, type_name, path)
    return json.dumps(value)


def _integer(value: Any, type_name: str, path: str) -> str:
    bits = _RANGES[type_name]
    if type(value) is not int:
        raise _Misfit(path, f"a whole number ({type_name}) was expected, not {_shown(value)}")
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise _Misfit(path, f"{value} does not fit a {type_name}")
    return str(value)


def _decimal(value: Any, precision: int, scale: int, path: str) -> str:
    # a text of digits is how others keep them all
    is_digits = isinstance(value, str) and _DIGITS.fullmatch(value) is not None
    if type(value) not in (int, Decimal) and not is_digits:
        raise _Misfit(path, f"a number was expected, not {_shown(value)}")
    number = Decimal(value)
    exponent = number.normalize().as_tuple().exponent
    too_fine = isinstance(exponent, int) and -exponent > scale
    if too_fine or number.copy_abs() >= Decimal(10) ** (precision - scale):
        raise _Misfit(path, f"{value} does not fit decimal({precision},{scale})")
    return f"{number:f}"


def _check_text(value: str, type_name: str, path: str) -> None:
    try:
        spelling = _TIMES.get(type_name)
        if spelling is not None:
            if spelling.fullmatch(value) is None:
                raise ValueError(value)
            datetime.fromisoformat(value)
        elif type_name == "binary":
            base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        wanted = {
            "date": "a date such as 2026-11-15",
            "timestamp_ntz": "a time without a zone, such as 2026-11-15T09:00:00,",
            "binary": "base64",
        }.get(type_name, "a time such as 2026-11-15T09:00:00Z")
        raise _Misfit(path, f"{wanted} was expected, not {_shown(value)}") from None


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
