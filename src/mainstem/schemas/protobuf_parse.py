"""Reads a Protobuf schema: the text of a .proto file, or a file descriptor in base64."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from mainstem.errors import MainstemError
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.protobuf_print import print_proto
from mainstem.schemas.protoc import MAIN, compile_proto
from mainstem.schemas.protos import builtin
from mainstem.schemas.references import gather
from mainstem.schemas.text import check_size, malformed


@dataclass(frozen=True)
class ProtobufSchema:
    """A schema that has been read: its descriptor, and those that it imports, in order of need."""

    schema: Schema
    file: FileDescriptorProto
    imports: tuple[FileDescriptorProto, ...]

    @cached_property
    def descriptor(self) -> FileDescriptor:
        """The file in a pool of its own, which its messages keep alive."""
        return build_pool((*self.imports, self.file)).FindFileByName(self.file.name)

    def with_options(self) -> FileDescriptorProto:
        """The descriptor in a class that knows the options which the file's imports define."""
        name = "google/protobuf/descriptor.proto"
        if not any(item.name == name for item in self.imports):
            return self.file
        known = self.descriptor.pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto")
        read = message_factory.GetMessageClass(known)
        return cast(FileDescriptorProto, read.FromString(self.file.SerializeToString()))

    def message(self, indexes: tuple[int, ...] = (0,)) -> Descriptor:
        """The message at a place of the file: `(1, 0)` is the first one inside the second."""
        nested: list[Descriptor] = list(self.descriptor.message_types_by_name.values())
        found: Descriptor | None = None
        for index in indexes:
            if not 0 <= index < len(nested):
                raise malformed(
                    SchemaType.PROTOBUF, f"message {list(indexes)}", "there is no such message"
                )
            found = nested[index]
            nested = list(found.nested_types)
        assert found is not None
        return found

    def named(self, name: str | None) -> Descriptor | None:
        """The message of that full name, or for no name the first; None when there is none."""
        if name is None:
            return self.message() if self.file.message_type else None
        found = (m for m in all_messages(self.descriptor) if m.full_name == name)
        return next(found, None)

    def message_class(self, indexes: tuple[int, ...] = (0,)) -> type[Message]:
        """The class of the message at a place."""
        return message_factory.GetMessageClass(self.message(indexes))


def parse_protobuf(schema: Schema, resolve: Resolve) -> ProtobufSchema:
    """Compiles the schema with what it imports."""
    check_size(schema.text)
    if not schema.text.strip():
        raise malformed(SchemaType.PROTOBUF, "line 1, column 1", "there is nothing")
    given = gather(schema, resolve)
    texts: dict[str, str] = {}
    files: dict[str, FileDescriptorProto] = {}
    for name, reference in given.items():
        descriptor = read_base64(reference.text, name)
        if descriptor is None:
            texts[name] = reference.text
        else:
            files[name] = descriptor
            texts[name] = print_proto(descriptor)
    main = read_base64(schema.text, MAIN)
    if main is None:
        file, imports = compile_proto(schema.text, texts)
    else:
        file, imports = main, _imports(main, texts)
    # a descriptor that was given has options that its printed text cannot always say
    imports = tuple(files.get(item.name, item) for item in imports)
    parsed = ProtobufSchema(schema, file, imports)
    _check(parsed)
    return parsed


def read_base64(text: str, name: str) -> FileDescriptorProto | None:
    """The descriptor that a client sent in base64, or None where the text is no such thing."""
    try:
        data = base64.b64decode(text, validate=True)
        file = FileDescriptorProto.FromString(data) if data else None
    except (binascii.Error, ValueError, DecodeError):
        return None
    if file is None:
        return None
    file.name = name
    file.ClearField("source_code_info")
    return file


def build_pool(files: tuple[FileDescriptorProto, ...]) -> DescriptorPool:
    """A pool of files, each of which stands behind what it imports."""
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _imports(file: FileDescriptorProto, texts: dict[str, str]) -> tuple[FileDescriptorProto, ...]:
    for name in file.dependency:
        if name not in texts and builtin(name) is None:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN",
                name=name,
                problem="it is imported, and the references do not name it",
            )
    # a file that imports the same and has nothing of its own
    empty = "".join(f'import "{name}";\n' for name in file.dependency)
    return compile_proto(f'syntax = "proto3";\n{empty}', texts)[1]


def _check(parsed: ProtobufSchema) -> None:
    """The compiler takes more than the runtime does, such as messages of very many fields."""
    try:
        _ = parsed.descriptor
    except (TypeError, ValueError, KeyError) as error:
        raise malformed(SchemaType.PROTOBUF, "its descriptor", str(error)[:300]) from None


def all_messages(file: FileDescriptor) -> Iterator[Descriptor]:
    """Every message of a file in its order, those within others, too; not the entries of maps."""
    todo = deque(file.message_types_by_name.values())
    while todo:
        message = todo.popleft()
        if not message.GetOptions().map_entry:
            yield message
            todo.extendleft(reversed(message.nested_types))
