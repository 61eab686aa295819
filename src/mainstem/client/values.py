"""Values of JSON in the types that their columns have: in Python, and in Arrow.

Times have the zone UTC, but those of `timestamp_ntz` have none; a `variant` is whatever JSON it is.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from mainstem.errors import MainstemError

Column = Mapping[str, Any]
"""`name` and `type`, as answers have them."""
Read = Callable[[Any], Any]

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def rows_reader(columns: Sequence[Column]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What makes a row of JSON values one of Python's values."""
    reads = [reader(str(column["type"])) for column in columns]
    return lambda row: tuple(
        value if value is None or read is None else read(value)
        for read, value in zip(reads, row, strict=True)
    )


def dicts_reader(columns: Sequence[Column]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The same for a row that is an object; what has no column stays as it is."""
    reads = {str(column["name"]): reader(str(column["type"])) for column in columns}

    def read_row(row: Mapping[str, Any]) -> dict[str, Any]:
        read: Callable[[str], Read | None] = reads.get
        return {
            name: value if value is None or (of := read(name)) is None else of(value)
            for name, value in row.items()
        }

    return read_row


@cache
def reader(type_: str) -> Read | None:
    """What makes a value of JSON one of this type; None where it is one already."""
    if type_ in ("float", "double"):
        return float
    if type_.startswith("decimal"):
        return _decimal
    if type_ in _SCALARS:
        return _SCALARS[type_]
    parts = _parts(type_)
    if type_.startswith("array<"):
        (element,) = map(_strict, parts)
        return lambda value: [element(item) for item in value]
    if type_.startswith("map<"):
        key, item = map(_strict, parts)
        key = int if parts[0] in _INTEGERS else key  # keys of an object of JSON are texts
        return lambda value: {key(name): item(each) for name, each in value.items()}
    if type_.startswith("struct<"):
        fields = {name: _strict(of) for name, of in _fields(type_)}
        return lambda value: {
            name: fields[name](item) if name in fields else item for name, item in value.items()
        }
    return None


def arrow_type(type_: str) -> Any:
    """Arrow's type for a column's; None where Arrow is to look at the values (`variant`)."""
    import pyarrow as pa

    plain = {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    if type_ in plain:
        return plain[type_]
    if match := _DECIMAL.fullmatch(type_):
        return pa.decimal128(int(match[1]), int(match[2]))
    inner = [arrow_type(part) for part in _inner_types(type_)]
    if not inner or None in inner:
        return None
    if type_.startswith("array<"):
        return pa.list_(inner[0])
    if type_.startswith("map<"):
        return pa.map_(*inner)
    names = [name for name, _ in _fields(type_)]
    return pa.struct(list(zip(names, inner, strict=True)))


def as_model(model: type[BaseModel], row: Mapping[str, Any], index: int) -> Any:
    """The row as an object of the model; ROW_NOT_A_MODEL says what does not fit."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"{place}: {first['msg']}" if place else str(first["msg"])
        raise MainstemError(
            "ROW_NOT_A_MODEL", index=index, model=model.__name__, problem=problem
        ) from None


def _strict(type_: str) -> Read:
    """The reader of a value inside another one: it is given NULLs, too."""
    read = reader(type_)
    if read is None:
        return lambda value: value
    return lambda value: None if value is None else read(value)


def _decimal(value: Any) -> Decimal:
    return Decimal(value)  # a text where a float of JSON would lose digits


def _time(value: Any) -> Any:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:  # "infinity", or a year that Python does not have
        return value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _plain_time(value: Any) -> Any:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return value


def _date(value: Any) -> Any:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return value


_SCALARS: dict[str, Read] = {
    "timestamp": _time,
    "timestamp_ntz": _plain_time,
    "date": _date,
    "binary": base64.b64decode,
}


def _inner_types(type_: str) -> list[str]:
    if type_.startswith("struct<"):
        return [of for _, of in _fields(type_)]
    return _parts(type_)


def _fields(type_: str) -> list[tuple[str, str]]:
    pairs = (part.partition(":") for part in _parts(type_))
    return [(name.strip().strip("`"), of.strip()) for name, _, of in pairs]


def _parts(type_: str) -> list[str]:
    """What stands between the outermost < and >, cut at its commas; nothing for plain types."""
    name, _, inner = type_.partition("<")
    if not inner or name not in ("array", "map", "struct"):
        return []
    depth, begin, found = 0, 0, []
    text = inner.removesuffix(">") + ","
    for at, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
    return found
