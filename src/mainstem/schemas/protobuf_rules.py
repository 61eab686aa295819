"""What a Protobuf reader cannot read: the rules for updating a message type, by who reads whom.

Fields meet by number. A message that the writer has and the reader has not is a break, since every
message of a file can be what a record holds; adding one is therefore not forward compatible.
Bytes as a string are a break, for not all bytes are text, while a string as bytes is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from mainstem.schemas.breaks import MAX_BREAKS, Break
from mainstem.schemas.protobuf_parse import ProtobufSchema, all_messages

_GROUPS: Final = (
    # what is the same on the wire, by the documentation's list
    {"int32", "int64", "uint32", "uint64", "bool"},
    {"int32", "int64", "uint32", "uint64", "enum"},
    {"sint32", "sint64"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
# writer -> reader, beside those
_ONE_WAY: Final = {("string", "bytes"), ("message", "bytes")}
_BLOCKS: Final = {"string", "bytes", "message", "group"}

_TYPES: Final = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def protobuf_breaks(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Break]:
    """All breaks, message by message."""
    walk = _Walk(reader.descriptor, writer.descriptor)
    expected = {relative(message): message for message in all_messages(reader.descriptor)}
    for message in all_messages(writer.descriptor):
        name = relative(message)
        if name in expected:
            walk.meet(expected[name], message, name)
        else:
            walk.add(name, "MESSAGE_REMOVED", f"the message {name} is written and is not known")
    walk.extensions()
    return walk.run()


def reused_numbers(new: ProtobufSchema, earlier: ProtobufSchema) -> list[Break]:
    """Fields of a new version under numbers or names that an earlier one has reserved."""
    found = []
    known = {relative(message): message for message in all_messages(new.descriptor)}
    protos = {relative(message): _proto(message) for message in all_messages(earlier.descriptor)}
    for name, proto in protos.items():
        for field in known[name].fields if name in known else ():
            if any(span.start <= field.number < span.end for span in proto.reserved_range):
                reason = f"the number {field.number} had been reserved"
                found.append(Break(f"{name}.{field.name}", "FIELD_NUMBER_RESERVED", reason))
            elif field.name in proto.reserved_name:
                reason = f"the name {field.name} had been reserved"
                found.append(Break(f"{name}.{field.name}", "FIELD_NAME_RESERVED", reason))
    return found[:MAX_BREAKS]


def relative(type: Descriptor | EnumDescriptor) -> str:
    """A type's name without the package of its file, which may change."""
    return type.full_name.removeprefix(f"{type.file.package}." if type.file.package else "")


def field_type(field: FieldDescriptor) -> str:
    """`int32`, `message` ..."""
    return _TYPES[field.type]


def describe(field: FieldDescriptor) -> str:
    """A field's type in a few words."""
    if field.message_type is not None and is_entry(field.message_type):
        key, value = field.message_type.fields
        return f"map<{describe(key)}, {describe(value)}>"
    named = field.message_type or field.enum_type
    word = relative(named) if named is not None else field_type(field)
    return f"repeated {word}" if field.is_repeated else word


class _Walk:
    def __init__(self, reader: FileDescriptor, writer: FileDescriptor) -> None:
        self.reader, self.writer = reader, writer
        self.todo: deque[tuple[Descriptor, Descriptor, str]] = deque()
        self.seen: set[tuple[str, str]] = set()
        self.found: list[Break] = []

    def run(self) -> list[Break]:
        while self.todo and len(self.found) < MAX_BREAKS:
            self.messages(*self.todo.popleft())
        return self.found[:MAX_BREAKS]

    def meet(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        pair = (reader.full_name, writer.full_name)
        if pair not in self.seen:
            self.seen.add(pair)
            self.todo.append((reader, writer, path))

    def add(self, path: str, kind: str, reason: str) -> None:
        self.found.append(Break(path, kind, reason))

    def messages(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        written = writer.fields_by_number
        for field in reader.fields:
            at = f"{path}.{field.name}"
            other = written.get(field.number)
            renumbered = writer.fields_by_name.get(field.name)
            if renumbered is not None and renumbered.number != field.number:
                reason = f"it is written as number {renumbered.number}, not {field.number}"
                self.add(at, "FIELD_NUMBER_CHANGED", reason)
            if other is not None:
                self.fields(field, other, at)
            elif field.is_required:
                self.add(at, "REQUIRED_FIELD_ADDED", "it is required and is not written")
        self.oneofs(reader, writer, path)

    def fields(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        expected, written = field_type(reader), field_type(writer)
        types = f"{describe(writer)} is written, {describe(reader)} is expected"
        if reader.is_required and not writer.is_required:
            self.add(path, "FIELD_BECAME_REQUIRED", "it is required and may not be written")
        if not _same_on_the_wire(expected, written):
            kind = "FIELD_KIND_CHANGED" if _BLOCKS & {expected, written} else "FIELD_TYPE_CHANGED"
            self.add(path, kind, types)
            return
        if reader.is_repeated != writer.is_repeated and expected not in _BLOCKS:
            self.add(path, "FIELD_NUMERIC_LABEL_CHANGED", types)
        if reader.message_type is not None and writer.message_type is not None:
            self.named(reader.message_type, writer.message_type, path)
        elif reader.enum_type is not None and writer.enum_type is not None:
            self.enums(reader.enum_type, writer.enum_type, path)

    def named(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        # the message of a map's entries has a name that nobody chose
        if not is_entry(reader) and not is_entry(writer) and not self.same(reader, writer):
            reason = f"{relative(writer)} is written, {relative(reader)} is expected"
            self.add(path, "FIELD_NAMED_TYPE_CHANGED", reason)
        else:
            self.meet(reader, writer, path)

    def same(
        self, reader: Descriptor | EnumDescriptor, writer: Descriptor | EnumDescriptor
    ) -> bool:
        """By name; a package may change only together with the schema's own."""
        if reader.file.name == self.reader.name and writer.file.name == self.writer.name:
            return relative(reader) == relative(writer)
        return bool(reader.full_name == writer.full_name)

    def enums(self, reader: EnumDescriptor, writer: EnumDescriptor, path: str) -> None:
        if not self.same(reader, writer):
            reason = f"{relative(writer)} is written, {relative(reader)} is expected"
            self.add(path, "FIELD_NAMED_TYPE_CHANGED", reason)
            return
        pair = (reader.full_name, writer.full_name)
        if pair in self.seen:
            return
        self.seen.add(pair)
        for name, value in reader.values_by_name.items():
            other = writer.values_by_name.get(name)
            if other is not None and other.number != value.number:
                reason = f"{name} is written as {other.number}, not {value.number}"
                self.add(path, "ENUM_VALUE_NUMBER_CHANGED", reason)

    def oneofs(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        for oneof in reader.oneofs:
            written = [writer.fields_by_number.get(field.number) for field in oneof.fields]
            # each of these can be written beside the others: a oneof, or a field outside of any
            slots = {_slot(field): field for field in written if field is not None}
            if len(slots) > 1:
                joined = any(real_oneof(field) is not None for field in slots.values())
                kind = (
                    "FIELD_MOVED_TO_EXISTING_ONEOF" if joined else "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
                )
                names = ", ".join(sorted(field.name for field in slots.values()))
                reason = f"several of {names} can be written at once, of which one would be kept"
                self.add(f"{path}.{oneof.name}", kind, reason)
        for oneof in writer.oneofs:
            # who knows some of the alternatives would take another one for none
            known = [field.number in reader.fields_by_number for field in oneof.fields]
            for field in oneof.fields if any(known) else ():
                if field.number not in reader.fields_by_number:
                    reason = f"{field.name} of the oneof {oneof.name} is written and is not known"
                    self.add(f"{path}.{field.name}", "ONEOF_FIELD_REMOVED", reason)

    def extensions(self) -> None:
        expected = dict(_extensions(self.reader))
        for place, field in _extensions(self.writer):
            other = expected.get(place)
            if other is not None:
                self.fields(other, field, other.full_name)


def _same_on_the_wire(reader: str, writer: str) -> bool:
    if reader == writer or (writer, reader) in _ONE_WAY:
        return True
    return any({reader, writer} <= group for group in _GROUPS)


def is_entry(message: Descriptor) -> bool:
    """Whether it is the message of a map's entries, which nobody named."""
    return bool(message.GetOptions().map_entry)


def _synthetic(field: FieldDescriptor) -> bool:
    """`optional` in proto3 is a oneof of its own, which nobody wrote."""
    oneof = field.containing_oneof
    return oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{field.name}"


def real_oneof(field: FieldDescriptor) -> str | None:
    """The oneof that a field was put into, if any."""
    oneof = field.containing_oneof
    return oneof.name if oneof is not None and not _synthetic(field) else None


def _slot(field: FieldDescriptor) -> str:
    oneof = real_oneof(field)
    return f"oneof {oneof}" if oneof is not None else f"field {field.number}"


def _extensions(file: FileDescriptor) -> Iterator[tuple[tuple[str, int], FieldDescriptor]]:
    """Fields that the file adds to other messages, by message and number."""
    inside = (field for message in all_messages(file) for field in message.extensions)
    for field in (*file.extensions_by_name.values(), *inside):
        assert field.containing_type is not None
        yield (relative(field.containing_type), field.number), field


def _proto(message: Descriptor) -> DescriptorProto:
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return proto
