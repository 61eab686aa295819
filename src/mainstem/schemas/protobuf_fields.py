"""The columns of a definition that reads Protobuf messages; the formats' reader takes them all."""

from __future__ import annotations

from functools import partial

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from mainstem.errors import MainstemError
from mainstem.schemas.column_types import Columns, Way, collected, struct
from mainstem.schemas.protobuf_parse import ProtobufSchema

UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_SCALARS = {
    FieldDescriptor.TYPE_INT32: "INT",
    FieldDescriptor.TYPE_SINT32: "INT",
    FieldDescriptor.TYPE_SFIXED32: "INT",
    FieldDescriptor.TYPE_UINT32: "BIGINT",
    FieldDescriptor.TYPE_FIXED32: "BIGINT",
    FieldDescriptor.TYPE_INT64: "BIGINT",
    FieldDescriptor.TYPE_SINT64: "BIGINT",
    FieldDescriptor.TYPE_SFIXED64: "BIGINT",
    FieldDescriptor.TYPE_UINT64: "DECIMAL(20, 0)",
    FieldDescriptor.TYPE_FIXED64: "DECIMAL(20, 0)",
    FieldDescriptor.TYPE_FLOAT: "FLOAT",
    FieldDescriptor.TYPE_DOUBLE: "DOUBLE",
    FieldDescriptor.TYPE_BOOL: "BOOLEAN",
    FieldDescriptor.TYPE_STRING: "STRING",
    FieldDescriptor.TYPE_BYTES: "BINARY",
    FieldDescriptor.TYPE_ENUM: "STRING",
}
_DECIMAL = "DECIMAL(38, 18)"
"""Such decimals may have any digits; one that has more than that is a bad record, never rounded."""
_MEANT = {
    "google.protobuf.Timestamp": "TIMESTAMP",
    "google.protobuf.Duration": "STRING",
    "google.protobuf.FieldMask": "STRING",
    "google.protobuf.Struct": "STRING",
    "google.protobuf.Value": "STRING",
    "google.protobuf.ListValue": "STRING",
    "google.type.Date": "DATE",
    "google.type.Decimal": _DECIMAL,
    "confluent.type.Decimal": _DECIMAL,
}
_WRAPPERS = {
    f"google.protobuf.{kind}Value"
    for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
}


def named_message(parsed: ProtobufSchema, name: str | None) -> Descriptor:
    """The message of that full name, or the first; SCHEMA_NOT_DERIVED when there is none."""
    found = parsed.named(name)
    if found is not None:
        return found
    problem = "it has no message" if name is None else f"it has no message {name}"
    raise MainstemError("SCHEMA_NOT_DERIVED", where="the schema", problem=problem)


def message_columns(message: Descriptor) -> Columns:
    """The columns of a message, in the order of its text."""
    way = [(field, Way()) for field in message.fields]
    return collected(((f.name, partial(_field, f, w)) for f, w in way), alike=_alike)


def is_map(field: FieldDescriptor) -> bool:
    """True for a map, which is a list of entries on the wire."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def wrapped(message: Descriptor) -> FieldDescriptor | None:
    """The only field of a message that stands for a scalar which may be absent."""
    return message.fields_by_name["value"] if message.full_name in _WRAPPERS else None


def _field(field: FieldDescriptor, way: Way) -> str:
    if is_map(field):
        entry = field.message_type
        assert entry is not None
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        kind = "BIGINT" if key.type in UNSIGNED else _SCALARS[key.type]
        return f"MAP<{kind}, {_single(value, way)}>"
    single = _single(field, way)
    return f"ARRAY<{single}>" if field.is_repeated else single


def _single(field: FieldDescriptor, way: Way) -> str:
    message = field.message_type
    if message is None:
        return _SCALARS[field.type]
    if message.full_name in _MEANT:
        return _MEANT[message.full_name]
    scalar = wrapped(message)
    if scalar is not None:
        return _SCALARS[scalar.type]
    with way.into(message):
        return struct((inner.name, _field(inner, way)) for inner in message.fields)


def _alike(name: str) -> str:
    """What is the same for names that the format takes for one."""
    return name.replace("_", "").lower()
