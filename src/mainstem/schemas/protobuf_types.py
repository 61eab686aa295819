"""Which columns take which types of Protobuf, and how their values are made plain."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

Convert = Callable[[Any], Any]

_INTEGERS = ("int", "bigint", "float", "double")
_SCALARS: dict[int, tuple[str, ...]] = {
    FieldDescriptor.TYPE_INT32: _INTEGERS,
    FieldDescriptor.TYPE_SINT32: _INTEGERS,
    FieldDescriptor.TYPE_SFIXED32: _INTEGERS,
    FieldDescriptor.TYPE_UINT32: _INTEGERS[1:],
    FieldDescriptor.TYPE_FIXED32: _INTEGERS[1:],
    FieldDescriptor.TYPE_INT64: _INTEGERS[1:],
    FieldDescriptor.TYPE_SINT64: _INTEGERS[1:],
    FieldDescriptor.TYPE_SFIXED64: _INTEGERS[1:],
    FieldDescriptor.TYPE_UINT64: _INTEGERS[1:],
    FieldDescriptor.TYPE_FIXED64: _INTEGERS[1:],
    FieldDescriptor.TYPE_FLOAT: ("float", "double"),
    FieldDescriptor.TYPE_DOUBLE: ("double",),
    FieldDescriptor.TYPE_BOOL: ("boolean",),
    FieldDescriptor.TYPE_STRING: ("string",),
    FieldDescriptor.TYPE_BYTES: ("binary",),
    FieldDescriptor.TYPE_ENUM: ("string", "int", "bigint"),
}
_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_UNSIGNED_DIGITS = 20
_NAMES = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which are all that a Timestamp may hold."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def described(field: FieldDescriptor) -> str:
    """A field's type, in few words."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return "map"
    named = field.message_type or field.enum_type
    name = _NAMES[field.type] if named is None else named.full_name
    return f"repeated {name}" if field.is_repeated else name


def scalar(field: FieldDescriptor, column: str) -> tuple[bool, Convert | None]:
    """Whether a column takes a field that is no message, and what makes its values plain."""
    if field.type in _UNSIGNED and column.startswith("decimal("):
        precision, scale = _digits(column)
        return precision - scale >= _UNSIGNED_DIGITS, Decimal
    if column not in _SCALARS.get(field.type, ()):
        return False, None
    if field.enum_type is not None:
        if column != "string":
            return True, None
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        # a number that its writer has a name for, and this schema has not
        return True, lambda number: names.get(number) or str(number)
    if field.type in _UNSIGNED and column == "bigint":
        return True, _signed
    whole = field.cpp_type not in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
    return True, float if whole and column in ("float", "double") else None


def known_message(message: Descriptor, column: str) -> Convert | None:
    """What makes a plain value of a message whose meaning is known; None: it means nothing more."""
    name = message.full_name
    if name in _WRAPPERS:
        field = message.fields_by_name["value"]
        fits, convert = scalar(field, column)
        if not fits:
            return None
        return (lambda m: m.value) if convert is None else (lambda m: convert(m.value))
    if column.startswith("decimal(") and name in _DECIMALS:
        make, digits = _DECIMALS[name], _digits(column)
        return lambda m: _fitting(make(m), *digits)
    return _MEANT.get((name, column))


def known_text(message: Any) -> str | None:
    """JSON of a message that has a form of its own there; None for any other."""
    return _json(message) if message.DESCRIPTOR.full_name in (*_JSON, *_TEXTS) else None


def wrapped(message: Any) -> FieldDescriptor | None:
    """The only field of a message that stands for it, such as that of a StringValue."""
    type_: Descriptor = message.DESCRIPTOR
    return type_.fields_by_name["value"] if type_.full_name in _WRAPPERS else None


def _signed(number: int) -> int:
    if number >= 1 << 63:
        message = f"{number} is more than a BIGINT holds"
        raise ValueError(message)
    return number


def _micros(message: Any) -> int:
    seconds, nanos = message.seconds, message.nanos
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < 1_000_000_000):
        text = "a time in it is out of all bounds"
        raise ValueError(text)
    return int(seconds * 1_000_000 + nanos // 1000)


def _days(message: Any) -> int:
    return date(message.year, message.month, message.day).toordinal() - _EPOCH_DAY


def _digits(column: str) -> tuple[int, int]:
    precision, scale = map(int, column[len("decimal(") : -1].split(","))
    return precision, scale


def _from_text(message: Any) -> Decimal:
    try:
        return Decimal(message.value or "0")
    except InvalidOperation:
        text = f"{message.value[:50]!r} is no decimal"
        raise ValueError(text) from None


def _from_bytes(message: Any) -> Decimal:
    with localcontext(prec=1000):
        unscaled = Decimal(int.from_bytes(message.value[:100], "big", signed=True))
        return unscaled.scaleb(-message.scale) if abs(message.scale) < 1000 else Decimal("NaN")


def _fitting(number: Decimal, precision: int, scale: int) -> Decimal:
    """The number with all its digits, in a column's form; never rounded."""
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and number.adjusted() < precision - scale:
        with localcontext(prec=1000):
            if exponent > -1000 and (made := number.quantize(Decimal(1).scaleb(-scale))) == number:
                return made
    message = f"{str(number)[:50]} does not fit decimal({precision},{scale})"
    raise ValueError(message)


def _json(message: Any) -> str:
    try:
        found = json_format.MessageToDict(message)
    except (json_format.Error, RecursionError) as error:
        text = f"a {message.DESCRIPTOR.name} in it cannot be JSON: {error}"
        raise ValueError(text[:200]) from None
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _text(message: Any) -> str:
    return str(message.ToJsonString())


_WRAPPERS = {
    f"google.protobuf.{kind}Value"
    for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
}
_TEXTS = {f"google.protobuf.{kind}" for kind in ("Duration", "FieldMask", "Timestamp")}
_JSON = {f"google.protobuf.{kind}" for kind in ("Struct", "Value", "ListValue")}
_DECIMALS: dict[str, Callable[[Any], Decimal]] = {
    "google.type.Decimal": _from_text,
    "confluent.type.Decimal": _from_bytes,
}
_MEANT: dict[tuple[str, str], Convert] = {
    ("google.protobuf.Timestamp", "timestamp"): _micros,
    ("google.type.Date", "date"): _days,
    **{(name, "string"): _text for name in _TEXTS},
    **{(name, "string"): _json for name in _JSON},
}
