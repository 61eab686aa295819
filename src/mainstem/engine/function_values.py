"""Arrow's values as the annotations of a Python function want them, and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from mainstem.definitions.model import FunctionDefinition
from mainstem.schemas.arrow_types import arrow_type

Convert = Callable[[Any], Any]
_EXACT = Context(prec=38, rounding=ROUND_HALF_EVEN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = pa.timestamp("us", "UTC")
_UNIONS = (typing.Union, types.UnionType)


@cache
def givers(
    call: Callable[..., Any], function: FunctionDefinition
) -> tuple[Callable[[pa.Array], Sequence[Any]], ...]:
    """For each parameter: an Arrow array -> the Python values that the function takes."""
    hints = typing.get_type_hints(call)
    return tuple(giver(hints[parameter.name]) for parameter in function.parameters)


@cache
def taker(function: FunctionDefinition) -> Convert:
    """What the function returns (a row, for a table function) -> what Arrow takes for its type."""
    fit = fitter(function.returns)

    def take(value: Any) -> Any:
        if value is not None:
            return fit(value)
        if function.nullable:
            return None
        message = f"it returned None, though its annotation says {function.returns}"
        raise TypeError(message)

    return take


def giver(hint: Any) -> Callable[[pa.Array], Sequence[Any]]:
    """An Arrow array -> the Python values that an annotation stands for."""
    convert = converter(hint)

    def give(array: pa.Array) -> list[Any]:
        values = plain_values(array)
        if convert is None:
            return values
        return [None if value is None else convert(value) for value in values]

    return give


def plain_values(array: pa.Array) -> list[Any]:
    """The values as Python has them; Arrow itself takes very long for times with a zone."""
    if array.type != _MOMENT:
        values: list[Any] = array.to_pylist()
        return values
    moments = array.cast(pa.int64()).to_pylist()
    return [None if m is None else _EPOCH + timedelta(microseconds=m) for m in moments]


def inner_type(hint: Any) -> Any:
    """`X` of `X | None`; all else is itself."""
    if typing.get_origin(hint) not in _UNIONS:
        return hint
    return next(a for a in typing.get_args(hint) if a is not types.NoneType)


def converter(hint: Any) -> Convert | None:
    """What makes the annotated type of a plain value; None when the value will do."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return converter(inner_type(hint))
    if origin is list:
        return _list_of(converter(arguments[0]))
    if origin is dict:
        return _dict_of(converter(arguments[1]))
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
    fields = {name: converter(kind) for name, kind in typing.get_type_hints(hint).items()}

    def make(value: Mapping[str, Any]) -> Any:
        given = {
            name: convert(value[name]) if convert and value[name] is not None else value[name]
            for name, convert in fields.items()
        }
        return hint(**given)

    return make


@cache
def fitter(spark_type: str) -> Convert:
    """What makes a Python value fit a type, where Arrow would change it silently or refuse it."""
    return _fitter(arrow_type(spark_type))


def _fitter(wanted: pa.DataType) -> Convert:
    if pa.types.is_integer(wanted):
        return _whole
    if pa.types.is_decimal(wanted):
        return _rounded(Decimal(1).scaleb(-wanted.scale))
    if pa.types.is_timestamp(wanted) and wanted.tz is not None:
        return _aware
    if pa.types.is_list(wanted):
        return _each(_or_none(_fitter(wanted.value_type)))
    if pa.types.is_map(wanted):
        return _pairs(_or_none(_fitter(wanted.item_type)))
    if pa.types.is_struct(wanted):
        return _fields({field.name: _or_none(_fitter(field.type)) for field in wanted})
    return lambda value: value


def _or_none(fit: Convert) -> Convert:
    return lambda value: None if value is None else fit(value)


def _whole(value: Any) -> Any:
    # Arrow would cut the fraction off
    if isinstance(value, (bool, float)):
        message = f"{value!r} is not a whole number"
        raise TypeError(message)
    return value


def _rounded(place: Decimal) -> Convert:
    # Arrow refuses more digits than the type has
    def fit(value: Any) -> Any:
        return value.quantize(place, context=_EXACT) if isinstance(value, Decimal) else value

    return fit


def _aware(value: Any) -> Any:
    """A time without a zone is meant in UTC, as everywhere in Mainstem."""
    naive = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if naive else value


def _each(fit: Convert) -> Convert:
    return lambda values: [fit(value) for value in values]


def _pairs(fit: Convert) -> Convert:
    return lambda value: [(key, fit(item)) for key, item in value.items()]


def _fields(fits: Mapping[str, Convert]) -> Convert:
    def fit(value: Any) -> dict[str, Any]:
        given = value if isinstance(value, Mapping) else None
        if given is None:
            return {name: convert(getattr(value, name)) for name, convert in fits.items()}
        return {name: convert(given.get(name)) for name, convert in fits.items()}

    return fit
