"""The differences of two Protobuf schemas: messages meet by name, fields by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

from mainstem.schemas.differences import Action, Difference, compare
from mainstem.schemas.protobuf_parse import ProtobufSchema, all_messages
from mainstem.schemas.protobuf_print import options
from mainstem.schemas.protobuf_rules import describe, field_type, is_entry, real_oneof, relative


def protobuf_differences(old: ProtobufSchema, new: ProtobufSchema) -> list[Difference]:
    """All differences, message by message."""
    before, after = old.descriptor, new.descriptor
    found = compare("/", "package", before.package or None, after.package or None)
    olds = {relative(message): message for message in all_messages(before)}
    news = {relative(message): message for message in all_messages(after)}
    for name, message in news.items():
        if name in olds:
            found += _message(olds[name], message, name)
        else:
            found.append(Difference(name, Action.ADDED, "message", None, name))
    found += [
        Difference(name, Action.REMOVED, "message", name, None) for name in olds if name not in news
    ]
    found += _enums(dict(_all_enums(before)), dict(_all_enums(after)))
    return found


def _message(before: Descriptor, after: Descriptor, path: str) -> Iterator[Difference]:
    for field in after.fields:
        at, source = f"{path}.{field.name}", before.fields_by_number.get(field.number)
        if source is None:
            yield Difference(at, Action.ADDED, "field", None, _field(field))
            continue
        if source.name != field.name:
            yield Difference(at, Action.RENAMED, "field", source.name, field.name)
        yield from compare(at, "type", describe(source), describe(field))
        yield from compare(at, "label", _label(source), _label(field))
        yield from compare(at, "oneof", real_oneof(source), real_oneof(field))
        yield from compare(at, "default", _default(source), _default(field))
        yield from compare(at, "JSON name", source.json_name, field.json_name)
        one, two = ([*options(f.GetOptions())] or None for f in (source, field))
        yield from compare(at, "options", one, two)
    for field in before.fields:
        if field.number not in after.fields_by_number:
            at = f"{path}.{field.name}"
            yield Difference(at, Action.REMOVED, "field", _field(field), None)


def _enums(
    olds: dict[str, EnumDescriptor], news: dict[str, EnumDescriptor]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*news, *olds)):
        old, new = olds.get(name), news.get(name)
        if old is None or new is None:
            yield from compare(name, "enum", old and name, new and name)
            continue
        for value in new.values:
            source = old.values_by_name.get(value.name)
            number = None if source is None else source.number
            yield from compare(f"{name}.{value.name}", "symbol", number, value.number)
        for value in old.values:
            if value.name not in new.values_by_name:
                at = f"{name}.{value.name}"
                yield Difference(at, Action.REMOVED, "symbol", value.number, None)


def _all_enums(file: FileDescriptor) -> Iterator[tuple[str, EnumDescriptor]]:
    for enum in file.enum_types_by_name.values():
        yield relative(enum), enum
    for message in all_messages(file):
        for enum in message.enum_types:
            yield relative(enum), enum


def _field(field: FieldDescriptor) -> dict[str, Any]:
    return {"type": describe(field), "number": field.number}


def _label(field: FieldDescriptor) -> str | None:
    if field.is_repeated:
        return (
            None if field.message_type is not None and is_entry(field.message_type) else "repeated"
        )
    if field.is_required:
        return "required"
    plain = field_type(field) != "message" and real_oneof(field) is None
    return "optional" if field.has_presence and plain else None


def _default(field: FieldDescriptor) -> Any:
    if not field.has_default_value:
        return None
    value = field.default_value
    return value.decode("latin-1") if isinstance(value, bytes) else value
