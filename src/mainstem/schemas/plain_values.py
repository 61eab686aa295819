"""JSON values that fit columns -> plain ones: times in microseconds, dates in days, bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.vocabulary import Column

Make = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def row_maker(columns: Sequence[Column]) -> Make:
    """What makes a row of a JSON object; a column that it does not have is null."""
    parts = [(column.name, _or_none(_maker(column.type))) for column in columns]
    return lambda row: {name: make(row.get(name)) for name, make in parts}


def _or_none(make: Make) -> Make:
    return lambda value: None if value is None else make(value)


def _maker(type_: str) -> Make:
    if type_ in ("float", "double"):
        return float
    if type_ == "binary":
        return base64.b64decode
    if type_ == "date":
        return lambda text: date.fromisoformat(text).toordinal() - _EPOCH.toordinal()
    if type_ == "timestamp":
        return lambda text: _micros(_in_zone(datetime.fromisoformat(text)))
    if type_ == "timestamp_ntz":
        return lambda text: _micros(datetime.fromisoformat(text).replace(tzinfo=UTC))
    if type_.startswith("decimal("):
        return _decimal(int(type_[len("decimal(") : -1].split(",")[1]))
    if type_.startswith("array<"):
        item = _or_none(_maker(type_[6:-1]))
        return lambda values: [item(value) for value in values]
    if type_.startswith("map<"):
        inside = _or_none(_maker(type_parts(type_[4:-1])[1]))
        return lambda pairs: {key: inside(value) for key, value in pairs.items()}
    if type_.startswith("struct<"):
        return row_maker([Column(name, kind) for name, kind in struct_fields(type_).values()])
    return lambda value: value


def _in_zone(moment: datetime) -> datetime:
    """A time without a zone is in UTC, as the engine's session is."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _decimal(scale: int) -> Make:
    """With as many digits behind the point as the column has."""
    unit = Decimal(1).scaleb(-scale)

    def make(value: Decimal | int) -> Decimal:
        with localcontext(prec=1000):
            return Decimal(value).quantize(unit)

    return make
