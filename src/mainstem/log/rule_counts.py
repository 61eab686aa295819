"""How often the rules of each object were broken: a compacted topic with a record per writer.

Of a declared stream the keeper of the quarantine writes a count, in the transaction in which it
also keeps the records and moves its position. So each record that breaks a rule is counted exactly
once: however often a range is read, however many flows read the stream, and whether the record is
kept or dropped. Of what a flow writes, the flow counts, by the numbers of its batches; APPLY LATE
counts in the transaction of its corrections. A declared table is counted where it is served.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import QUARANTINE_COUNTS_TOPIC, Offsets, Record

_OF = "|"
"""Stands in no name."""


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Of one writer: by rule, how many records have broken it up to a position."""

    records: Mapping[str, int] = field(default_factory=dict)
    at: Mapping[str, Offsets] = field(default_factory=dict)
    """By topic; of a flow the last batch, as partition 0 of its checkpoint."""

    def and_more(self, records: Mapping[str, int], at: Mapping[str, Offsets]) -> RuleCounts:
        """The counts with those of a further range."""
        names = {**self.records, **records}
        sums = {name: self.records.get(name, 0) + records.get(name, 0) for name in names}
        return RuleCounts(sums, {**self.at, **at})

    def of_another(self, position: Mapping[str, Offsets]) -> bool:
        """True when these are not the topics of the counts, or were made anew since."""
        return any(
            offset > position.get(topic, {}).get(partition, 0)
            for topic, offsets in self.at.items()
            for partition, offset in offsets.items()
        )


def writer_of(name: str, flow: str, *part: str) -> str:
    """Under which name a flow, or a part of it, counts for the object that it writes."""
    return _OF.join((name, flow, *part))


def counted_for(writer: str) -> tuple[str, str | None]:
    """The object that a writer counts for, and its flow; None: it is the keeper's."""
    name, *flow = writer.split(_OF)
    return name, flow[0] if flow else None


def read_counted(record: Record) -> tuple[str, RuleCounts] | None:
    """A record of the topic: the writer, and its counts."""
    if record.key is None or record.value is None:
        return None
    return record.key.decode("utf-8", "replace"), _decode(record.value)


def read_rule_counts(connection: Connection, admin: Admin, writer: str) -> RuleCounts:
    """What a writer has counted (a stream's own name: the keeper); nothing when there is none."""
    begin = admin.begin_offsets(QUARANTINE_COUNTS_TOPIC)
    # the broker marks a commit a moment after it has answered: read up to the last record written
    end = admin.end_offsets(QUARANTINE_COUNTS_TOPIC, committed=False)
    found = RuleCounts()
    for records in read_range(connection, QUARANTINE_COUNTS_TOPIC, begin, end):
        for record in records:
            said = read_counted(record)
            if said is not None and said[0] == writer:
                found = said[1]
    return found


def counted(writer: str, counts: RuleCounts) -> Outgoing:
    """The record that says so."""
    return Outgoing(writer.encode(), _encode(counts), partition=0)


def _encode(counts: RuleCounts) -> bytes:
    return json.dumps(asdict(counts)).encode()


def _decode(data: bytes) -> RuleCounts:
    document = json.loads(data)
    at = {t: {int(p): o for p, o in parts.items()} for t, parts in document["at"].items()}
    return RuleCounts(document["records"], at)
