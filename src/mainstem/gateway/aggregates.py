"""Aggregates: events of one key in a stream, appended only if nobody has appended before.

The ledger has the version of each aggregate and where its events are, in entries that are written
in the transaction of the events. An append that expects another version than there is by then is
refused, whichever gateway it comes to. Places are kept in pages, so that an aggregate of many
events costs an append no more than one of few. Records that came into the stream in other ways
belong to no aggregate.

    v<id>     version, mark of the last request, newest places    s<id>   the newest snapshot
    p<id><n>  a full page of places                               r...    receipts, see receipts.py
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Kind
from mainstem.errors import MainstemError
from mainstem.gateway.aggregate_state import (
    Run,
    State,
    cut,
    last_places,
    read_runs,
    split,
    stretches,
)
from mainstem.gateway.receipts import Asked, Receipt, found, remembered
from mainstem.gateway.records import outgoing, record_key
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.delivery import Place, check_size
from mainstem.log.errors import unreachable
from mainstem.log.ledger import Ledger, Look, Writing
from mainstem.log.state_store import Kept
from mainstem.schemas.codec import Codec
from mainstem.vocabulary import LEDGER_TOPIC, Clock, Record

VERSION_HEADER = "version"
_PAGE_RUNS = 64
_READ_SECONDS = 30.0
_ENTRY_ROOM = 1_000


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate, as a request names it."""

    entry: Entry
    key: Any
    key_bytes: bytes
    id: bytes

    @property
    def name(self) -> bytes:
        """Of its entry, by which the partition of the ledger is chosen, too."""
        return b"v" + self.id

    @property
    def snapshot(self) -> bytes:
        """Of the entry of its snapshot."""
        return b"s" + self.id

    def page(self, number: int) -> bytes:
        """Of the entry of a page."""
        return b"p" + self.id + b"%d" % number

    def problem(self, code: str, **params: Any) -> MainstemError:
        """An error about it."""
        key = json.dumps(self.key, default=str)
        return MainstemError(code, key=key, name=self.entry.name, **params)


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append has done."""

    version: int
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Loaded:
    """An aggregate's events behind a version, or behind its snapshot."""

    version: int
    since: int
    snapshot: str | None
    """JSON text."""
    events: Sequence[tuple[int, Record]]

    @property
    def next(self) -> int | None:
        """The version to go on behind; None: these are all."""
        last = self.events[-1][0] if self.events else self.since
        return last if last < self.version else None


class Aggregates:
    """Calls block, and may come from any thread."""

    def __init__(
        self, connection: Connection, admin: Admin, ledger: Ledger, codec: Codec, clock: Clock
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._ledger = ledger
        self._codec = codec
        self._clock = clock

    def of(self, entry: Entry, key: Any) -> Aggregate:
        """The aggregate of a key; a topic that is made anew begins anew."""
        definition = entry.definition
        if definition.kind is not Kind.STREAM:
            raise MainstemError(
                "WRONG_KIND",
                name=entry.name,
                actual=str(definition.kind),
                expected="stream",
                advice="Events are appended to a stream; make tables of it.",
            )
        if len(definition.key) == 1 and isinstance(key, dict):
            key = key.get(definition.key[0])
        key_bytes = record_key(definition, key, self._codec)
        topic = self._admin.topic_id(definition.topic)
        id = hashlib.sha256(topic.encode() + b"\0" + key_bytes).digest()[:20]
        return Aggregate(entry, key, key_bytes, id)

    def append(
        self,
        aggregate: Aggregate,
        expected_version: int | None,
        events: Sequence[Any],
        asked: Asked | None,
    ) -> Appended:
        """Append all events or none; None expects nothing. VERSION_CONFLICT has the real one."""
        definition, mark = aggregate.entry.definition, uuid.uuid4().hex
        filled = [_record(definition.key, event, aggregate.key) for event in events]
        made = [
            replace(record, topic=definition.topic, key=aggregate.key_bytes)
            for record in outgoing(definition, filled, self._codec)
        ]
        known: list[Appended] = []
        decided: list[int] = []

        def decide(look: Look) -> Writing | None:
            state = State.read(look([aggregate.name]).get(aggregate.name))
            if state.mark == mark:
                places = last_places(definition.topic, state)
                known.append(Appended(state.version, Receipt(places, mark=mark)))
                return None
            earlier = None if asked is None else found(look, asked, self._clock)
            if earlier is not None:
                # its events had the versions that their run says
                version = self._version_of(look, aggregate, state, earlier.places[-1])
                known.append(Appended(version, earlier))
                return None
            if expected_version is not None and expected_version != state.version:
                raise aggregate.problem(
                    "VERSION_CONFLICT",
                    expected_version=expected_version,
                    actual_version=state.version,
                )
            decided.append(state.version)
            numbered = [
                replace(record, headers=(*record.headers, (VERSION_HEADER, b"%d" % version)))
                for version, record in enumerate(made, state.version + 1)
            ]

            def entries(places: Sequence[Place]) -> Mapping[bytes, Kept]:
                behind = state.behind(mark, places)
                made: dict[bytes, Kept] = {}
                full, kept = split(behind)
                if len(full) >= _PAGE_RUNS:
                    made[aggregate.page(behind.pages)] = Kept(json.dumps(full).encode())
                    behind = replace(behind, pages=behind.pages + 1, runs=kept)
                made[aggregate.name] = behind.kept()
                if asked is not None:
                    made |= remembered(asked, Receipt(places, mark=mark), self._clock)
                return made

            return Writing(numbered, entries)

        places = self._ledger.write(aggregate.name, decide)
        if places is None:
            return known[-1]
        return Appended(decided[-1] + len(places), Receipt(places, mark=mark))

    def load(self, aggregate: Aggregate, since_version: int | None, limit: int) -> Loaded:
        """Its events in order, behind a version; without one, behind its snapshot if it has one."""
        look = self._look(aggregate)
        kept = look([aggregate.name, aggregate.snapshot])
        state = State.read(kept.get(aggregate.name))
        if not state.version:
            raise aggregate.problem("AGGREGATE_UNKNOWN")
        since, snapshot = since_version or 0, None
        taken = kept.get(aggregate.snapshot)
        if since_version is None and taken is not None and taken.value is not None:
            snapshot = taken.value.decode()
            since = json.loads(snapshot)["version"]
        wanted = cut(self._all_runs(look, aggregate, state, since), since, limit)
        events = self._read(aggregate, wanted)
        return Loaded(state.version, since, snapshot, events)

    def keep(self, aggregate: Aggregate, version: int, state_text: str) -> int:
        """Keep a snapshot, unless there is a newer one; the version of that which is kept."""
        document = f'{{"version":{version},"state":{state_text}}}'
        size = len(document) + _ENTRY_ROOM
        check_size(self._connection, LEDGER_TOPIC, size)
        held: list[int] = []

        def decide(look: Look) -> Writing | None:
            kept = look([aggregate.name, aggregate.snapshot])
            state = State.read(kept.get(aggregate.name))
            if version > state.version:
                raise aggregate.problem(
                    "VERSION_CONFLICT", expected_version=version, actual_version=state.version
                )
            newest = kept.get(aggregate.snapshot)
            if newest is not None and newest.value is not None:
                held.append(json.loads(newest.value)["version"])
                if held[-1] >= version:
                    return None
            return Writing((), lambda _: {aggregate.snapshot: Kept(document.encode())})

        written = self._ledger.write(aggregate.name, decide)
        return held[-1] if written is None else version

    # -- inside

    def _look(self, aggregate: Aggregate) -> Look:
        return lambda keys: self._ledger.look(aggregate.name, keys)

    def _version_of(self, look: Look, aggregate: Aggregate, state: State, place: Place) -> int:
        """The version of an event by its place, which is mostly among the newest."""
        for number in range(state.pages, -1, -1):
            runs = state.runs if number == state.pages else _page(look, aggregate, number)
            for run in reversed(runs):
                behind = place.offset - run.offset
                if run.partition == place.partition and 0 <= behind < run.length:
                    return run.version + behind
        return state.version

    def _all_runs(
        self, look: Look, aggregate: Aggregate, state: State, since: int
    ) -> Iterable[Run]:
        """From the run on that has the event behind a version, in order."""
        runs = list(state.runs)
        for number in range(state.pages - 1, -1, -1):
            if runs and runs[0].version <= since + 1:
                break
            runs = [*_page(look, aggregate, number), *runs]
        return runs

    def _read(self, aggregate: Aggregate, runs: Sequence[Run]) -> list[tuple[int, Record]]:
        """The events of the runs, in the order of their versions."""
        if not runs:
            return []
        topic = aggregate.entry.definition.topic
        wanted = {
            (run.partition, run.offset + n): run.version + n
            for run in runs
            for n in range(run.length)
        }
        read: dict[int, Record] = {}
        deadline = time.monotonic() + _READ_SECONDS
        reader = Reader(self._connection, {}, tuning={"fetch.wait.max.ms": 10})
        try:
            for partition, start, end in stretches(runs):
                reader.add(topic, {partition: start})
                while reader.positions()[topic][partition] < end:
                    for record in reader.step(10_000, 1.0):
                        version = wanted.get((record.partition, record.offset))
                        if version is not None:
                            read[version] = record
                    if time.monotonic() > deadline:
                        raise unreachable(self._connection.servers)
                reader.remove(topic)
        finally:
            reader.close()
        missing = wanted.values() - read.keys()
        if missing:
            left = [version for version in read if version > max(missing)]
            first = min(left, default=max(wanted.values()) + 1)
            raise aggregate.problem("EVENTS_GONE", first_version=first)
        return sorted(read.items())


def _record(columns: Sequence[str], event: Any, key: Any) -> dict[str, Any]:
    """The event with the columns of the key, which need not be said twice."""
    if not columns or not isinstance(event, dict):
        return {"value": event, "key": key}
    given = key if isinstance(key, dict) else {columns[0]: key}
    wrong = [n for n in columns if event.get(n) is not None and event[n] != given.get(n)]
    if wrong:
        problem = f"{wrong[0]} of an event is not that of the key"
        raise MainstemError("BAD_REQUEST", problem=problem)
    return {"value": {**event, **given}}


def _page(look: Look, aggregate: Aggregate, number: int) -> list[Run]:
    kept = look([aggregate.page(number)]).get(aggregate.page(number))
    return [] if kept is None or kept.value is None else read_runs(json.loads(kept.value))


def read_key(entry: Entry, text: str) -> Any:
    """A key in a path: a text, a number, or a JSON object of the key's columns."""
    columns = entry.definition.key
    column = entry.definition.column(columns[0]) if len(columns) == 1 else None
    if not columns or (column is not None and column.type == "string"):
        return text
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return text
