"""Protobuf in a worker: a batch of values -> an array of rows, and back, column by column.

Spark's own Protobuf functions take one message type that is fixed in the plan, and descriptors
with it; here each value says its schema and its place in there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from mainstem.engine.spark_errors import task_failure
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.arrow_types import arrow_type
from mainstem.schemas.protobuf_codec import message_encoder
from mainstem.schemas.protobuf_read import MessageReader, ProtobufReading, reader
from mainstem.schemas.protobuf_weight import HEAVIEST
from mainstem.schemas.protobuf_write import NotWritable
from mainstem.vocabulary import HIDDEN_PREFIX, Column

READ = HIDDEN_PREFIX + "read"
"""The last field of every row that was read: true."""

_USUAL = wire.HEADER_BYTES + len(wire.FIRST_MESSAGE)
_AT_ONCE = 1000
"""Messages that are held at the same time, if they are not too heavy together."""


def message_rows(
    values: pa.Array, known: Mapping[int, ProtobufReading], columns: tuple[Column, ...]
) -> pa.Array:
    """A row for each value, its last field true; null for a value that cannot be read."""
    readers = _Readers(known, columns)
    pieces, held = [], _Held(readers)
    for begin in range(0, len(values), _AT_ONCE):
        for value in values.slice(begin, _AT_ONCE).to_pylist():
            if held.full:
                pieces.append(held.rows())
                held = _Held(readers)
            held.add(value)
    return pa.concat_arrays([*pieces, held.rows()])


def message_values(
    rows: pa.Array, reading: ProtobufReading, columns: tuple[Column, ...], name: str
) -> pa.Array:
    """The value of each row, in the first message of a schema; of the object with that name."""
    head, encode = wire.header(reading.id) + wire.FIRST_MESSAGE, _encoder(reading, columns)
    try:
        return pa.array([head + encode(row) for row in plain(rows)], pa.binary())
    except NotWritable as error:
        failure = MainstemError("ROW_NOT_WRITABLE", name=name, problem=str(error))
        raise RuntimeError(task_failure(failure)) from None


@lru_cache(maxsize=1000)
def _encoder(reading: ProtobufReading, columns: tuple[Column, ...]) -> Any:
    return message_encoder(reading, columns)


class _Readers:
    """The readers of the message types that a batch has, each found once."""

    def __init__(self, known: Mapping[int, ProtobufReading], columns: tuple[Column, ...]) -> None:
        fields = [pa.field(column.name, arrow_type(column.type)) for column in columns]
        self.type = pa.struct([*fields, pa.field(READ, pa.bool_())])
        self._known = known
        self._columns = columns
        self._found: dict[bytes, MessageReader | None] = {}

    def find(self, value: bytes) -> tuple[MessageReader | None, int]:
        """The reader of a value, and where its data begins; None where nothing can read it."""
        usual = self._found.get(value[:_USUAL])
        if usual is not None:
            return usual, _USUAL
        try:
            id = wire.schema_id(value)
            indexes, begin = wire.message_indexes(value)
        except wire.NotFramed:
            return None, 0
        head = value[:begin]
        if head not in self._found:
            reading = self._known.get(id)
            made = None if reading is None else reader(reading, indexes, self._columns)
            self._found[head] = made if isinstance(made, MessageReader) else None
        return self._found[head], begin

    def rows(self, found: MessageReader, messages: list[Message]) -> pa.Array:
        """Rows of messages of one type; raises ValueError when one of them does not fit."""
        made = [
            pa.array(list(map(get, messages)), field.type)
            for get, field in zip(found.columns, self.type, strict=False)
        ]
        return pa.StructArray.from_arrays(
            [*made, pa.repeat(True, len(messages))], fields=list(self.type)
        )


class _Held:
    """Messages of some values that follow each other, until there are enough of them."""

    def __init__(self, readers: _Readers) -> None:
        self._readers = readers
        self._count = 0
        self._weight = 0
        self._by_type: dict[int, tuple[MessageReader, list[int], list[Message]]] = {}

    @property
    def full(self) -> bool:
        """True when its rows should be made before more is held."""
        return self._count >= _AT_ONCE or self._weight > HEAVIEST

    def add(self, value: bytes | None) -> None:
        """One more value; what cannot be read is only counted."""
        place = self._count
        self._count += 1
        found, begin = (None, 0) if value is None else self._readers.find(value)
        if value is None or found is None:
            return
        data = value[begin:]
        weight = found.weights.of(data)
        if weight > HEAVIEST:
            return
        try:
            message = found.parse(data)
        except DecodeError:
            return
        self._weight += weight
        _, places, messages = self._by_type.setdefault(id(found), (found, [], []))
        places.append(place)
        messages.append(message)

    def rows(self) -> pa.Array:
        """A row for each value, null for those that could not be read."""
        made = pa.array([], self._readers.type)
        at: list[int | None] = [None] * self._count
        for found, places, messages in self._by_type.values():
            kept, rows = _fitting(found, places, messages, self._readers)
            for number, place in enumerate(kept, len(made)):
                at[place] = number
            made = pa.concat_arrays([made, rows]) if len(made) else rows
        whole = at == list(range(self._count))
        return made if whole else made.take(pa.array(at, pa.int64()))


def _fitting(
    found: MessageReader, places: list[int], messages: list[Message], readers: _Readers
) -> tuple[list[int], pa.Array]:
    """The rows of those that fit, and their places."""
    try:
        return places, readers.rows(found, messages)
    except ValueError:
        pass  # one or more do not
    kept, good = [], []
    for place, message in zip(places, messages, strict=True):
        try:
            for get in found.columns:
                get(message)
        except ValueError:
            continue
        kept.append(place)
        good.append(message)
    return kept, readers.rows(found, good)


def plain(values: pa.Array) -> list[Any]:
    """The values of an array as `protobuf_write` takes them: times and dates are numbers."""
    type_ = values.type
    if pa.types.is_timestamp(type_):
        return list(values.cast(pa.int64()).to_pylist())
    if pa.types.is_date(type_):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        columns = [plain(column) for column in values.flatten()]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        there = values.is_valid().to_pylist()
        return [row if is_there else None for row, is_there in zip(rows, there, strict=True)]
    if pa.types.is_map(type_):
        return _cut(values, list(zip(plain(values.keys), plain(values.items), strict=True)))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _cut(values, plain(values.values))
    return list(values.to_pylist())


def _cut(values: pa.Array, items: list[Any]) -> list[Any]:
    """What an array of lists holds, of the items of all of them."""
    ends = values.offsets.to_pylist()
    there = values.is_valid().to_pylist()
    return [items[ends[n] : ends[n + 1]] if is_there else None for n, is_there in enumerate(there)]
