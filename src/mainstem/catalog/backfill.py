"""Backfills as changes of a catalog entry: what can be backfilled, and each step of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mainstem.catalog.entry import Backfill, BackfillState, Entry
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import Definition, FlowKind, Kind, Lane
from mainstem.definitions.state import keeps_state, streams_in_order
from mainstem.errors import MainstemError
from mainstem.vocabulary import BACKFILL_PREFIX, Offsets

EARLIEST = "earliest"
BEGINNING = "beginning"
HANDING_OVER = "handing over"
"""The state of a backfill that is done, as long as the table has yet to go on with it."""


def check(entry: Entry, inputs: Sequence[Definition], start: str = EARLIEST) -> None:
    """Refuses a backfill where there can be none, or while another one is on its way."""
    reason = _obstacle(entry, inputs, start)
    if reason is not None:
        raise MainstemError("BACKFILL_NOT_POSSIBLE", name=entry.name, reason=reason)
    if entry.backfill is not None and entry.backfill.active:
        raise MainstemError("BACKFILL_ON_ITS_WAY", name=entry.name)


def begun(
    entry: Entry,
    inputs: Sequence[Definition],
    *,
    since: str = BEGINNING,
    start: str = EARLIEST,
    rate: int | None = None,
    end: str | None = None,
) -> Entry:
    """The entry with a backfill of it on its way; refused where there can be none.

    That of a stream has an `end`. From now on its records count as taken, whatever becomes of it.
    That of a sink fills another target (`rebuilt`).
    """
    check(entry, inputs, start)
    assert (end is not None) is (entry.definition.kind is Kind.STREAM)
    backfill = Backfill(entry.newest_generation + 1, since, start, rate, end=end)
    return replace(entry, backfill=backfill, reaches=entry.reaches if end is None else start)


def rebuilt(entry: Entry) -> Entry:
    """The entry of a sink with another target of it on its way, filled from the beginning."""
    if entry.definition.target is None:
        reason = "it is no sink with a connector"
        raise MainstemError("REBUILD_NOT_POSSIBLE", name=entry.name, reason=reason)
    if entry.backfill is not None and entry.backfill.active:
        raise MainstemError("BACKFILL_ON_ITS_WAY", name=entry.name)
    return replace(entry, backfill=Backfill(entry.newest_generation + 1, BEGINNING, EARLIEST))


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


def appended(entry: Entry) -> Entry:
    """The entry of a stream that has all which its backfill had to add."""
    backfill = entry.backfill
    assert backfill is not None
    return replace(entry, backfill=replace(backfill, state=BackfillState.DONE))


def beside(entry: Entry, partitions: int) -> Entry:
    """The entry as its backfill runs: the same text, from its own start.

    That of a table has a topic of its own; that of a stream adds to the stream's, and ends; that of
    a sink has a target of its own, and a topic of its own for its receipts.
    """
    backfill = entry.backfill
    assert backfill is not None
    topic, target = entry.definition.topic, entry.definition.target
    if target is not None:
        target = replace(target, beside=backfill.generation)
    definition = replace(
        entry.definition,
        topic=topic_beside(topic, backfill.generation) if backfill.end is None else topic,
        start=backfill.start,
        until=backfill.end,
        partitions=partitions,
        target=target,
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


def unread(
    wanted: Mapping[str, Offsets], begins: Mapping[str, Offsets], taken: Mapping[str, Offsets]
) -> tuple[dict[str, dict[int, int]], dict[str, dict[int, int]]]:
    """Start and end of the records from a place on that a stream has not been made of, if any.

    All are by topic and partition. `begins` is where the log begins, `taken` where the records
    begin that the stream was made of; a flow reads a partition that came later from its beginning.
    """
    start: dict[str, dict[int, int]] = {}
    end: dict[str, dict[int, int]] = {}
    for topic, at in begins.items():
        end[topic] = {p: max(o, taken.get(topic, {}).get(p, o)) for p, o in at.items()}
        start[topic] = {
            p: min(max(o, wanted.get(topic, {}).get(p, o)), end[topic][p]) for p, o in at.items()
        }
    return start, end


def records_between(start: Mapping[str, Offsets], end: Mapping[str, Offsets]) -> int:
    """How many records there are from one place to another, by topic and partition."""
    return sum(
        max(0, offset - start.get(topic, {}).get(partition, 0))
        for topic, at in end.items()
        for partition, offset in at.items()
    )


def _obstacle(entry: Entry, inputs: Sequence[Definition], start: str) -> str | None:
    definition = entry.definition
    if not definition.derived:
        return "no flow makes it"
    if definition.target is not None:
        return "it writes to a system outside; `mainstem sink rebuild` fills that anew"
    if definition.source is not None:
        return "it is made of all changes of its source, from the first on"
    if definition.made_by is not None:
        return "a Python function makes it record by record, with effects or a state of its own"
    if flow_kind(inputs) is FlowKind.TABLE:
        if definition.kind is Kind.STREAM:
            return "it tells of changes to tables, and those before its first are not in the log"
        return "it reads tables only, so it always is what the query says of them"
    if definition.lane is Lane.REAL_TIME:
        return "it runs in real time"
    if start != EARLIEST and any(source.pattern is not None for source in inputs):
        return "it reads a wildcard stream, which can only be read from its beginning"
    return _obstacle_of_stream(entry, inputs) if definition.kind is Kind.STREAM else None


def _obstacle_of_stream(entry: Entry, inputs: Sequence[Definition]) -> str | None:
    """Why older records cannot be added to a stream: what was written of it stays as it is."""
    definition = entry.definition
    if keeps_state(definition, inputs):
        return (
            "it is a stream whose rows come of several records, and what was written of it without"
            " the older ones cannot be taken back"
        )
    if any(source.pattern is not None for source in inputs):
        return "it is a stream over a wildcard stream, whose topics come and go"
    streams = streams_in_order(definition, inputs)
    twice = next((name for name in streams if streams.count(name) > 1), None)
    if twice is not None:
        return f"it is a stream that reads {twice} twice, from places that need not be the same"
    return None
