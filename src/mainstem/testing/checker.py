"""The check of "exactly once": written once, the same after every disaster.

Functions compare what was sent, what the log holds and what is served, and give the differences
in words; no words mean that all is as it must be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.testing.load import Numbered, Sent
from mainstem.vocabulary import Record

T = TypeVar("T")
Key = TypeVar("Key")
Change = tuple[str, dict[str, Any] | None]
_SHOWN = 5


class CommittedTopic(Generic[T]):
    """What a reader of committed records sees of a topic; each look reads only what is new."""

    def __init__(self, connection: Connection, topic: str, decode: Callable[[Record], T]) -> None:
        self._connection = connection
        self._topic = topic
        self._decode = decode
        self._read: dict[int, int] = {}
        self._found: dict[int, list[T]] = {}

    def look(self) -> dict[int, list[T]]:
        """All records up to now, by partition and in their order."""
        admin = Admin(self._connection)
        try:
            start = {**admin.begin_offsets(self._topic), **self._read}
            end = admin.end_offsets(self._topic)
        finally:
            admin.close()
        for records in read_range(self._connection, self._topic, start, end, committed=True):
            for record in records:
                self._found.setdefault(record.partition, []).append(self._decode(record))
        self._read = end
        return self._found


def numbered(record: Record) -> Numbered:
    """A record of a load, or of its copy."""
    row = json.loads(record.value or b"{}")
    return Numbered(row["k"], row["seq"], row["id"])


def change(record: Record) -> Change:
    """A record of a table's topic: its key, and its row, or None when that is deleted."""
    row = None if record.value is None else json.loads(record.value)
    return (record.key or b"").decode(), row


def fold(changes: Mapping[int, Iterable[Change]]) -> dict[str, dict[str, Any]]:
    """The rows of a table: the last change of each key."""
    last = {key: row for of_partition in changes.values() for key, row in of_partition}
    return {key: row for key, row in last.items() if row is not None}


def check_input(sent: Sent, found: Mapping[int, Sequence[Numbered]]) -> list[str]:
    """The account of the load against the topic that it wrote."""
    ids = Counter(record.id for record in _all(found))
    known = sent.acknowledged | sent.uncertain
    return [
        *_problem("acknowledged, but not in the log", sent.acknowledged - ids.keys()),
        *_problem("in the log, but never sent", ids.keys() - known),
        *_problem("twice in the input", _twice(ids)),
        *_problem("out of order in the input", _out_of_order(found)),
    ]


def check_copy(
    sent: Sent, source: Mapping[int, Sequence[Numbered]], copy: Mapping[int, Sequence[Numbered]]
) -> list[str]:
    """A stream that copies the load's records, against the account and against its source."""
    ids = Counter(record.id for record in _all(copy))
    known = sent.acknowledged | sent.uncertain
    originals = {record.id: record for record in _all(source)}
    changed = [r.id for r in _all(copy) if originals.get(r.id, r) != r]
    return [
        *_problem("lost: acknowledged, but not in the output", sent.acknowledged - ids.keys()),
        *_problem("lost: in the input, but not in the output", originals.keys() - ids.keys()),
        *_problem("doubled: twice in the output", _twice(ids)),
        *_problem("invented: in the output, but never sent", ids.keys() - known),
        *_problem("changed on the way", changed),
        *_problem("out of order in the output", _out_of_order(copy)),
    ]


def check_rows(where: str, expected: Mapping[Key, Any], found: Mapping[Key, Any]) -> list[str]:
    """A table against what it should be; both by key."""
    missing = expected.keys() - found.keys()
    wrong = [k for k in expected.keys() & found.keys() if expected[k] != found[k]]
    return [
        *_problem(f"rows missing in {where}", map(str, missing)),
        *_problem(f"rows too many in {where}", map(str, found.keys() - expected.keys())),
        *_problem(
            f"wrong rows in {where}",
            [f"{k}: {found[k]}, should be {expected[k]}" for k in wrong],
        ),
    ]


def _all(found: Mapping[int, Sequence[Numbered]]) -> Iterator[Numbered]:
    for records in found.values():
        yield from records


def _twice(ids: Counter[str]) -> list[str]:
    return [name for name, count in ids.items() if count > 1]


def _out_of_order(found: Mapping[int, Sequence[Numbered]]) -> list[str]:
    """Records that do not stand behind all smaller numbers of their key in their partition."""
    wrong = []
    for records in found.values():
        last: dict[str, int] = {}
        for record in records:
            if record.seq <= last.get(record.k, -1):
                wrong.append(record.id)
            last[record.k] = max(record.seq, last.get(record.k, -1))
    return wrong


def _problem(what: str, names: Iterable[str]) -> list[str]:
    some = sorted(names)
    if not some:
        return []
    shown = ", ".join(some[:_SHOWN])
    return [f"{len(some)} {what}: {shown}{', ...' if len(some) > _SHOWN else ''}"]
