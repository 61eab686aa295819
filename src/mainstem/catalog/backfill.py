"""Backfills as changes of a catalog entry: what can be backfilled, and each step of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mainstem.catalog.entry import Backfill, BackfillState, Entry
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import Definition, FlowKind, Kind, Lane
from mainstem.errors import MainstemError
from mainstem.vocabulary import BACKFILL_PREFIX

EARLIEST = "earliest"
BEGINNING = "beginning"
HANDING_OVER = "handing over"
"""The state of a backfill that is done, as long as the table has yet to go on with it."""


def begun(
    entry: Entry,
    inputs: Sequence[Definition],
    *,
    since: str = BEGINNING,
    start: str = EARLIEST,
    rate: int | None = None,
) -> Entry:
    """The entry with a backfill of it on its way; refused where its result cannot be replaced."""
    reason = _obstacle(entry, inputs, start)
    if reason is not None:
        raise MainstemError("BACKFILL_NOT_POSSIBLE", name=entry.name, reason=reason)
    if entry.backfill is not None and entry.backfill.active:
        raise MainstemError("BACKFILL_ON_ITS_WAY", name=entry.name)
    generation = entry.newest_generation + 1
    return replace(entry, backfill=Backfill(generation, since, start, rate))


def turned(entry: Entry, state: BackfillState, rate: int | None = None) -> Entry:
    """The entry with its backfill paused, running (at another rate, if given) or cancelled."""
    backfill = entry.backfill
    if backfill is None or not backfill.active:
        raise MainstemError("NO_BACKFILL", name=entry.name)
    rate = backfill.rate if rate is None else rate
    return replace(entry, backfill=replace(backfill, state=state, rate=rate))


def handed_over(entry: Entry) -> Entry:
    """The entry with the generation of its backfill, which takes over topic and view."""
    backfill = entry.backfill
    assert backfill is not None
    return replace(
        entry,
        generation=backfill.generation,
        continues=entry.served_generation,
        backfill=replace(backfill, state=BackfillState.DONE),
    )


def beside(entry: Entry, partitions: int) -> Entry:
    """The entry as its backfill runs: the same text, to a topic of its own, from its own start."""
    backfill = entry.backfill
    assert backfill is not None
    definition = replace(
        entry.definition,
        topic=topic_beside(entry.definition.topic, backfill.generation),
        start=backfill.start,
        partitions=partitions,
    )
    return replace(
        entry,
        definition=definition,
        generation=backfill.generation,
        paused=backfill.state is BackfillState.PAUSED,
        continues=None,
        backfill=None,
    )


def topic_beside(topic: str, generation: int) -> str:
    """Where the backfill that is to become a generation keeps its result until then."""
    return f"{BACKFILL_PREFIX}{topic}.{generation}"


def _obstacle(entry: Entry, inputs: Sequence[Definition], start: str) -> str | None:
    definition = entry.definition
    if not definition.derived:
        return "no flow makes it"
    if definition.kind is Kind.STREAM:
        return "it is a stream: what its readers have read of it cannot be taken back"
    if definition.made_by is not None:
        return "a Python function makes it record by record, with effects or a state of its own"
    if flow_kind(inputs) is FlowKind.TABLE:
        return "it reads tables only, so it always is what the query says of them"
    if definition.lane is Lane.REAL_TIME:
        return "it runs in real time"
    if start != EARLIEST and any(source.pattern is not None for source in inputs):
        return "it reads a wildcard stream, which can only be read from its beginning"
    return None
