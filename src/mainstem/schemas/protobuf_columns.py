"""Columns -> the Protobuf schema that a definition's records are written with.

A field keeps the number that it had in the version before, by its name, whatever stands beside it
now; numbers of fields that are gone are reserved. So the same columns give the same text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.model import Schema, SchemaType
from mainstem.vocabulary import Column

_SIMPLE = {
    "boolean": "bool",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
}
_MESSAGES = {
    "timestamp": (".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    "date": (".google.type.Date", "google/type/date.proto"),
    "decimal": (".google.type.Decimal", "google/type/decimal.proto"),
}
_NOT_IN_A_WORD = re.compile(r"[^A-Za-z0-9]+")
_FIRST_NOT_FREE, _FIRST_FREE_AGAIN = 19_000, 20_000


def message_schema(name: str, columns: Sequence[Column], before: Descriptor | None) -> Schema:
    """A message of that full name with these columns, each of which may be absent."""
    package, _, own = name.rpartition(".")
    imports: set[str] = set()
    lines = list(_message(own, f".{name}", columns, before, imports))
    head = [f"package {package};"] if package else []
    head += [f'import "{path}";' for path in sorted(imports)]
    parts = ['syntax = "proto3";', *([""] if head else []), *head, "", *lines]
    return Schema(SchemaType.PROTOBUF, "\n".join(parts) + "\n")


def _message(
    name: str, path: str, columns: Sequence[Column], before: Descriptor | None, imports: set[str]
) -> Iterator[str]:
    yield f"message {name} {{"
    gone = _gone(columns, before)
    if gone:
        yield f"  reserved {', '.join(map(str, gone))};"
    numbers = _numbers(columns, before, gone)
    taken = {column.name for column in columns}
    inside: list[str] = []
    for column in columns:
        label, type_, inner = "optional ", column.type, column.type
        if type_.startswith("array<"):
            label, inner = "repeated ", type_[len("array<") : -1]
        elif type_.startswith("map<"):
            key, inner = type_parts(type_[len("map<") : -1])
            label = f"map<{_SIMPLE[key]}, "
        if inner.startswith("struct<"):
            nested = _free(column.name, taken)
            known = before.fields_by_name.get(column.name) if before is not None else None
            fields = [Column(n, kind) for n, kind in struct_fields(inner).values()]
            inside += _message(nested, f"{path}.{nested}", fields, _inner(known), imports)
            made = f"{path}.{nested}"
        else:
            made = _type(inner, imports)
        written = f"{label}{made}>" if label.startswith("map") else f"{label}{made}"
        yield f"  {written} {column.name} = {numbers[column.name]};"
    for line in inside:
        yield f"  {line}"
    yield "}"


def _type(type_: str, imports: set[str]) -> str:
    if type_ in _SIMPLE:
        return _SIMPLE[type_]
    name, path = _MESSAGES[type_.partition("(")[0]]
    imports.add(path)
    return name


def _free(column: str, taken: set[str]) -> str:
    """A name for the message inside a column, which no column and no other message has."""
    name = "".join(part[:1].upper() + part[1:] for part in _NOT_IN_A_WORD.split(column)) or "Row"
    name = f"_{name}" if name[0].isdigit() else name
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _inner(field: object) -> Descriptor | None:
    """The message that a field of the version before held, be it in a list or a map."""
    found: Descriptor | None = getattr(field, "message_type", None)
    if found is not None and found.GetOptions().map_entry:
        return found.fields_by_name["value"].message_type
    return found


def _gone(columns: Sequence[Column], before: Descriptor | None) -> list[int]:
    """Numbers that must not be used again."""
    if before is None:
        return []
    names, document = {column.name for column in columns}, DescriptorProto()
    before.CopyToProto(document)
    gone = {field.number for field in before.fields if field.name not in names}
    for reserved in document.reserved_range:
        gone.update(range(reserved.start, min(reserved.end, reserved.start + 1000)))
    return sorted(gone)


def _numbers(
    columns: Sequence[Column], before: Descriptor | None, gone: Sequence[int]
) -> dict[str, int]:
    known = {f.name: f.number for f in before.fields} if before is not None else {}
    numbers = {c.name: known[c.name] for c in columns if c.name in known}
    last = max([*numbers.values(), *gone, 0])
    for column in columns:
        if column.name not in numbers:
            last = _FIRST_FREE_AGAIN if last + 1 == _FIRST_NOT_FREE else last + 1
            numbers[column.name] = last
    return numbers
