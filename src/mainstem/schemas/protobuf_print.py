"""Prints a file descriptor as the text of a .proto file, from which the same descriptor comes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

_MAX_FIELD, _MAX_ENUM = 2**29 - 1, 2**31 - 1
_LABELS = {
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
}


def print_proto(file: FileDescriptorProto) -> str:
    """The text of a file; its options are those that the classes of its descriptors know."""
    return "\n".join(_Printer(file).lines()) + "\n"


def default_json_name(name: str) -> str:
    """The JSON name that a field has unless it says another: `user_id` is `userId`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


class _Printer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self.file = file
        # the label "optional" is not written in an edition
        self.edition = file.syntax == "editions"
        self.proto3 = file.syntax == "proto3"

    def lines(self) -> Iterator[str]:
        file = self.file
        if self.edition:
            yield f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        for index, name in enumerate(file.dependency):
            public = "public " if index in file.public_dependency else ""
            weak = "weak " if index in file.weak_dependency else ""
            yield f"import {public}{weak}{_quote(name)};"
        yield from (f"option {option};" for option in options(file.options))
        for enum in file.enum_type:
            yield from self.enum(enum)
        groups = _groups(file.extension)
        for message in file.message_type:
            if message.name not in groups:
                yield from self.message(message, f"message {message.name}")
        yield from self.extensions(file.extension, file.message_type)
        for service in file.service:
            yield from self.service(service)

    def message(self, message: DescriptorProto, head: str) -> Iterator[str]:
        yield f"{head} {{"
        yield from _indent(self.body(message))
        yield "}"

    def body(self, message: DescriptorProto) -> Iterator[str]:
        yield from (f"option {option};" for option in options(message.options))
        yield from _reserved(
            [(r.start, r.end - 1) for r in message.reserved_range],
            message.reserved_name,
            _MAX_FIELD,
            self.edition,
        )
        for span in message.extension_range:
            said = ", ".join(options(span.options))
            numbers = _span(span.start, span.end - 1, _MAX_FIELD)
            yield f"extensions {numbers}{f' [{said}]' if said else ''};"
        maps = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        groups = _groups([*message.field, *message.extension])
        for enum in message.enum_type:
            yield from self.enum(enum)
        # maps and groups define a message where their field is; messages are counted on the wire,
        # so they keep their order
        made = {_tail(field): field.number for field in message.field if _tail(field) in maps}
        made |= {_tail(field): field.number for field in message.field if _is_group(field)}
        fields = deque(message.field)
        written: set[int] = set()
        oneofs: set[int] = set()
        for nested in message.nested_type:
            if nested.name in made:
                while made[nested.name] not in written:
                    yield from self.member(fields.popleft(), message, maps, written, oneofs)
            elif nested.name not in groups:
                yield from self.message(nested, f"message {nested.name}")
        for field in fields:
            yield from self.member(field, message, maps, written, oneofs)
        yield from self.extensions(message.extension, message.nested_type)

    def member(
        self,
        field: FieldDescriptorProto,
        message: DescriptorProto,
        maps: dict[str, DescriptorProto],
        written: set[int],
        oneofs: set[int],
    ) -> Iterator[str]:
        written.add(field.number)
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield from self.field(field, message.nested_type, maps)
        elif field.oneof_index not in oneofs:
            oneofs.add(field.oneof_index)
            yield from self.oneof(message, field.oneof_index, maps)

    def oneof(
        self, message: DescriptorProto, index: int, maps: dict[str, DescriptorProto]
    ) -> Iterator[str]:
        oneof: OneofDescriptorProto = message.oneof_decl[index]
        yield f"oneof {oneof.name} {{"
        yield from (f"  option {option};" for option in options(oneof.options))
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index:
                yield from _indent(self.field(field, message.nested_type, maps))
        yield "}"

    def field(
        self,
        field: FieldDescriptorProto,
        nested: Iterable[DescriptorProto],
        maps: dict[str, DescriptorProto],
    ) -> Iterator[str]:
        said = ", ".join((*_own_options(field), *options(field.options)))
        tail = f" = {field.number}{f' [{said}]' if said else ''}"
        if _is_group(field):
            name = _tail(field)
            body = next(item for item in nested if item.name == name)
            yield from self.message(body, f"{self.label(field)}group {name}{tail}")
            return
        entry = maps.get(_tail(field))
        if entry is not None:
            key, value = entry.field
            yield f"map<{_type(key)}, {_type(value)}> {field.name}{tail};"
        else:
            yield f"{self.label(field)}{_type(field)} {field.name}{tail};"

    def label(self, field: FieldDescriptorProto) -> str:
        if field.label in _LABELS:
            return _LABELS[field.label]
        if field.proto3_optional:
            return "optional "
        plain = self.proto3 or self.edition or field.HasField("oneof_index")
        return "" if plain else "optional "

    def extensions(
        self, fields: Sequence[FieldDescriptorProto], nested: Iterable[DescriptorProto]
    ) -> Iterator[str]:
        for field in fields:
            yield f"extend {field.extendee} {{"
            yield from _indent(self.field(field, nested, {}))
            yield "}"

    def enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from (f"  option {option};" for option in options(enum.options))
        spans = [(r.start, r.end) for r in enum.reserved_range]
        yield from _indent(_reserved(spans, enum.reserved_name, _MAX_ENUM, self.edition))
        for value in enum.value:
            said = ", ".join(options(value.options))
            yield f"  {value.name} = {value.number}{f' [{said}]' if said else ''};"
        yield "}"

    def service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from (f"  option {option};" for option in options(service.options))
        for method in service.method:
            asks = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            gives = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            said = "".join(f" option {option};" for option in options(method.options))
            yield f"  rpc {method.name}({asks}) returns ({gives}) {{{said} }}"
        yield "}"


def options(message: Message) -> Iterator[str]:
    """The options that are set, as `name = value`."""
    for field, value in message.ListFields():
        if field.name == "uninterpreted_option":
            continue
        name = f"(.{field.full_name})" if field.is_extension else field.name
        for item in value if field.is_repeated else [value]:
            yield f"{name} = {_value(field, item)}"


def _own_options(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        match field.type:
            case FieldDescriptorProto.TYPE_STRING:
                yield f"default = {_quote(field.default_value)}"
            case FieldDescriptorProto.TYPE_BYTES:
                # has been escaped before
                yield f'default = "{field.default_value}"'
            case _:
                yield f"default = {field.default_value}"
    if field.json_name and field.json_name != default_json_name(field.name):
        yield f"json_name = {_quote(field.json_name)}"


def _value(field: FieldDescriptor, value: Any) -> str:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_MESSAGE:
            return f"{{ {text_format.MessageToString(value, as_one_line=True)} }}"
        case FieldDescriptor.CPPTYPE_ENUM:
            assert field.enum_type is not None
            return str(field.enum_type.values_by_number[value].name)
        case FieldDescriptor.CPPTYPE_BOOL:
            return "true" if value else "false"
        case FieldDescriptor.CPPTYPE_STRING:
            return _quote(value)
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return repr(value) if math.isfinite(value) else str(value)
        case _:
            return str(value)


def _type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return field.type_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _tail(field: FieldDescriptorProto) -> str:
    return field.type_name.rpartition(".")[2]


def _is_group(field: FieldDescriptorProto) -> bool:
    return field.type == FieldDescriptorProto.TYPE_GROUP


def _groups(fields: Iterable[FieldDescriptorProto]) -> set[str]:
    return {_tail(field) for field in fields if _is_group(field)}


def _reserved(
    spans: Sequence[tuple[int, int]], names: Sequence[str], highest: int, edition: bool
) -> Iterator[str]:
    if spans:
        yield f"reserved {', '.join(_span(start, end, highest) for start, end in spans)};"
    if names:
        yield f"reserved {', '.join(name if edition else _quote(name) for name in names)};"


def _span(start: int, end: int, highest: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end >= highest else end}"


def _quote(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in data
    )
    return f'"{escaped}"'


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
