"""Backfills as people ask for them: start, look, pause, resume, cancel."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mainstem.catalog.apply import Executor
from mainstem.catalog.backfill import BEGINNING, EARLIEST, HANDING_OVER, begun, turned
from mainstem.catalog.entry import BackfillState, Catalog, Entry
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError
from mainstem.gateway.changes import unknown
from mainstem.log.admin import Admin

Statuses = Callable[[], Mapping[str, dict[str, Any]]]
Place = Mapping[str, Mapping[str, int]]
"""Topic -> partition -> offset."""
_COUNTS = ("records_done", "records_total", "records_per_second", "eta_seconds")
SHOWN = ("name", "state", "since", "rate", *_COUNTS)
"""What a table of backfills shows of each."""


@dataclass(frozen=True, slots=True)
class _Start:
    since: str
    start: str
    records: int
    """About how many there are to read now."""
    whole: bool
    """True when every record that there ever was will be read."""


class Backfills:
    """Changes and shows the backfills of the catalog. Calls block."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        executor: Executor,
        admin: Admin,
        statuses: Statuses,
    ) -> None:
        self._catalog = catalog
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
        begun(entry, inputs)
        found = self._place([i for i in inputs if i.kind is Kind.STREAM], since)
        changed = begun(entry, inputs, since=found.since, start=found.start, rate=rate)
        if not dry_run:
            self._executor.write_catalog({entry.name.lower(): changed}, catalog.revision)
        return {
            "name": entry.name,
            "since": found.since,
            "rate": rate,
            "records": found.records,
            "whole": found.whole,
            "dry_run": dry_run,
        }

    def turn(self, name: str, state: BackfillState, rate: int | None = None) -> dict[str, Any]:
        """Pauses, resumes or cancels a backfill; shows it then."""
        catalog, entry = self._entry(name)
        changed = turned(entry, state, rate)
        self._executor.write_catalog({entry.name.lower(): changed}, catalog.revision)
        return _shown(changed, {})

    def all(self) -> list[dict[str, Any]]:
        """The last backfill of each table that had one, by name."""
        entries = [e for _, e in sorted(self._catalog().entries.items()) if e.backfill]
        statuses = self._statuses()
        return [_shown(entry, statuses.get(entry.name, {})) for entry in entries]

    def one(self, name: str) -> dict[str, Any]:
        """The last backfill of a table; NO_BACKFILL when it had none."""
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
        topics = [topic for stream in streams for topic in self._admin.topics_of(stream)]
        begins, ends = self._admin.all_begin_offsets(topics), self._admin.all_end_offsets(topics)
        if since == BEGINNING:
            whole = not any(offset for at in begins.values() for offset in at.values())
            return _Start(BEGINNING, EARLIEST, _records(begins, ends), whole)
        if isinstance(since, str):
            moment = _time(since)
            found = self._admin.all_offsets_at(int(moment.timestamp() * 1000), ends)
            words = moment.isoformat().replace("+00:00", "Z")
        else:
            found = {topic: _given(since, topic, at, ends[topic]) for topic, at in begins.items()}
            words = "offsets"
        text = json.dumps({t: {str(p): o for p, o in at.items()} for t, at in found.items()})
        return _Start(words, text, _records(found, ends), whole=False)


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


def _records(start: Mapping[str, Mapping[int, int]], end: Mapping[str, Mapping[int, int]]) -> int:
    return sum(
        max(0, offset - start[topic].get(partition, 0))
        for topic, at in end.items()
        if topic in start
        for partition, offset in at.items()
    )


def _shown(entry: Entry, status: Mapping[str, Any]) -> dict[str, Any]:
    backfill = entry.backfill
    assert backfill is not None
    told = status.get("backfill") or {}
    mine = told if told.get("generation") == backfill.generation else {}
    state = backfill.state.value
    if backfill.active or mine.get("state") == HANDING_OVER:
        state = mine.get("state", state)
    elif backfill.state is BackfillState.DONE and status.get("generation") != entry.generation:
        state = HANDING_OVER
    return {
        "name": entry.name,
        "state": state,
        "since": backfill.since,
        "rate": backfill.rate,
        **{name: mine.get(name) for name in _COUNTS},
        "error": mine.get("error"),
    }
