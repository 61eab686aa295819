"""Values that are made up: what may stand behind AS in a generator's columns.

The values of a record depend on the seed and on its number alone, but for `now()`: so a record is
the same whenever and wherever it is made.
"""

from __future__ import annotations

import math
import string
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from mainstem.connect.listening.column_list import OPTION, Call, Declared
from mainstem.connect.listening.options import invalid
from mainstem.errors import MainstemError, did_you_mean

Make = Callable[[int, Random, float], Any]
"""A value by the number of the record, its own chance, and the time in seconds."""

_RANGES = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_REAL = ("float", "double")
_LETTERS = string.ascii_lowercase + string.digits
_MOST_LETTERS = 10_000
_BY_TYPE = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Call("uniform", ("0", "100"))),
    **dict.fromkeys(_REAL, Call("uniform", ("0", "1"))),
    "boolean": Call("chance", ("0.5",)),
    "string": Call("text", ("8",)),
    "timestamp": Call("now", ()),
    "date": Call("now", ()),
}
"""What makes a column that says nothing."""


def row_maker(columns: Sequence[Declared], seed: int) -> Callable[[int, float], dict[str, Any]]:
    """What makes the record of a number, at a time; INVALID_OPTION when a column cannot be made."""
    makes = [(declared.column.name, maker(declared)) for declared in columns]
    chance = Random()

    def row(number: int, now: float) -> dict[str, Any]:
        chance.seed((seed << 64) ^ number)
        return {name: make(number, chance, now) for name, make in makes}

    return row


def maker(declared: Declared) -> Make:
    """What makes the values of one column."""
    type_ = declared.column.type
    call = declared.made_by or _BY_TYPE.get(type_)
    if call is None:
        raise _refused(declared, f"nothing makes values of type {type_}")
    make = _MAKERS.get(call.name)
    if make is None:
        near = did_you_mean(call.name, list(_MAKERS))
        raise _refused(declared, f"there is no {call.name}().{near}")
    return make(declared, call)


def _sequence(declared: Declared, call: Call) -> Make:
    start, step = _numbers(declared, call, 0, 2, (1.0, 1.0))
    if declared.column.type in _RANGES:
        first, each = _whole(declared, start), _whole(declared, step)
        return lambda n, _, __: first + n * each
    return _fitted(declared, lambda n, _, __: start + n * step)


def _uniform(declared: Declared, call: Call) -> Make:
    low, high = _numbers(declared, call, 2, 2)
    if low > high:
        raise _refused(declared, "the first number of uniform() is more than the second")
    if declared.column.type in _RANGES:
        least, most = _whole(declared, low), _whole(declared, high)
        return lambda _, chance, __: chance.randint(least, most)
    return _fitted(declared, lambda _, chance, __: chance.uniform(low, high))


def _normal(declared: Declared, call: Call) -> Make:
    mean, deviation = _numbers(declared, call, 2, 2)
    return _fitted(declared, lambda _, chance, __: chance.gauss(mean, deviation))


def _chance(declared: Declared, call: Call) -> Make:
    [share] = _numbers(declared, call, 1, 1)
    _check_type(declared, ("boolean",))
    return lambda _, chance, __: chance.random() < share


def _pick(declared: Declared, call: Call) -> Make:
    values = [_value(declared, text) for text in call.arguments]
    if not values:
        raise _refused(declared, "pick() has nothing to pick from")
    return lambda _, chance, __: chance.choice(values)


def _text(declared: Declared, call: Call) -> Make:
    [length] = _numbers(declared, call, 1, 1)
    _check_type(declared, ("string",))
    if not 1 <= length <= _MOST_LETTERS:
        raise _refused(declared, f"text() has 1 to {_MOST_LETTERS} letters")
    return lambda _, chance, __: "".join(chance.choices(_LETTERS, k=int(length)))


def _numbered(declared: Declared, call: Call) -> Make:
    _check_type(declared, ("string",))
    if len(call.arguments) != 2:
        raise _refused(declared, "numbered() takes a text and how many there are")
    [count] = _numbers(declared, Call(call.name, call.arguments[1:]), 1, 1)
    if count < 1:
        raise _refused(declared, "numbered() needs at least one")
    prefix, last = call.arguments[0], int(count)
    return lambda _, chance, __: f"{prefix}{chance.randint(1, last)}"


def _uuid(declared: Declared, call: Call) -> Make:
    _numbers(declared, call, 0, 0)
    _check_type(declared, ("string",))
    return lambda _, chance, __: str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _now(declared: Declared, call: Call) -> Make:
    _numbers(declared, call, 0, 0)
    _check_type(declared, ("timestamp", "date"))
    return _day if declared.column.type == "date" else _moment


_MAKERS = {
    "sequence": _sequence,
    "uniform": _uniform,
    "normal": _normal,
    "chance": _chance,
    "pick": _pick,
    "text": _text,
    "numbered": _numbered,
    "uuid": _uuid,
    "now": _now,
}


def _moment(_: int, __: Random, now: float) -> str:
    return datetime.fromtimestamp(now, UTC).replace(tzinfo=None).isoformat() + "Z"


def _day(_: int, __: Random, now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def _fitted(declared: Declared, make: Callable[[int, Random, float], float]) -> Make:
    """Numbers as the column's type holds them."""
    type_ = declared.column.type
    if type_ in _RANGES:
        edge = 2 ** (_RANGES[type_] - 1)
        return lambda n, chance, now: max(-edge, min(edge - 1, round(make(n, chance, now))))
    if type_.startswith("decimal("):
        precision, scale = (int(part) for part in type_[len("decimal(") : -1].split(","))
        most = float(10 ** (precision - scale)) - 10.0**-scale
        return lambda n, c, now: round(max(-most, min(most, make(n, c, now))), scale)
    _check_type(declared, _REAL)
    return make


def _numbers(
    declared: Declared, call: Call, least: int, most: int, otherwise: Sequence[float] = ()
) -> list[float]:
    """The arguments as numbers; those that are left out come from `otherwise`."""
    try:
        found = [float(text) for text in call.arguments]
    except ValueError:
        raise _refused(declared, f"{call.name}() takes numbers") from None
    if not least <= len(found) <= most or not all(map(math.isfinite, found)):
        count = str(least) if least == most else f"{least} to {most}"
        raise _refused(declared, f"{call.name}() takes {count} numbers")
    return [*found, *otherwise[len(found) :]]


def _whole(declared: Declared, number: float) -> int:
    edge = 2 ** (_RANGES[declared.column.type] - 1)
    if not number.is_integer() or not -edge <= number < edge:
        raise _refused(declared, f"{number:g} is no {declared.column.type}")
    return int(number)


def _value(declared: Declared, text: str) -> Any:
    """A constant of the column's type."""
    type_ = declared.column.type
    if type_ == "string":
        return text
    if type_ == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if type_ in _RANGES:
            return _whole(declared, float(text))
        if type_ in _REAL or type_.startswith("decimal("):
            return float(text)
    except ValueError:
        pass
    raise _refused(declared, f'"{text}" is no {type_}')


def _check_type(declared: Declared, types: Sequence[str]) -> None:
    if declared.column.type not in types:
        call = declared.made_by
        name = f"{call.name}()" if call is not None else "it"
        problem = f"{name} makes a {' or '.join(types)}, and no {declared.column.type}"
        raise _refused(declared, problem)


def _refused(declared: Declared, problem: str) -> MainstemError:
    name = declared.column.name
    return invalid(OPTION, name, problem, f"'{name} BIGINT AS uniform(1, 100)'")
