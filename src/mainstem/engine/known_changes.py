"""Which versions of captured changes an engine has met: they have their schemas in themselves."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.schemas.changes import (
    BEGIN,
    PAYLOAD,
    ChangeReading,
    NotAChange,
    beginning,
    change_reading,
)

Known = tuple[tuple[ChangeReading, ...], frozenset[bytes]]
"""How records are read, by what they begin with; and with what others begin that are no changes."""
_MOST = 100
"""Of one read: more of them are met in several rounds."""
_NEWEST = 20
"""So many offsets of each partition; some of them are marks of transactions."""


class KnownChanges:
    """What values of captured changes begin with, by topic. Any thread may call."""

    def __init__(self) -> None:
        self._met: dict[str, dict[bytes, None]] = {}

    def of_stream(self, definition: Definition) -> Known:
        """All that were met in the definition's topic; SOURCE_CHANGED for one that does not fit."""
        return _known(definition, list(self._met.get(definition.topic, {})))

    def of_records(self, records: DataFrame, definition: Definition) -> Known:
        """Those that these records have, in Kafka's columns."""
        return _known(definition, _beginnings_in(records))

    def meet(self, topic: str, records: DataFrame) -> None:
        """Takes up what records of a topic begin with, in Kafka's columns."""
        self._met.setdefault(topic, {}).update(dict.fromkeys(_beginnings_in(records)))

    def look(self, topic: str, connection: Connection, admin: Admin) -> None:
        """Takes up what the newest records of a topic begin with.

        A plan that knows nothing yet would only fail its first batch, and be made again.
        """
        end = admin.end_offsets(topic)
        start = {p: max(0, offset - _NEWEST) for p, offset in end.items()}
        met = self._met.setdefault(topic, {})
        for records in read_range(connection, topic, start, end):
            for record in records:
                try:
                    met[beginning(record.value or b"")] = None
                except NotAChange:
                    continue


def _known(definition: Definition, beginnings: list[bytes]) -> Known:
    readings, refused = [], set()
    for begins in reversed(beginnings):  # the newest is what most records have
        try:
            readings.append(change_reading(begins, definition))
        except NotAChange:
            refused.add(begins)
    return tuple(readings), frozenset(refused)


def _beginnings_in(records: DataFrame) -> list[bytes]:
    text = F.col("value").cast("string")
    behind = PAYLOAD.decode()
    framed = text.startswith(BEGIN.decode()) & text.contains(behind)
    starts = F.substring_index(text, behind, 1).alias("start")
    found = records.where(framed).select(starts).distinct().limit(_MOST).collect()
    return [row.start.encode() + PAYLOAD for row in found]
