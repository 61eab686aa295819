"""The log as one case sees it: its rows, its late records, and what a planner asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.definitions.patterns import TopicPattern
from mainstem.engine.quarantine import Report, parts_of
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.late import Ledger
from mainstem.schemas.codec import Codec
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.vocabulary import Offsets


class CaseLedger(Ledger):
    """The ledger of late data without what other cases have left in it."""

    def __init__(self, connection: Connection, admin: Admin, prefix: str) -> None:
        super().__init__(connection, admin)
        self._prefix = prefix

    def mine(self, document: Mapping[str, Any]) -> bool:
        """True for entries of this case's topics."""
        return str(document.get("topic", self._prefix)).startswith(self._prefix)


class Facts:
    """What the planner asks of the log."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def records(self, topic: str) -> int | None:
        """How many records a topic holds; None when there is none."""
        if self._admin.topic(topic) is None:
            return None
        begin, end = self._admin.begin_offsets(topic), self._admin.end_offsets(topic)
        return sum(end[p] - begin[p] for p in end)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None when there is none."""
        info = self._admin.topic(topic)
        return None if info is None else info.partitions

    def ends(self, topic: str) -> Offsets:
        """Where the partitions of a topic end; empty when there is none."""
        return {} if self._admin.topic(topic) is None else self._admin.end_offsets(topic)

    def matching(self, pattern: TopicPattern) -> list[str]:
        """The topics that a pattern stands for."""
        return self._admin.matching(pattern)


def key_bytes(
    definition: Definition, row: Mapping[str, Any] | None, key: Any, codec: Codec
) -> bytes | None:
    """The key of an event's record: bytes or a text as they are, columns in the key's format."""
    if isinstance(key, (str, bytes)):
        return key.encode() if isinstance(key, str) else key
    columns = row if key is None else key
    if definition.keys is None or columns is None:
        text = _key_text(definition, columns)
        return None if text is None else text.encode()
    fields = {name: json.dumps(columns.get(name), default=str) for name in definition.key}
    return codec.writer(definition.keys)(fields)


def _key_text(definition: Definition, row: Mapping[str, Any] | None) -> str | None:
    if row is None or not definition.key:
        return None
    if definition.kind is Kind.TABLE or len(definition.key) > 1:
        return json.dumps({name: row.get(name) for name in definition.key}, default=str)
    value = row.get(definition.key[0])
    return None if value is None else str(value)


def value_of(
    definition: Definition | None,
    row: Mapping[str, Any],
    schema: str | None,
    codec: Codec,
    registry: MemoryRegistry,
) -> bytes:
    """The value of a row's record: by a schema if one is given, else in the stream's format.

    JSON takes any row, also one that does not fit.
    """
    if schema is not None:
        return written_by(registry, schema, row)
    if definition is None or definition.format is Format.JSON:
        return json.dumps(row, default=str).encode()
    fields = {name: json.dumps(value, default=str) for name, value in row.items()}
    return codec.writer(definition)(fields)


def covered(admin: Admin, report: Report) -> bool:
    """True when the keeper of the quarantine has been through all that a report tells of."""
    there = admin.all_end_offsets(report.end)
    for part in parts_of(report.stream):
        try:
            kept = {topic: admin.group_offsets(part.group, topic) for topic in there}
        except MainstemError:  # a broker that has just started may not know its groups yet
            return False
        ends = ((topic, *at) for topic in there for at in report.end[topic].items())
        if not all(kept[topic].get(partition, 0) >= end for topic, partition, end in ends):
            return False
    return True


def row_of(value: bytes) -> dict[str, Any]:
    """A record's row, decimals with all their digits."""
    row: dict[str, Any] = json.loads(value, parse_float=Decimal)
    return row
