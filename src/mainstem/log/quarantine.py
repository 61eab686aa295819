"""The quarantine: records that could not be used, kept whole, with where they came from and why.

Key and value are the original bytes. Everything else is in headers, each a UTF-8 text:
`topic`, `partition`, `offset`, `timestamp` (of the original record), `stage` (decode, function or
view), `object` (the stream or table that was reading), `code` and `cause`, `at` (when it was put
here), and `flow` (with the generation) when only that flow leaves the record out.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

_LONGEST_CAUSE = 1000


def ensure_quarantine(admin: Admin, replication_factor: int, max_record_bytes: int) -> None:
    """Makes the topic when it is missing. It holds the largest record and its headers, for ever."""
    config = {"retention.ms": "-1", "max.message.bytes": str(max_record_bytes + 16_384)}
    admin.ensure_topic(TopicSpec(QUARANTINE_TOPIC, 1, replication_factor, config))


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
    return Outgoing(key=record.key, value=record.value, headers=headers)
