"""The names that records of a schema have: by them, streams in one topic tell their own."""

from __future__ import annotations

from mainstem.schemas.avro_model import AvroType, Record, Union
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.parse import Parsed
from mainstem.schemas.protobuf_parse import ProtobufSchema, all_messages


def record_names(parsed: Parsed) -> frozenset[str]:
    """The full names that records of a schema can have.

    An Avro record's name, the title of a JSON Schema, the messages of a Protobuf file; none where
    the schema gives no name.
    """
    match parsed:
        case AvroSchema():
            return frozenset(_avro_names(parsed.root))
        case JsonSchema():
            contents = parsed.root.contents
            title = contents.get("title") if isinstance(contents, dict) else None
            return frozenset([title] if isinstance(title, str) else [])
        case ProtobufSchema():
            return frozenset(message.full_name for message in all_messages(parsed.descriptor))


def _avro_names(root: AvroType) -> list[str]:
    branches = root.branches if isinstance(root, Union) else [root]
    return [branch.name for branch in branches if isinstance(branch, Record)]
