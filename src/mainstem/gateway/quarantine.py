"""The quarantine for the API: counts, pages of records, one record. See `replay` for changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.errors import MainstemError
from mainstem.gateway.contracts import Hidden
from mainstem.gateway.quarantine_arrivals import Arrived
from mainstem.gateway.quarantine_follower import QuarantineFollower
from mainstem.gateway.quarantine_index import QuarantineIndex, Selection
from mainstem.gateway.shown import shown
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.quarantine import Quarantined, read_quarantined
from mainstem.log.settle import State, read_state
from mainstem.vocabulary import QUARANTINE_STATES_TOPIC, QUARANTINE_TOPIC

_PARTITION = 0
_GAP = 500
"""Ids that are nearer than this are read together; what lies between is passed over."""
_PREVIEW_BYTES = 200
"""A list shows so much of a key and of a value."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, newest first, and the id to ask below for more; None: there are no more."""

    records: list[dict[str, Any]]
    next: int | None


class Quarantine:
    """Reads the quarantine. Every call blocks; use it from threads."""

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        follower: QuarantineFollower,
        hidden: Callable[[], Mapping[str, Hidden]] = dict,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._follower = follower
        self._hidden = hidden
        """Tells what lists do not show, by lower-case name of the object."""

    def page(
        self,
        selection: Selection,
        state: State | None,
        *,
        since: int | None,
        before: int | None,
        limit: int,
    ) -> Page:
        """Records that are meant, newest first; `since` is in milliseconds since the epoch."""
        index, _ = self._follower.index()
        low = self.first_since(since)
        high = index.end if before is None else before
        found: list[dict[str, Any]] = []
        last: int | None = None
        hidden = self._hidden()
        for ids in _chunks(index.newest(selection, state, low, high), limit):
            entries = {e.id: e for e in self.read(sorted(ids)) if selection.takes(e)}
            for id in ids:
                if id in entries and len(found) < limit:
                    not_shown = hidden.get(entries[id].reader.lower(), Hidden())
                    found.append(_line(entries[id], index, not_shown))
                    last = id
            if len(found) == limit:
                return Page(found, last)
        return Page(found, None)

    def one(self, id: int) -> dict[str, Any]:
        """A whole record, and what became of it."""
        index, _ = self._follower.index()
        known = index.state(id)
        entry = next(self.read([id]), None) if known is not None else None
        if known is None or entry is None:
            raise MainstemError("UNKNOWN_QUARANTINED", id=id)
        state, place = known
        return {
            **_facts(entry),
            "state": state,
            "settled": None if state is State.HELD else self._settled(place),
            "record": shown(entry.origin),
        }

    def summary(self, selection: Selection) -> list[dict[str, Any]]:
        """How many records there are of each stream or table, stage and cause, by state."""
        index, _ = self._follower.index()
        rows = [
            {"object": k.reader, "stage": k.stage, "code": k.code, "cause": k.cause, **counts}
            for k, counts in index.counts().items()
            if selection.may_take(k)
        ]
        return sorted(rows, key=lambda row: (-row[State.HELD], row["object"], row["cause"]))

    def arrivals(self, minutes: int, name: str | None) -> list[Arrived]:
        """How many records were put here in each step of so many minutes of the last day."""
        index, _ = self._follower.index()
        return index.arrivals.counts(minutes, name)

    def status(self) -> dict[str, Any]:
        """The counts for the status document: held ones by object, and totals."""
        objects: Counter[str] = Counter()
        totals: Counter[str] = Counter()
        for kind, counts in self._follower.glance().counts().items():
            objects[kind.reader] += counts[State.HELD]
            totals.update(counts)
        return {
            "records": totals[State.HELD],
            "objects": {name: count for name, count in objects.items() if count},
            "replayed": totals[State.REPLAYED],
            "discarded": totals[State.DISCARDED],
        }

    def broken(self, name: str, flow: str | None = None) -> Mapping[str, int]:
        """By rule of an object, how many records have broken it; or how many of one flow."""
        return self._follower.glance().broken(name, flow)

    def first_since(self, since: int | None) -> int:
        """The first id that was put into quarantine at that time or later."""
        if since is None:
            return 0
        return self._admin.offsets_at(QUARANTINE_TOPIC, since)[_PARTITION]

    def read(self, ids: Sequence[int]) -> Iterator[Quarantined]:
        """The records of these ids, which are in ascending order, one by one."""
        wanted = set(ids)
        for first, last in _runs(ids):
            start, stop = {_PARTITION: first}, {_PARTITION: last + 1}
            for records in read_range(self._connection, QUARANTINE_TOPIC, start, stop):
                for record in records:
                    if record.offset in wanted:
                        yield read_quarantined(record)

    def _settled(self, place: int) -> dict[str, Any] | None:
        start, stop = {_PARTITION: place}, {_PARTITION: place + 1}
        for records in read_range(self._connection, QUARANTINE_STATES_TOPIC, start, stop):
            state = read_state(records[0])
            if state is not None:
                return {name: state[1].get(name) for name in ("at", "changed")}
        return None


def _facts(entry: Quarantined) -> dict[str, Any]:
    return {
        "id": entry.id,
        "object": entry.reader,
        "stage": entry.stage,
        "code": entry.code,
        "cause": entry.cause,
        "at": entry.at,
        "origin": entry.place,
    }


def _line(entry: Quarantined, index: QuarantineIndex, hidden: Hidden) -> dict[str, Any]:
    """A record in few words, without what is personal; `one` shows it whole."""
    known = index.state(entry.id)
    value = entry.origin.value
    return {
        **_facts(entry),
        "state": known[0] if known else State.HELD,
        "timestamp": entry.origin.timestamp,
        "key": _preview(hidden.of_key(entry.origin.key)),
        "value": _preview(hidden.of_value(value)),
        "size": None if value is None else len(value),
    }


def _preview(data: bytes | None) -> str | None:
    return None if data is None else data[:_PREVIEW_BYTES].decode("utf-8", "replace")


def _chunks(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    chunk: list[int] = []
    for id in ids:
        chunk.append(id)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending ids as ranges without large gaps."""
    if not ids:
        return
    first = last = ids[0]
    for id in ids[1:]:
        if id - last > _GAP:
            yield first, last
            first = id
        last = id
    yield first, last
