"""Python classes for the messages of a Protobuf file, as their JSON is here: by fields' names."""

from __future__ import annotations

from math import isfinite

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from mainstem.schemas.protobuf_fields import is_map, wrapped
from mainstem.schemas.python_classes import Classes, Member, either, text

_CPP_TYPES = {
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_DOUBLE: "float",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_INT32: "int",
    FieldDescriptor.CPPTYPE_INT64: "int",
    FieldDescriptor.CPPTYPE_UINT32: "int",
    FieldDescriptor.CPPTYPE_UINT64: "int",
}
_MESSAGES = {
    "google.protobuf.Timestamp": "datetime.datetime",
    "google.protobuf.Duration": "str",
    "google.protobuf.FieldMask": "str",
    "google.protobuf.Struct": "dict[str, Any]",
    "google.protobuf.Value": "Any",
    "google.protobuf.ListValue": "list[Any]",
    "google.type.Date": "datetime.date",
    "google.type.Decimal": "decimal.Decimal",
    "confluent.type.Decimal": "decimal.Decimal",
}


def message_class(message: Descriptor, classes: Classes) -> str:
    """The name of the class for a message; those inside it come before it."""
    inside = message.full_name.removeprefix(message.file.package)
    name, new = classes.named(message, inside.replace(".", " "))
    if new:
        members = [_member(field, classes) for field in message.fields]
        classes.write(name, members)
    return name


def _member(field: FieldDescriptor, classes: Classes) -> Member:
    if is_map(field):
        entry = field.message_type
        assert entry is not None
        key, value = (_type(entry.fields_by_name[n], classes) for n in ("key", "value"))
        return field.name, f"dict[{key}, {value}]", "{}"
    type_ = _type(field, classes)
    if field.is_repeated:
        return field.name, f"list[{type_}]", "[]"
    if field.is_required:
        return field.name, type_, None
    if field.has_presence and not field.has_default_value:
        return field.name, either([type_, "None"]), "None"
    return field.name, type_, _default(field)


def _type(field: FieldDescriptor, classes: Classes) -> str:
    if field.enum_type is not None:
        names = (value.name for value in field.enum_type.values)
        return f"Literal[{', '.join(map(text, names))}]"
    message = field.message_type
    if message is None:
        return _CPP_TYPES.get(field.cpp_type, "bytes" if _is_bytes(field) else "str")
    scalar = wrapped(message)
    if scalar is not None:
        return _type(scalar, classes)
    return _MESSAGES.get(message.full_name) or message_class(message, classes)


def _is_bytes(field: FieldDescriptor) -> bool:
    return field.type == FieldDescriptor.TYPE_BYTES


def _default(field: FieldDescriptor) -> str:
    """What a field is that is not there: its default, or nothing of its type."""
    if field.enum_type is not None:
        return text(field.enum_type.values_by_number[field.default_value].name)
    default = field.default_value
    if isinstance(default, str):
        return text(default)
    finite = not isinstance(default, float) or isfinite(default)
    return repr(default) if finite else f'float("{default}")'
