"""JSON values that come over HTTP, held against the types of columns.

Numbers keep every digit that was sent: they are read as decimals and written as they were.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import datetime
from decimal import Decimal
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from mainstem.definitions.types import struct_fields
from mainstem.errors import did_you_mean

__all__ = ["Misfit", "as_number", "encoded", "quoted"]

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


class Misfit(Exception):
    """A value that does not fit, and where it stands."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


def as_number(value: Any) -> Any:
    """What json is to write for a number that it does not know."""
    return float(value)  # only decimals come here: json reads nothing else that it cannot write


def encoded(value: Any, type_name: str, path: str) -> str:
    """The value as JSON text, when it fits the Spark type."""
    if value is None:
        return "null"
    if type_name in _RANGES:
        return _integer(value, type_name, path)
    if type_name.startswith("array<"):
        return _array(value, type_name[6:-1], path)
    if type_name.startswith("struct<"):
        return _struct(value, type_name, path)
    if type_name.startswith("map<"):
        return _map(value, type_name, path)
    if type_name == "variant":
        return json.dumps(value, default=as_number)
    return _scalar(value, type_name, path)


def _array(value: Any, element: str, path: str) -> str:
    if not isinstance(value, list):
        raise Misfit(path, "a list was expected")
    return "[" + ",".join(encoded(v, element, f"{path}[{i}]") for i, v in enumerate(value)) + "]"


def _struct(value: Any, type_name: str, path: str) -> str:
    if not isinstance(value, dict):
        raise Misfit(path, "an object was expected")
    types = dict(struct_fields(type_name).values())
    for name in value.keys() - types.keys():
        raise Misfit(f"{path}.{name}", f"there is no such field.{did_you_mean(name, types)}")
    pieces = (
        f"{quoted(name)}:{encoded(item, types[name], f'{path}.{name}')}"
        for name, item in value.items()
    )
    return "{" + ",".join(pieces) + "}"


def _map(value: Any, type_name: str, path: str) -> str:
    if not isinstance(value, dict):
        raise Misfit(path, "an object was expected")
    element = _map_values(type_name)
    pieces = (
        f"{quoted(name)}:{encoded(item, element, f'{path}.{name}')}" for name, item in value.items()
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
    if type_name in ("float", "double"):
        if value in _NOT_FINITE or (type(value) in (int, Decimal)):
            return json.dumps(value) if isinstance(value, str) else str(value)
        raise Misfit(path, f"a number was expected, not {_shown(value)}")
    if match := _DECIMAL.fullmatch(type_name):
        return _decimal(value, int(match[1]), int(match[2]), path)
    if type_name == "boolean":
        if isinstance(value, bool):
            return "true" if value else "false"
        raise Misfit(path, f"true or false was expected, not {_shown(value)}")
    if not isinstance(value, str):
        raise Misfit(path, f"a text ({type_name}) was expected, not {_shown(value)}")
    _check_text(value, type_name, path)
    return quoted(value)


def _integer(value: Any, type_name: str, path: str) -> str:
    bits = _RANGES[type_name]
    if type(value) is not int:
        raise Misfit(path, f"a whole number ({type_name}) was expected, not {_shown(value)}")
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Misfit(path, f"{value} does not fit a {type_name}")
    return str(value)


def _decimal(value: Any, precision: int, scale: int, path: str) -> str:
    # a text of digits is how others keep them all
    is_digits = isinstance(value, str) and _DIGITS.fullmatch(value) is not None
    if type(value) not in (int, Decimal) and not is_digits:
        raise Misfit(path, f"a number was expected, not {_shown(value)}")
    number = Decimal(value)
    exponent = number.normalize().as_tuple().exponent
    too_fine = isinstance(exponent, int) and -exponent > scale
    if too_fine or number.copy_abs() >= Decimal(10) ** (precision - scale):
        raise Misfit(path, f"{value} does not fit decimal({precision},{scale})")
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
        raise Misfit(path, f"{wanted} was expected, not {_shown(value)}") from None


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
