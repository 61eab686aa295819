"""Records for which a Python function failed: kept in the quarantine, and left out from then on.

A batch in which a function raises fails as a whole; no task with such a record has committed
anything. Then, before the flow starts again:

1. The records that the error names go into the quarantine in one transaction, each with the flow's
   id. Crash before: nothing was kept, the batch fails again and names them again. Crash behind:
   they are kept.
2. The flow starts and reads from the quarantine which records were kept for it. It leaves them out
   where it reads its input, so the replayed batch is the same without them.

So a record is either in the result or in the quarantine, exactly once. A task of the batch that
had committed before is not written again (its token is there), and had none of these records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.engine.aside import STAGE
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import TransactionalProducer
from mainstem.log.quarantine import quarantined
from mainstem.vocabulary import QUARANTINE_TOPIC, Clock, Record, group_of

Excluded = Mapping[int, frozenset[int]]
"""Partition -> offsets of the one input that a flow leaves out."""


def left_out(
    entry: Entry, inputs: Sequence[Definition], connection: Connection, admin: Admin
) -> Excluded:
    """The records of its input topic that were kept for a flow in its present generation."""
    query = entry.definition.query
    if query is None or not query.functions or not _one_topic(inputs):
        return {}
    [topic] = [source.topic for source in inputs]
    wanted = {"stage": STAGE, "flow": entry.flow_id, "topic": topic}
    found: dict[int, set[int]] = {}
    # ends what an engine that crashed left open: what it kept is final after this
    TransactionalProducer(connection, _writer(entry)).close()
    begin = admin.begin_offsets(QUARANTINE_TOPIC)
    # the broker marks a commit a moment after it has answered: read up to the last record written
    end = admin.end_offsets(QUARANTINE_TOPIC, committed=False)
    for records in read_range(connection, QUARANTINE_TOPIC, begin, end):
        for record in records:
            # what the record itself had in headers may be no text
            facts = {n: (value or b"").decode("utf-8", "replace") for n, value in record.headers}
            if wanted.items() <= facts.items():
                found.setdefault(int(facts["partition"]), set()).add(int(facts["offset"]))
    return {partition: frozenset(offsets) for partition, offsets in found.items()}


def set_aside(
    error: MainstemError,
    entry: Entry,
    inputs: Sequence[Definition],
    connection: Connection,
    clock: Clock,
) -> int:
    """Keep the records of the topic that FUNCTION_FAILED names; gives how many, maybe none."""
    if error.code != "FUNCTION_FAILED" or not _one_topic(inputs):
        return 0
    [topic] = [source.topic for source in inputs]
    records = {
        (partition, offset): problem
        for problem, places in error.params.get("records", {}).items()
        for partition, offset in places
    }
    kept = []
    for record in _read(connection, topic, records):
        problem = records[record.partition, record.offset]
        failure = MainstemError(error.code, **{**error.params, "record": "", "problem": problem})
        kept.append(
            quarantined(
                record,
                stage=STAGE,
                reader=entry.name,
                code=failure.code,
                cause=failure.message,
                at=clock.now(),
                flow=entry.flow_id,
            )
        )
    if not kept:
        return 0
    producer = TransactionalProducer(connection, _writer(entry))
    try:
        with producer.transaction() as transaction:
            transaction.send(QUARANTINE_TOPIC, kept)
    finally:
        producer.close()
    return len(kept)


def _one_topic(inputs: Sequence[Definition]) -> bool:
    """True when partition and offset alone tell a record."""
    return len(inputs) == 1 and inputs[0].pattern is None


def _writer(entry: Entry) -> str:
    """The transactional id under which a flow's records are put aside."""
    return group_of(f"function.{entry.flow_id}")


def _read(
    connection: Connection, topic: str, places: Mapping[tuple[int, int], str]
) -> Iterator[Record]:
    """The records at these places, whole."""
    partitions = {partition for partition, _ in places}
    offsets = {p: [o for q, o in places if q == p] for p in partitions}
    start = {p: min(found) for p, found in offsets.items()}
    end = {p: max(found) + 1 for p, found in offsets.items()}
    for records in read_range(connection, topic, start, end):
        yield from (r for r in records if (r.partition, r.offset) in places)
