"""Records out of the quarantine: written again to their topics once they fit, or discarded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.definitions.model import Definition, Kind, Query
from mainstem.errors import MainstemError
from mainstem.gateway.engine import Engine, Refitted
from mainstem.gateway.quarantine import Quarantine
from mainstem.gateway.quarantine_follower import QuarantineFollower
from mainstem.gateway.quarantine_index import QuarantineIndex, Selection
from mainstem.gateway.shown import shown_bytes
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.quarantine import Quarantined
from mainstem.log.settle import Settlement, State, replay_of, settle
from mainstem.vocabulary import Clock, SystemClock

_MOST_BYTES = 8 * 1024 * 1024
"""A transaction ends early with so many bytes: they are in memory, and go to the engine."""
_REFUSED = "refused"
_SKIPPED = "skipped"
_COMPUTED = "it is a row of a table that is computed: it comes by itself when it keeps the rules"


@dataclass(frozen=True, slots=True)
class Choice:
    """The records that a request is about: those of some ids, or all held ones of a selection."""

    ids: frozenset[int] | None
    selection: Selection
    since: int | None
    """Milliseconds since the epoch."""
    after: int
    """Only ids behind this one; -1: from the first."""
    until: int | None
    """Only ids up to this one; None: all that are there now."""
    limit: int


@dataclass(frozen=True, slots=True)
class Change:
    """How records are mended before they are written again; nothing: they stay as they are."""

    value: bytes | None = None
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """What is settled in one transaction."""

    held: list[Quarantined]
    skipped: list[dict[str, Any]]
    next: int | None
    until: int
    known: int


class Replay:
    """Replays and discards. Every call blocks; use it from threads."""

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        engine: Engine,
        quarantine: Quarantine,
        follower: QuarantineFollower,
        catalog: Callable[[], Catalog],
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._engine = engine
        self._quarantine = quarantine
        self._follower = follower
        self._catalog = catalog
        self._clock = clock or SystemClock()
        # two at the same moment would be right, too, but one of them would have to be told to
        # try again: so it is between gateways, which the transactional id keeps apart
        self._settling = threading.Lock()

    def replay(
        self, choice: Choice, change: Change, *, force: bool, dry_run: bool
    ) -> dict[str, Any]:
        """Write records again to the topics that they came from, those that fit.

        All of one call in one transaction, in the order of their original offsets. `next` in the
        answer is the id to go on behind when there are more, `until` the end to give then: records
        that go bad again come behind it, and are not taken a second time.
        """
        part = self._part(choice)
        fitted = self._refit(part.held, change, force=force)
        topics = {entry.origin.topic for entry in part.held}
        partitions = {t.name: t.partitions for n in topics if (t := self._admin.topic(n))}
        outcomes = list(part.skipped)
        settlements = []
        for entry in part.held:
            made, problem = self._prepared(entry, fitted, partitions, force=force)
            if made is None:
                outcome = _SKIPPED if entry.id not in fitted else _REFUSED
                outcomes.append(_outcome(entry, outcome, problem))
            else:
                settlements.append(made)
        return self._settled(part, settlements, outcomes, State.REPLAYED, dry_run=dry_run)

    def discard(self, choice: Choice, *, dry_run: bool) -> dict[str, Any]:
        """Give records up: they stay in the log, but are no longer held."""
        part = self._part(choice)
        settlements = [Settlement(entry, State.DISCARDED) for entry in part.held]
        return self._settled(part, settlements, part.skipped, State.DISCARDED, dry_run=dry_run)

    # -- which

    def _part(self, choice: Choice) -> _Part:
        index, known = self._follower.index()
        until = index.end - 1 if choice.until is None else choice.until
        skipped: list[dict[str, Any]] = []
        wanted: Iterable[int]
        if choice.ids is None:
            low = max(self._quarantine.first_since(choice.since), choice.after + 1)
            wanted = index.oldest(choice.selection, State.HELD, low, until + 1)
        else:
            ids = sorted(id for id in choice.ids if id > choice.after)
            wanted = list(_held(index, ids, skipped))
        held: list[Quarantined] = []
        last = choice.after
        size, more = 0, False
        for entry in self._read(wanted):
            if choice.ids is None and not choice.selection.takes(entry):
                continue
            if len(held) == choice.limit or size > _MOST_BYTES:
                more = True
                break
            held.append(entry)
            last = entry.id
            size += len(entry.origin.value or b"") + len(entry.origin.key or b"")
        if more:  # the others come with the next call
            skipped = [item for item in skipped if item["id"] <= last]
        return _Part(held, skipped, last if more else None, until, known)

    def _read(self, ids: Iterable[int]) -> Iterator[Quarantined]:
        chunk: list[int] = []
        for id in ids:
            chunk.append(id)
            if len(chunk) == 1000:
                yield from self._quarantine.read(chunk)
                chunk = []
        yield from self._quarantine.read(chunk)

    # -- how

    def _refit(
        self, entries: Sequence[Quarantined], change: Change, *, force: bool
    ) -> dict[int, Refitted]:
        """The records as they would be written, by id, checked by the engine unless forced."""
        if change.value is not None:
            entries = [_with_value(entry, change.value) for entry in entries]
        as_it_is = {e.id: Refitted(e.id, e.origin.key, e.origin.value, None) for e in entries}
        by_reader: dict[tuple[str, str], list[Quarantined]] = {}
        for entry in entries:
            by_reader.setdefault((entry.reader, entry.origin.topic), []).append(entry)
        fitted: dict[int, Refitted] = {}
        for (reader, topic), group in by_reader.items():
            definition = decoded_by(self._catalog(), reader, topic)
            if change.query is None and (force or definition is None):
                fitted |= {entry.id: as_it_is[entry.id] for entry in group}
                continue
            fitted |= {r.id: r for r in self._engine.refit(group, definition, change.query)}
        return fitted

    def _prepared(
        self,
        entry: Quarantined,
        fitted: Mapping[int, Refitted],
        partitions: Mapping[str, int],
        *,
        force: bool,
    ) -> tuple[Settlement | None, str | None]:
        """What to write, or why not."""
        refitted = fitted.get(entry.id)
        if refitted is None:
            return None, "the query leaves it out"
        problem = refitted.problem
        known = self._catalog().get(entry.reader)
        if known is None and problem is None:
            problem = f'"{entry.reader}" is not there any more, so nothing can check it'
        if known is not None and _is_row_of(known.definition, entry):
            return None, _COMPUTED
        if problem is not None and not force:
            return None, problem
        count = partitions.get(entry.origin.topic)
        if count is None:
            return None, f'its topic "{entry.origin.topic}" is not there any more'
        return replay_of(entry, refitted.key, refitted.value, count), None

    # -- done

    def _settled(
        self,
        part: _Part,
        settlements: Sequence[Settlement],
        outcomes: Sequence[dict[str, Any]],
        state: State,
        *,
        dry_run: bool,
    ) -> dict[str, Any]:
        done = frozenset(s.entry.id for s in settlements)
        if settlements and not dry_run:
            with self._settling:
                settled = settle(self._connection, settlements, part.known, self._clock.now())
            self._follower.wait_for(settled.position)
            done = settled.ids
        results = [*outcomes]
        for settlement in settlements:
            entry = settlement.entry
            if entry.id in done:
                results.append({**_outcome(entry, state, None), **_written(settlement)})
            else:
                results.append(_outcome(entry, _SKIPPED, "somebody else has settled it meanwhile"))
        results.sort(key=lambda result: int(result["id"]))
        return {
            "dry_run": dry_run,
            str(state): len(done),
            "refused": sum(r["outcome"] == _REFUSED for r in results),
            "skipped": sum(r["outcome"] == _SKIPPED for r in results),
            "records": results,
            "next": part.next,
            "until": part.until,
        }


def _is_row_of(table: Definition, entry: Quarantined) -> bool:
    """True for a row that was to be written to a table by its flow."""
    own = table.kind is Kind.TABLE and table.derived
    return own and entry.origin.topic == table.topic


def decoded_by(catalog: Catalog, reader: str, topic: str) -> Definition | None:
    """What says how records of a topic look: the one that refused some, or what that one reads."""
    known = catalog.get(reader)
    if known is None:
        return None
    query = known.definition.query
    inputs = [catalog.get(name) for name in query.inputs] if query is not None else []
    own = (entry.definition for entry in (known, *inputs) if entry is not None)
    return next((each for each in own if each.reads(topic)), known.definition)


def _held(
    index: QuarantineIndex, ids: Sequence[int], skipped: list[dict[str, Any]]
) -> Iterator[int]:
    """Those that are held; those that are settled go to `skipped`, so that a retry is no error."""
    for id in ids:
        known = index.state(id)
        if known is None:
            raise MainstemError("UNKNOWN_QUARANTINED", id=id)
        if known[0] is State.HELD:
            yield id
        else:
            skipped.append({"id": id, "outcome": _SKIPPED, "problem": f"already {known[0]}"})


def _with_value(entry: Quarantined, value: bytes) -> Quarantined:
    return replace(entry, origin=replace(entry.origin, value=value))


def _outcome(entry: Quarantined, outcome: str, problem: str | None) -> dict[str, Any]:
    return {
        "id": entry.id,
        "outcome": outcome,
        "problem": problem,
        "object": entry.reader,
        "origin": entry.place,
    }


def _written(settlement: Settlement) -> dict[str, Any]:
    """The new key and value, when they are not the old ones."""
    record = settlement.record
    if record is None or not settlement.changed:
        return {"changed": False}
    return {"changed": True, **shown_bytes("key", record.key), **shown_bytes("value", record.value)}
