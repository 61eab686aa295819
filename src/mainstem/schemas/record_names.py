"""The names that records of a schema have: by them, streams in one topic tell their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf.descriptor import Descriptor

from mainstem.definitions.model import SubjectStrategy
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.avro_model import AvroType, Record, Union
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.parse import Parsed
from mainstem.schemas.protobuf_parse import ProtobufSchema

Names = Mapping[str, tuple[int, ...]]
"""Full names, each with the place of its message in a Protobuf file; with nothing in others."""


def record_names(parsed: Parsed) -> Names:
    """The names that records of a schema can have; none where the schema gives no name.

    An Avro record's name, the title of a JSON Schema, the messages of a Protobuf file.
    """
    match parsed:
        case AvroSchema():
            return dict.fromkeys(_avro_names(parsed.root), ())
        case JsonSchema():
            contents = parsed.root.contents
            title = contents.get("title") if isinstance(contents, dict) else None
            return {title: ()} if isinstance(title, str) else {}
        case ProtobufSchema():
            return dict(_messages(list(parsed.descriptor.message_types_by_name.values()), ()))


def check_named(parsed: Parsed, record: str | None) -> None:
    """SCHEMA_NOT_DERIVED when a schema gives its records other names than this."""
    if record is not None and record not in record_names(parsed):
        problem = f"it is not of a record {record}"
        raise MainstemError("SCHEMA_NOT_DERIVED", where="the schema", problem=problem)


def named_after(parsed: Parsed, subject: str, topic: str) -> tuple[str | None, SubjectStrategy]:
    """The record that a subject is named after, and how; None where it is named after its topic."""
    for name in record_names(parsed):
        if subject == name:
            return name, SubjectStrategy.RECORD_NAME
        if subject == f"{topic}-{name}":
            return name, SubjectStrategy.TOPIC_RECORD_NAME
    return None, SubjectStrategy.TOPIC_NAME


def is_named(value: bytes, names: Names, record: str) -> bool:
    """True when a value that begins with a schema's id is of that name.

    NotFramed when it is of a Protobuf schema, and of none of its messages.
    """
    if not any(names.values()):
        return record in names
    indexes, _ = wire.message_indexes(value)
    if indexes not in names.values():
        message = f"its schema has no message at {list(indexes)}"
        raise wire.NotFramed(message)
    return names.get(record) == indexes


def beginnings(id: int, names: Names, record: str) -> tuple[set[bytes], set[bytes]]:
    """What values with that id begin with: those of that name, and those of other names."""
    found: tuple[set[bytes], set[bytes]] = (set(), set())
    head = wire.header(id)
    if record not in names or not names[record]:
        found[record not in names].add(head)
        return found
    for name, indexes in names.items():
        found[name != record].update(head + form for form in wire.index_forms(indexes))
    return found


def _messages(
    messages: Sequence[Descriptor], place: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, message in enumerate(messages):
        if not message.GetOptions().map_entry:
            here = (*place, index)
            yield message.full_name, here
            yield from _messages(list(message.nested_types), here)


def _avro_names(root: AvroType) -> list[str]:
    branches = root.branches if isinstance(root, Union) else [root]
    return [branch.name for branch in branches if isinstance(branch, Record)]
