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
