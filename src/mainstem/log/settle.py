"""What becomes of records in quarantine: written again to their topics, or discarded, once.

A record is `held` until it is settled. Settling writes the record again (or not) and its state,
under its id, to `_mainstem.quarantine.states`, in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mainstem.crash import crash_point
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.quarantine import Quarantined
from mainstem.vocabulary import QUARANTINE_STATES_TOPIC, Record

REPLAY_HEADER = "mainstem-replay-of"
TRANSACTIONAL_ID = f"mainstem.{QUARANTINE_STATES_TOPIC}"
_PARTITION = 0
_CRASH_NAME = "quarantine"


class State(StrEnum):
    """What became of a record."""

    HELD = "held"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class Settlement:
    """A record and what is to become of it."""

    entry: Quarantined
    state: State
    record: Outgoing | None = None
    """What is written to the topic that it came from; None when it is discarded."""
    changed: bool = False
    """True when key or value are not the original ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a call of `settle` did."""

    ids: frozenset[int]
    """The records that it settled; the others were settled before by somebody else."""
    position: int
    """Offset behind the states, in the topic of the states."""


def replay_of(
    entry: Quarantined, key: bytes | None, value: bytes | None, partitions: int
) -> Settlement:
    """The record written again to its own topic: with its time, its headers, and where it was.

    It goes to its own partition, so that it stands behind all others of its key that are there,
    whoever has written them; with another key, or when the topic was made anew with fewer
    partitions, the key chooses.
    """
    origin = entry.origin
    keyed_alike = key == origin.key and 0 <= origin.partition < partitions
    record = Outgoing(
        key,
        value,
        partition=origin.partition if keyed_alike else None,
        timestamp=origin.timestamp if origin.timestamp > 0 else None,
        headers=(*origin.headers, (REPLAY_HEADER, entry.place.encode())),
    )
    changed = (key, value) != (origin.key, origin.value)
    return Settlement(entry, State.REPLAYED, record, changed)


def settle(
    connection: Connection, settlements: Sequence[Settlement], known: int, at: float
) -> Settled:
    """Settle records that are held; in the order of their original offsets.

    `known` is the offset in the topic of the states up to which the caller has seen that they are
    held. The steps, and what a crash after each one means:

    1. Take over the transactional id, of which there is one for all: from here on no older call,
       in whatever process, can commit, and what one left is finished. Crash: nothing was written.
    2. Read the states behind `known`: what was settled meanwhile is left out. Crash: as after 1.
    3. In one transaction, write the records and their states. Crash: the transaction is open, no
       reader of committed records sees any of it, and the next call, or the broker soon, aborts it.
    4. Commit. Crash before the broker has it: as after 3; behind that: records and states are
       visible, and step 2 of the next call leaves them out.

    QUARANTINE_BUSY: another call took over in step 3 or 4. That, or LOG_UNREACHABLE in step 4,
    leaves the outcome to be read from the states; a second call with the same records is safe.
    """
    # 1.
    producer = TransactionalProducer(connection, TRANSACTIONAL_ID)
    try:
        crash_point("after_init", _CRASH_NAME, 0)
        # 2.
        end = _end(connection)
        taken = _settled_between(connection, known, end)
        left = [s for s in settlements if s.entry.id not in taken]
        if not left:
            return Settled(frozenset(), end)
        # 3.
        with producer.transaction() as transaction:
            for topic, record in _records(left):
                transaction.send(topic, [record])
            crash_point("after_produce", _CRASH_NAME, 0)
            transaction.send(QUARANTINE_STATES_TOPIC, [_state_record(s, at) for s in left])
            transaction.flush()
            crash_point("after_states", _CRASH_NAME, 0)
        # 4. is the end of the block
        crash_point("after_commit", _CRASH_NAME, 0)
    except MainstemError as error:
        if error.code == "WRITER_FENCED":
            raise MainstemError("QUARANTINE_BUSY") from None
        raise
    finally:
        producer.close()
    last = transaction.deliveries.last[QUARANTINE_STATES_TOPIC][_PARTITION]
    return Settled(frozenset(s.entry.id for s in left), last + 1)


def read_state(record: Record) -> tuple[int, dict[str, Any]] | None:
    """The id and the state in a record of the states' topic; None for what is not ours."""
    try:
        document = json.loads(record.value or b"")
        State(document["state"])
        return int(record.key or b""), document
    except (ValueError, KeyError, TypeError):
        return None


def _records(settlements: Sequence[Settlement]) -> list[tuple[str, Outgoing]]:
    """What is written, and where: in order, and once even when two readers had refused it."""
    records: dict[tuple[str, int, int, int], Outgoing] = {}
    for settlement in sorted(settlements, key=_order):
        if settlement.record is not None:
            origin = settlement.entry.origin
            records.setdefault((*_place(origin), origin.timestamp), settlement.record)
    return [(place[0], record) for place, record in records.items()]


def _order(settlement: Settlement) -> tuple[str, int, int, int]:
    return (*_place(settlement.entry.origin), settlement.entry.id)


def _place(origin: Record) -> tuple[str, int, int]:
    return origin.topic, origin.partition, origin.offset


def _state_record(settlement: Settlement, at: float) -> Outgoing:
    document = {
        "state": settlement.state,
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
        "changed": settlement.changed,
        "origin": settlement.entry.place,
    }
    key = str(settlement.entry.id).encode()
    return Outgoing(key, json.dumps(document).encode(), partition=_PARTITION)


def _end(connection: Connection) -> int:
    admin = Admin(connection)
    try:
        return admin.end_offsets(QUARANTINE_STATES_TOPIC, committed=False)[_PARTITION]
    finally:
        admin.close()


def _settled_between(connection: Connection, known: int, end: int) -> set[int]:
    start, stop = {_PARTITION: known}, {_PARTITION: end}
    return {
        state[0]
        for records in read_range(connection, QUARANTINE_STATES_TOPIC, start, stop)
        for record in records
        if (state := read_state(record)) is not None
    }
