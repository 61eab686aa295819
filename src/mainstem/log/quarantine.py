"""The quarantine: records that could not be used, kept whole, with where they came from and why.

Key and value are the original bytes. Everything else is in headers, each a UTF-8 text:
`topic`, `partition`, `offset`, `timestamp` (of the original record), `stage` (source, decode, time,
rule, function, target or view), `object` (the stream, table or sink that was reading), `code` and
`cause`, `at` (when it was put here), and `flow` (with the generation) when only that flow leaves it
out.
The original headers are there, too, with `original.` before their names, unless they are so large
that the record would not fit; the cause says so then.

The topic has one partition, and a record's id is its offset in it. What became of a record is in
a compacted topic beside it, by id; see `settle`. How often rules were broken is in another; see
`rule_counts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import (
    QUARANTINE_COUNTS_TOPIC,
    QUARANTINE_STATES_TOPIC,
    QUARANTINE_TOPIC,
    Record,
)

_LONGEST_CAUSE = 1000
_ORIGINAL = "original."
_MOST_HEADER_BYTES = 8192
_UNKNOWN = "?"
_STATES_CONFIG = {
    "cleanup.policy": "compact",
    # only closed segments are compacted; small ones keep the start of a gateway quick
    "segment.bytes": str(16 * 1024 * 1024),
}


def ensure_quarantine(admin: Admin, replication_factor: int, max_record_bytes: int) -> None:
    """Makes its topics when they are missing.

    The records stay for ever, and the largest one fits in together with its headers.
    """
    config = {"retention.ms": "-1", "max.message.bytes": str(max_record_bytes + 16_384)}
    admin.ensure_topic(TopicSpec(QUARANTINE_TOPIC, 1, replication_factor, config))
    for topic in (QUARANTINE_STATES_TOPIC, QUARANTINE_COUNTS_TOPIC):
        admin.ensure_topic(TopicSpec(topic, 1, replication_factor, _STATES_CONFIG))


def quarantined(
    record: Record,
    *,
    stage: str,
    reader: str,
    code: str,
    cause: str,
    at: float,
    flow: str | None = None,
) -> Outgoing:
    """The record as it goes into the quarantine."""
    original = tuple((_ORIGINAL + name, value) for name, value in record.headers)
    size = sum(len(name.encode()) + len(value or b"") + 8 for name, value in original)
    if size > _MOST_HEADER_BYTES:
        cause, original = f"{cause} (its headers, {size} bytes, are not kept)", ()
    facts = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp),
        "stage": stage,
        "object": reader,
        "code": code,
        "cause": cause[:_LONGEST_CAUSE],
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
    }
    if flow is not None:
        facts["flow"] = flow
    headers = tuple((name, value.encode()) for name, value in facts.items())
    return Outgoing(key=record.key, value=record.value, headers=headers + original)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record of the quarantine as it was put there."""

    id: int
    origin: Record
    """As it was in its own topic."""
    reader: str
    """The stream or table that was reading it."""
    stage: str
    code: str
    cause: str
    at: str
    """When it was put here, ISO 8601."""

    @property
    def place(self) -> str:
        """Where it came from: `topic/partition/offset`."""
        return f"{self.origin.topic}/{self.origin.partition}/{self.origin.offset}"


def read_quarantined(record: Record) -> Quarantined:
    """A record of the quarantine topic, read back."""
    facts: dict[str, str] = {}
    original = []
    for name, value in record.headers:
        if name.startswith(_ORIGINAL):
            original.append((name.removeprefix(_ORIGINAL), value))
        elif value is not None:
            facts[name] = value.decode("utf-8", "replace")
    origin = Record(
        topic=facts.get("topic", ""),
        partition=_number(facts.get("partition"), -1),
        offset=_number(facts.get("offset"), -1),
        key=record.key,
        value=record.value,
        timestamp=_number(facts.get("timestamp"), record.timestamp),
        headers=tuple(original),
    )
    return Quarantined(
        id=record.offset,
        origin=origin,
        reader=facts.get("object", _UNKNOWN),
        stage=facts.get("stage", _UNKNOWN),
        code=facts.get("code", _UNKNOWN),
        cause=facts.get("cause", _UNKNOWN),
        at=facts.get("at", ""),
    )


def _number(text: str | None, otherwise: int) -> int:
    # whoever may write to the topic can put anything there: it is shown, not a reason to fail
    try:
        return otherwise if text is None else int(text)
    except ValueError:
        return otherwise
