"""Backfills as people ask for them: start, look, pause, resume, cancel."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mainstem.catalog.apply import Executor
from mainstem.catalog.backfill import (
    BEGINNING,
    EARLIEST,
    HANDING_OVER,
    begun,
    check,
    rebuilt,
    records_between,
    turned,
    unread,
)
from mainstem.catalog.entry import BackfillState, Catalog, Entry
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError
from mainstem.gateway.changes import unknown
from mainstem.log.admin import Admin

Statuses = Callable[[], Mapping[str, dict[str, Any]]]
CheckRebuild = Callable[[Definition, Definition], None]
"""Refuses a sink, with what it reads, whose target cannot be built anew."""
Place = Mapping[str, Mapping[str, int]]
"""Topic -> partition -> offset, as JSON has it."""
Bounds = dict[str, dict[int, int]]
"""The same as the log has it."""
_COUNTS = ("records_done", "records_total", "records_per_second", "eta_seconds")
SHOWN = ("name", "state", "since", "rate", *_COUNTS)
"""What a table of backfills shows of each."""


@dataclass(frozen=True, slots=True)
class _Start:
    since: str
    start: str
    records: int
    """How many there are to read now, by their offsets."""
    whole: bool
    """True when every record that there ever was will be read."""
    end: str | None = None
    """For a stream, where that is which it has already."""


class Backfills:
    """Changes and shows the backfills of the catalog. Calls block."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        executor: Executor,
        admin: Admin,
        statuses: Statuses,
        check_rebuild: CheckRebuild,
    ) -> None:
        self._catalog = catalog
        self._check_rebuild = check_rebuild
        self._executor = executor
        self._admin = admin
        self._statuses = statuses

    def start(
        self, name: str, since: str | Place, rate: int | None, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Lets a backfill begin; with `dry_run`, only says what it would read."""
        catalog, entry = self._entry(name)
        inputs = _inputs(catalog, entry)
        # what cannot be backfilled is refused before any place is looked for
        check(entry, inputs)
        streams = [source for source in inputs if source.kind is Kind.STREAM]
        if entry.definition.kind is Kind.STREAM:
            found = self._older(entry, streams, since)
        else:
            found = self._place(streams, since)
        changed = begun(
            entry, inputs, since=found.since, start=found.start, rate=rate, end=found.end
        )
        if not dry_run:
            self._executor.write_catalog({entry.name.lower(): changed}, catalog.revision)
        return {
            "name": entry.name,
            "since": found.since,
            "rate": rate,
            "records": found.records,
            "whole": found.whole,
            "appends": found.end is not None,
            "dry_run": dry_run,
        }

    def rebuild(self, name: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Lets the target of a sink be built anew beside the old one, from the beginning."""
        catalog, entry = self._entry(name)
        changed = rebuilt(entry)
        [source] = _inputs(catalog, entry)
        self._check_rebuild(entry.definition, source)
        found = self._place([source], BEGINNING)
        if not dry_run:
            self._executor.write_catalog({entry.name.lower(): changed}, catalog.revision)
        return {
            "name": entry.name,
            "records": found.records,
            "whole": found.whole or source.kind is Kind.TABLE,
            "dry_run": dry_run,
        }

    def turn(self, name: str, state: BackfillState, rate: int | None = None) -> dict[str, Any]:
        """Pauses, resumes or cancels a backfill; shows it then."""
        catalog, entry = self._entry(name)
        changed = turned(entry, state, rate)
        self._executor.write_catalog({entry.name.lower(): changed}, catalog.revision)
        return _shown(changed, {})

    def all(self) -> list[dict[str, Any]]:
        """The last backfill of each object that had one, by name."""
        entries = [e for _, e in sorted(self._catalog().entries.items()) if e.backfill]
        statuses = self._statuses()
        return [_shown(entry, statuses.get(entry.name, {})) for entry in entries]

    def one(self, name: str) -> dict[str, Any]:
        """The last backfill of an object; NO_BACKFILL when it had none."""
        _, entry = self._entry(name)
        if entry.backfill is None:
            raise MainstemError("NO_BACKFILL", name=entry.name)
        return _shown(entry, self._statuses().get(entry.name, {}))

    def _entry(self, name: str) -> tuple[Catalog, Entry]:
        catalog = self._catalog()
        entry = catalog.get(name)
        if entry is None:
            raise unknown(catalog, name)
        return catalog, entry

    def _place(self, streams: list[Definition], since: str | Place) -> _Start:
        """Where a table's backfill begins; it ends with the live flow."""
        begins, ends = self._bounds(streams)
        words, found = self._found(since, begins, ends)
        if since == BEGINNING:
            return _Start(words, EARLIEST, records_between(begins, ends), _nothing_lost(begins))
        return _Start(words, _text(found), records_between(found, ends), whole=False)

    def _older(self, entry: Entry, streams: list[Definition], since: str | Place) -> _Start:
        """Where a stream's backfill begins and ends: before what the stream was made of."""
        begins, ends = self._bounds(streams)
        words, found = self._found(since, begins, ends)
        start, end = unread(found, begins, self._taken(entry))
        records = records_between(start, end)
        if not records:
            raise MainstemError("NOTHING_TO_BACKFILL", name=entry.name, since=words)
        whole = since == BEGINNING and _nothing_lost(begins)
        return _Start(words, _text(start), records, whole, _text(end))

    def _taken(self, entry: Entry) -> Bounds:
        """Where the records begin that a stream was made of."""
        if entry.reaches is not None:
            return _offsets(json.loads(entry.reaches))
        status = self._statuses().get(entry.name, {})
        began = status.get("began")
        if not began or status.get("generation") != entry.generation:
            reason = "its flow has not begun yet, so there is no record before its first"
            raise MainstemError("BACKFILL_NOT_POSSIBLE", name=entry.name, reason=reason)
        return _offsets(began)

    def _bounds(self, streams: list[Definition]) -> tuple[Bounds, Bounds]:
        """Where the topics begin and end now."""
        topics = [topic for stream in streams for topic in self._admin.topics_of(stream)]
        return self._admin.all_begin_offsets(topics), self._admin.all_end_offsets(topics)

    def _found(self, since: str | Place, begins: Bounds, ends: Bounds) -> tuple[str, Bounds]:
        """The place that was asked for, in words and in offsets."""
        if since == BEGINNING:
            return BEGINNING, begins
        if isinstance(since, str):
            moment = _time(since)
            found = self._admin.all_offsets_at(int(moment.timestamp() * 1000), ends)
            return moment.isoformat().replace("+00:00", "Z"), found
        other = sorted(since.keys() - begins.keys())
        if other:
            problem = f"topic {other[0]} is none of those that are read: {', '.join(begins)}"
            raise MainstemError("BAD_REQUEST", problem=problem)
        return "offsets", {t: _given(since, t, at, ends[t]) for t, at in begins.items()}


def _inputs(catalog: Catalog, entry: Entry) -> list[Definition]:
    names = entry.definition.query.inputs if entry.definition.query else ()
    return [e.definition for name in names if (e := catalog.get(name))]


def _given(
    place: Place, topic: str, begin: Mapping[int, int], end: Mapping[int, int]
) -> dict[int, int]:
    """The offsets that were given for a topic; other partitions begin at their beginning."""
    given = {int(p): o for p, o in place.get(topic, {}).items() if p.isdecimal()}
    wrong = [p for p, o in given.items() if p not in begin or not begin[p] <= o <= end[p]]
    if wrong or len(given) < len(place.get(topic, {})):
        there = ", ".join(f"{p}: {o} to {end[p]}" for p, o in begin.items())
        raise MainstemError("BAD_REQUEST", problem=f"the offsets of topic {topic} are {there}")
    return {p: given.get(p, offset) for p, offset in begin.items()}


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = f'"{text}" is neither "beginning" nor a time such as 2026-01-31T12:00:00Z'
        raise MainstemError("BAD_REQUEST", problem=problem) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _nothing_lost(begins: Bounds) -> bool:
    """True when the log has its very first records."""
    return not any(offset for at in begins.values() for offset in at.values())


def _text(offsets: Bounds) -> str:
    return json.dumps({t: {str(p): o for p, o in at.items()} for t, at in offsets.items()})


def _offsets(place: Place) -> Bounds:
    return {t: {int(p): o for p, o in at.items()} for t, at in place.items()}


def _shown(entry: Entry, status: Mapping[str, Any]) -> dict[str, Any]:
    backfill = entry.backfill
    assert backfill is not None
    told = status.get("backfill") or {}
    mine = told if told.get("generation") == backfill.generation else {}
    state = backfill.state.value
    if backfill.active or mine.get("state") == HANDING_OVER:
        state = mine.get("state", state)
    elif backfill.state is BackfillState.DONE and backfill.end is None:
        # a stream has all when its backfill is done; a table when its flow says so
        state = state if status.get("generation") == entry.generation else HANDING_OVER
    return {
        "name": entry.name,
        "state": state,
        "since": backfill.since,
        "rate": backfill.rate,
        "appends": backfill.end is not None,
        **{name: mine.get(name) for name in _COUNTS},
        "error": mine.get("error"),
    }
