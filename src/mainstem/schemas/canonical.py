"""The text that decides whether two schemas are the same, and the one that a schema is kept as."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_print import without_references
from mainstem.schemas.json_parse import JsonSchema, inner
from mainstem.schemas.parse import Parsed
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.protobuf_print import default_json_name, print_proto
from mainstem.schemas.text import dump


def canonical(parsed: Parsed) -> str:
    """Equal for two schemas (with equal references) exactly when they say the same.

    Space and the order of keys do not count; docs, defaults, aliases and further attributes do.
    A .proto text equals the descriptor that a client sends for it.
    """
    match parsed:
        case AvroSchema():
            return dump(without_references(parsed), sort=True)
        case JsonSchema():
            return dump(parsed.document, sort=True)
        case ProtobufSchema():
            return serialized(parsed)


def normalize(parsed: Parsed) -> str:
    """The schema as text in one form: what has no order is sorted, a descriptor is printed."""
    match parsed:
        case AvroSchema():
            return dump(without_references(parsed, sort=True))
        case JsonSchema():
            return dump(_sorted_lists(parsed.document), sort=True)
        case ProtobufSchema():
            return print_proto(parsed.with_options())


def serialized(parsed: ProtobufSchema) -> str:
    """The descriptor in base64, as clients ask for it with `format=serialized`."""
    file = type(parsed.file)()
    file.CopyFrom(parsed.file)
    file.ClearField("name")
    file.ClearField("source_code_info")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    todo: list[DescriptorProto] = list(file.message_type)
    _plain_names(file.extension)
    while todo:
        message = todo.pop()
        _plain_names(message.field)
        _plain_names(message.extension)
        todo += message.nested_type
    return base64.b64encode(file.SerializeToString(deterministic=True)).decode()


def _plain_names(fields: Any) -> None:
    field: FieldDescriptorProto
    for field in fields:
        if field.json_name == default_json_name(field.name):
            field.ClearField("json_name")


def _sorted_lists(document: Any) -> Any:
    """Lists of names whose order says nothing (`required`, `type`), in one order."""
    document = deepcopy(document)
    todo = [document]
    while todo:
        node = todo.pop()
        todo += [contents for _, contents in inner(node)]
        for key in ("required", "type"):
            if isinstance(node, dict) and isinstance(node.get(key), list):
                node[key].sort()
    return document
