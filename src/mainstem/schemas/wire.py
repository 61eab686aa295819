"""The registry's wire format: a zero byte, the schema's id in four bytes, then the data."""

from __future__ import annotations

import struct

MAGIC = 0
HEADER_BYTES = 5
_HEADER = struct.Struct(">BI")


class NotFramed(ValueError):
    """Bytes that do not begin with a schema's id; the text says why."""


def header(id: int) -> bytes:
    """What stands before data of that schema."""
    return _HEADER.pack(MAGIC, id)


def schema_id(data: bytes) -> int:
    """The id of the schema that the data was written with."""
    if len(data) < HEADER_BYTES:
        message = f"it has {len(data)} bytes, too few for a schema's id"
        raise NotFramed(message)
    magic, id = _HEADER.unpack_from(data)
    if magic != MAGIC:
        message = f"it begins with the byte {magic}, not with 0 and a schema's id"
        raise NotFramed(message)
    return int(id)


FIRST_MESSAGE = b"\0"
"""Between the header and Protobuf's data: which message of the schema it is; here the first."""
_MOST_INDEXES = 64


def message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of its schema Protobuf's data is, and where the data begins.

    `(1, 0)` is the first message inside the second one.
    """
    count, at = _zigzag(data, HEADER_BYTES)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        message = f"it says that {count} numbers name its message"
        raise NotFramed(message)
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A number at a place, as Protobuf writes signed ones, and where it ends."""
    number = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    message = "the numbers that name its message are cut off"
    raise NotFramed(message)


def index_forms(indexes: tuple[int, ...]) -> tuple[bytes, ...]:
    """The bytes that name a message, in all the ways in which `message_indexes` reads them."""
    numbers = (len(indexes), *indexes)
    data = b"".join(_unsigned(number << 1) for number in numbers)
    return (FIRST_MESSAGE, data) if indexes == (0,) else (data,)


def _unsigned(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
