"""What we call compatible, protobuf reads: messages are made up and changed at random."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.protobuf_parse import ProtobufSchema, parse_protobuf
from mainstem.schemas.protobuf_rules import protobuf_breaks

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "sint32": st.integers(-(2**31), 2**31 - 1),
    "sint64": st.integers(-(2**63), 2**63 - 1),
    "fixed32": st.integers(0, 2**32 - 1),
    "sfixed64": st.integers(-(2**63), 2**63 - 1),
    "float": st.just(1.5),
    "double": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "bytes": st.binary(max_size=3),
    "E": st.integers(0, 2),
}
SCALARS = sorted(VALUES)


@dataclass
class Field:
    name: str
    number: int
    type: str
    label: str = ""
    oneof: str = ""

    @property
    def many(self) -> bool:
        return self.label == "repeated" and not self.oneof


@dataclass
class Message:
    fields: list[Field] = field(default_factory=list)

    def text(self, name: str) -> str:
        oneofs = dict.fromkeys(item.oneof for item in self.fields if item.oneof)
        lines = [line(item, item.label) for item in self.fields if not item.oneof]
        for oneof in oneofs:
            inside = " ".join(line(item, "") for item in self.fields if item.oneof == oneof)
            lines.append(f"oneof {oneof} {{ {inside} }}")
        return f"message {name} {{ {' '.join(lines)} }}"


def line(item: Field, label: str) -> str:
    return f"{label} {item.type} {item.name} = {item.number};"


TYPES = st.sampled_from([*SCALARS, "N", "N"])
LABELS = st.sampled_from(["optional"] * 4 + ["repeated", "required"])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    numbers = draw(st.lists(st.integers(1, 5), max_size=4, unique=True))
    return Message([new_field(draw, number) for number in numbers])


def new_field(draw: st.DrawFn, number: int) -> Field:
    oneof = draw(st.sampled_from(["", "", "o", "p"]))
    return Field(f"f{number}", number, draw(TYPES), draw(LABELS), oneof)


@st.composite
def changed(draw: st.DrawFn, message: Message) -> Message:
    message = copy.deepcopy(message)
    for _ in range(draw(st.integers(1, 2))):
        step = draw(st.sampled_from(["add", "remove", "retype", "relabel", "oneof", "rename"]))
        target = draw(st.sampled_from(message.fields)) if message.fields else None
        if step == "add":
            number = draw(st.integers(6, 9))
            if all(item.number != number for item in message.fields):
                message.fields.append(new_field(draw, number))
        elif target is None:
            continue
        elif step == "remove":
            message.fields.remove(target)
        elif step == "retype":
            target.type = draw(TYPES)
        elif step == "relabel":
            target.label = draw(LABELS)
        elif step == "oneof":
            target.oneof = draw(st.sampled_from(["", "o", "p"]))
        else:
            target.name = f"g{target.number}"
    return message


def read(outer: Message, inner: Message, resolve: Resolve) -> ProtobufSchema:
    text = f"{outer.text('M')} {inner.text('N')} enum E {{ X = 0; Y = 1; Z = 2; }}"
    return parse_protobuf(Schema(SchemaType.PROTOBUF, f'syntax = "proto2"; {text}'), resolve)


def fill(draw: Any, target: Any, message: Message, inner: Message, depth: int) -> None:
    for item in message.fields:
        # a message that contains itself must end, and then lacks what it requires
        if not item.many and item.label != "required" and draw(st.booleans()):
            continue
        for _ in range(draw(st.integers(0, 2)) if item.many else 1):
            if item.type == "N":
                part = getattr(target, item.name)
                part = part.add() if item.many else part
                part.SetInParent()
                if depth:
                    fill(draw, part, inner, inner, depth - 1)
            elif item.many:
                getattr(target, item.name).append(draw(VALUES[item.type]))
            else:
                setattr(target, item.name, draw(VALUES[item.type]))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_compatible_data_is_read(no_references: Resolve, data: st.DataObject) -> None:
    outer, inner = data.draw(messages()), data.draw(messages())
    new_outer, new_inner = (
        data.draw(changed(outer)),
        data.draw(st.one_of(st.just(inner), changed(inner))),
    )
    writer = read(outer, inner, no_references)
    reader = read(new_outer, new_inner, no_references)
    if protobuf_breaks(reader, writer):
        event("incompatible")
        return
    written = writer.message_class()()
    fill(data.draw, written, outer, inner, 2)
    if not written.IsInitialized():
        event("unwritable")
        return
    event("compatible")
    found = reader.message_class().FromString(written.SerializeToString())
    assert found.IsInitialized()
    olds = {item.number: item for item in outer.fields}
    for item in new_outer.fields:
        old = olds.get(item.number)
        # what has kept its type has kept its value
        if old is None or (old.type, old.many) != (item.type, item.many) or item.type == "N":
            continue
        if old.oneof and not written.HasField(old.name):
            continue
        assert getattr(found, item.name) == getattr(written, old.name)
