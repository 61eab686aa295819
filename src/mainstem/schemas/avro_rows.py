"""JSON values that fit columns -> what an Avro encoder takes for the fields of a schema.

The schema may be narrower than the columns (an enum for a STRING, an int for a BIGINT): what does
not fit there is refused with its path. Times and decimals become plain numbers and bytes, as
the encoder's schema (`avro_read.written`) names no logical types.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.avro_model import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
    is_null,
)
from mainstem.vocabulary import Column

Make = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_UNIT = {"millis": 1000, "micros": 1}
_LARGEST_FLOAT = 3.4028235677973366e38
"""From here on a number is no 32-bit float."""
_BITS = {"int": 32, "long": 64}


class Unfit(ValueError):
    """A value that the schema does not take; `path` leads to it, from the outside in."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: tuple[str | int, ...] = ()


def carries(root: AvroType, columns: Sequence[Column]) -> bool:
    """Whether there is a field for each column, and for each field of a struct in them.

    The schema is one that `avro_read.reading` lets through for these columns.
    """
    if not isinstance(root, Record):
        return False
    fields = {field.name: field.type for field in root.fields}
    return all(c.name in fields and _carries(fields[c.name], c.type) for c in columns)


def row_maker(root: Record, columns: Sequence[Column]) -> Make:
    """What makes a record of a JSON object of the columns; raises Unfit. A schema that `carries`.

    A field that the object does not have gets its default, or else null.
    """
    types = {column.name: column.type for column in columns}
    parts = [(field.name, _field(field, types.get(field.name))) for field in root.fields]

    def record(row: Mapping[str, Any]) -> dict[str, Any]:
        made = {}
        for name, make in parts:
            try:
                made[name] = make(row)
            except Unfit as unfit:
                unfit.path = (name, *unfit.path)
                raise
        return made

    return record


def _field(field: Field, column: str | None) -> Make:
    """What takes a field out of an object."""
    name, absent = field.name, _absent(field)
    if column is None:
        return lambda row: absent()
    make = _maker(field.type, column)
    return lambda row: make(row[name]) if name in row else absent()


def _absent(field: Field) -> Callable[[], Any]:
    if field.has_default:
        default = _default(field.type, field.default)
        return lambda: default
    if _nullable(field.type):
        return lambda: None

    def refuse() -> Any:
        raise Unfit("it is missing, and has no default")

    return refuse


def _maker(type_: AvroType, column: str) -> Make:
    make = _present(_plain(type_), column)
    if _nullable(type_):
        return lambda value: None if value is None else make(value)

    def not_null(value: Any) -> Any:
        if value is None:
            raise Unfit("it is null, and must not be")
        return make(value)

    return not_null


def _present(type_: AvroType, column: str) -> Make:
    match type_:
        case Array():
            return _items(_maker(type_.items, column[6:-1]))
        case Map():
            return _values(_maker(type_.values, type_parts(column[4:-1])[1]))
        case Record():
            inside = [Column(name, kind) for name, kind in struct_fields(column).values()]
            return row_maker(type_, inside)
        case Enum():
            return _symbol(type_.symbols)
        case Primitive(logical=Logical() as meant) if column.startswith(("timestamp", "date")):
            return _days if meant.name == "date" else _time(meant.name)
        case Primitive(logical=Logical() as meant) if column.startswith("decimal("):
            return _decimal(meant, None)
        case Fixed(logical=Logical() as meant) if column.startswith("decimal("):
            return _decimal(meant, type_.size)
        case Fixed():
            return _sized(type_.size)
        case Primitive(kind="bytes"):
            return base64.b64decode
        case Primitive(kind="int" | "long" as kind):
            return _whole(_BITS[kind])
        case Primitive(kind="float"):
            return _float
        case Primitive(kind="double"):
            return float
        case _:
            return lambda value: value


def _items(make: Make) -> Make:
    return lambda values: [_at(index, make, value) for index, value in enumerate(values)]


def _values(make: Make) -> Make:
    return lambda pairs: {key: _at(key, make, value) for key, value in pairs.items()}


def _at(place: str | int, make: Make, value: Any) -> Any:
    try:
        return make(value)
    except Unfit as unfit:
        unfit.path = (place, *unfit.path)
        raise


def _symbol(symbols: Sequence[str]) -> Make:
    known = frozenset(symbols)

    def make(text: str) -> str:
        if text not in known:
            raise Unfit(f'one of {_few(symbols)} was expected, not "{text[:40]}"')
        return text

    return make


def _few(symbols: Sequence[str]) -> str:
    more = ", ..." if len(symbols) > 10 else ""
    return ", ".join(symbols[:10]) + more


def _whole(bits: int) -> Make:
    most = 1 << (bits - 1)

    def make(value: Any) -> int:
        number = Decimal(value)  # a column of DOUBLE may have a fraction, or no number at all
        if not number.is_finite() or number != number.to_integral_value():
            raise Unfit(f"a whole number was expected, not {value}")
        if not -most <= number < most:
            raise Unfit(f"{value} does not fit {bits} bits")
        return int(number)

    return make


def _float(value: Any) -> float:
    number = float(value)
    if _LARGEST_FLOAT <= abs(number) < float("inf"):
        raise Unfit(f"{value} does not fit a 32-bit float")
    return number


def _sized(size: int) -> Make:
    def make(text: str) -> bytes:
        data = base64.b64decode(text)
        if len(data) != size:
            raise Unfit(f"{size} bytes were expected, not {len(data)}")
        return data

    return make


def _decimal(meant: Logical, size: int | None) -> Make:
    most = 10**meant.precision

    def make(value: Decimal | int) -> bytes:
        with localcontext(prec=1000):
            moved = Decimal(value).scaleb(meant.scale)
            unscaled = int(moved)
            if unscaled != moved or not -most < unscaled < most:
                raise Unfit(f"{value} does not fit {meant}")
        length = unscaled.bit_length() // 8 + 1
        if size is not None and length > size:
            raise Unfit(f"{value} does not fit {size} bytes")
        return unscaled.to_bytes(size or length, "big", signed=True)

    return make


def _days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH.toordinal()


def _time(name: str) -> Make:
    """Units since 1970; a time without a zone is in UTC, as the engine's session is."""
    kind, _, unit = name.rpartition("-")
    per_unit, local = _PER_UNIT[unit], kind == "local-timestamp"

    def make(text: str) -> int:
        moment = datetime.fromisoformat(text)
        if local or moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        units, rest = divmod((moment - _EPOCH) // _MICROSECOND, per_unit)
        if rest:
            raise Unfit(f"{text} is finer than {unit}, all that the schema keeps")
        return units

    return make


def _default(type_: AvroType, value: Any) -> Any:
    """A default as the schema's JSON has it, as the encoder takes it."""
    match type_:
        case Union():
            return None if value is None else _default(_plain(type_), value)
        case Primitive(kind="bytes") | Fixed():
            return value.encode("latin-1")
        case Primitive(kind="float" | "double"):
            return float(value)
        case Array():
            return [_default(type_.items, item) for item in value]
        case Map():
            return {key: _default(type_.values, item) for key, item in value.items()}
        case Record():
            return {f.name: _default(f.type, value.get(f.name, f.default)) for f in type_.fields}
        case _:
            return value


def _carries(type_: AvroType, column: str) -> bool:
    match _plain(type_):
        case Primitive(kind="null"):
            return False
        case Array(items=item):
            return _carries(item, column[6:-1])
        case Map(values=item):
            return _carries(item, type_parts(column[4:-1])[1])
        case Record() as record:
            inside = [Column(name, kind) for name, kind in struct_fields(column).values()]
            return carries(record, inside)
        case _:
            return True


def _nullable(type_: AvroType) -> bool:
    if isinstance(type_, Union):
        return any(is_null(branch) for branch in type_.branches)
    return is_null(type_)


def _plain(type_: AvroType) -> AvroType:
    """The one type of a union that is not null; for others, the first."""
    if not isinstance(type_, Union):
        return type_
    there = type_.others
    return there[0] if there else type_.branches[0]
