"""How much memory a message may take, told before it is decoded.

Two bytes of data are an empty message in a list, and that takes as much memory as its type has
fields: a megabyte can become gigabytes. What cannot be much is not looked at; what could be is
counted, first by how often the bytes before such a message occur, then, for what is left, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from google.protobuf.descriptor import Descriptor, FieldDescriptor

HEAVIEST = 256 << 20
"""Bytes of memory that one value may take."""
_LOOKED_AT = 1 << 20
_PER_MESSAGE, _PER_FIELD = 100, 40
"""About what a message takes once it is rows, measured: its fields count, set or not."""
_PER_BYTE = 8
_DEEPEST = 100
"""The decoder gives up there."""
_MOST_STEPS = 1 << 20
"""Fields that are looked at: about a second. What has more, and may be heavy, is."""
_GROUP, _TEXT, _GROUP_END = 3, 2, 4
_FIXED = {1: 8, 5: 4}


class Weights:
    """Of the messages of one type, and of all that can be inside of them."""

    def __init__(self, type_: Descriptor) -> None:
        self._root = type_
        self._inside: dict[str, dict[int, Descriptor]] = {}
        self._sizes: dict[str, int] = {}
        tags: dict[bytes, int] = {}
        for outer, field, inner in _messages(type_):
            self._inside.setdefault(outer.full_name, {})[field.number] = inner
            size = self._sizes[inner.full_name] = _PER_MESSAGE + _PER_FIELD * len(inner.fields)
            tag = _tag(field)
            tags[tag] = max(tags.get(tag, 0), size)
        self._tags = tuple(tags.items())
        self._most_per_byte = max([_PER_BYTE, *(size // 2 for size in self._sizes.values())])

    def of(self, data: bytes) -> int:
        """No less than what the data takes, or more than HEAVIEST."""
        most = len(data) * self._most_per_byte
        if most > _LOOKED_AT:
            own = len(data) * _PER_BYTE
            most = min(most, own + sum(data.count(tag) * size for tag, size in self._tags))
            if most > HEAVIEST >= own:
                most = own + _Count(self._inside, self._sizes).of(data, self._root)
        return most


class _Count:
    """Walks through data as a decoder does; stops when it is sure that there is too much."""

    def __init__(self, inside: dict[str, dict[int, Descriptor]], sizes: dict[str, int]) -> None:
        self._inside = inside
        self._sizes = sizes
        self._total = 0
        self._steps = 0

    def of(self, data: bytes, type_: Descriptor) -> int:
        """The weight of all messages inside of one; of data that is none, up to where it is."""
        with suppress(IndexError):  # cut off: the decoder will say so
            self._walk(data, 0, len(data), type_, 0)
        return self._total if self._steps <= _MOST_STEPS else HEAVIEST + 1

    def _walk(self, data: bytes, at: int, end: int, type_: Descriptor | None, depth: int) -> int:
        inside = {} if type_ is None else self._inside.get(type_.full_name, {})
        while at < end and self._total <= HEAVIEST and depth <= _DEEPEST:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                break
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            inner = inside.get(number)
            if kind in (_TEXT, _GROUP) and inner is not None:
                self._total += self._sizes[inner.full_name]
            if kind == _TEXT:
                length, at = _varint(data, at)
                if inner is not None:
                    self._walk(data, at, min(at + length, end), inner, depth + 1)
                at += length
            elif kind == _GROUP:
                at = self._walk(data, at, end, inner, depth + 1)
            elif kind == _GROUP_END:
                return at
            elif kind == 0:
                _, at = _varint(data, at)
            else:
                at += _FIXED.get(kind, end)
        return at


def _messages(root: Descriptor) -> Iterator[tuple[Descriptor, FieldDescriptor, Descriptor]]:
    """Each field that holds messages, with the type around it and the type inside."""
    todo, seen = [root], {root.full_name}
    while todo:
        outer = todo.pop()
        for field in outer.fields:
            if field.message_type is not None:
                yield outer, field, field.message_type
                if field.message_type.full_name not in seen:
                    seen.add(field.message_type.full_name)
                    todo.append(field.message_type)


def _tag(field: FieldDescriptor) -> bytes:
    kind = _GROUP if field.type == FieldDescriptor.TYPE_GROUP else _TEXT
    number, made = field.number << 3 | kind, bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return number, at
