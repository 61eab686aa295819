"""Arrow's values as the annotations of a Python function want them, and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from mainstem.definitions.model import Flavour, FunctionDefinition

Convert = Callable[[Any], Any]
_EXACT = Context(prec=38, rounding=ROUND_HALF_EVEN)
_UNIONS = (typing.Union, types.UnionType)


@cache
def givers(
    call: Callable[..., Any], function: FunctionDefinition
) -> tuple[Callable[[pa.Array], Sequence[Any]], ...]:
    """For each parameter: an Arrow array -> the Python values that the function takes."""
    hints = typing.get_type_hints(call)
    return tuple(_giver(hints[parameter.name]) for parameter in function.parameters)


@cache
def taker(call: Callable[..., Any], function: FunctionDefinition) -> Convert:
    """What the function returns (a row, for a table function) -> what Arrow takes for its type."""
    hint = typing.get_type_hints(call)["return"]
    if function.flavour is Flavour.TABLE:
        return _plain
    scale = _scale(function.returns)
    nested = function.returns.startswith(("struct<", "array<", "map<"))
    name = getattr(hint, "__name__", str(hint))

    def take(value: Any) -> Any:
        if value is None:
            if function.nullable:
                return None
            message = f"it returned None, though its annotation says {name}"
            raise TypeError(message)
        if nested:
            return _plain(value)
        if isinstance(value, bool) and function.returns != "boolean":
            message = f"it returned a bool, though its annotation says {name}"
            raise TypeError(message)
        if scale is not None and isinstance(value, Decimal):
            return value.quantize(scale, context=_EXACT)
        if isinstance(value, datetime) and function.returns == "timestamp":
            return _aware(value)
        return value

    return take


def _giver(hint: Any) -> Callable[[pa.Array], Sequence[Any]]:
    convert = _converter(hint)

    def give(array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        if convert is None:
            return values
        return [None if value is None else convert(value) for value in values]

    return give


def _converter(hint: Any) -> Convert | None:
    """What makes the annotated type of a plain value; None when the value will do."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _converter(next(a for a in arguments if a is not types.NoneType))
    if origin is list:
        return _list_of(_converter(arguments[0]))
    if origin is dict:
        return _dict_of(_converter(arguments[1]))
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields") or typing.is_typeddict(hint):
        return _record_of(hint)
    return None


def _list_of(inner: Convert | None) -> Convert | None:
    if inner is None:
        return None
    return lambda values: [None if v is None else inner(v) for v in values]


def _dict_of(inner: Convert | None) -> Convert:
    # Arrow gives a map as a list of pairs
    if inner is None:
        return dict
    return lambda pairs: {k: None if v is None else inner(v) for k, v in pairs}


def _record_of(hint: Any) -> Convert:
    fields = {name: _converter(kind) for name, kind in typing.get_type_hints(hint).items()}

    def make(value: Mapping[str, Any]) -> Any:
        given = {
            name: convert(value[name]) if convert and value[name] is not None else value[name]
            for name, convert in fields.items()
        }
        return hint(**given)

    return make


def _plain(value: Any) -> Any:
    """Records as dictionaries, all the way down."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: _plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _aware(value) if isinstance(value, datetime) else value


def _aware(value: datetime) -> datetime:
    """A time without a zone is meant in UTC, as everywhere in Mainstem."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def _scale(spark_type: str) -> Decimal | None:
    """The last place of a decimal type."""
    if not spark_type.startswith("decimal("):
        return None
    return Decimal(1).scaleb(-int(spark_type[len("decimal(") : -1].split(",")[1]))
