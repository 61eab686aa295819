"""Which events a row of a table is made of, back to where they came in.

For each object on the way, from the table to its sources:

1. Its query is asked again over the log, rewritten so that each row says which records it is made
   of (`definitions.origins`), for the wanted rows alone.
2. Where a group was made, not all of its records need have decided the row. So records are left
   out, half of them, then a quarter, down to one, as long as the query gives the same row without
   them. What is left is enough, and none of it can be missed.
3. A query that cannot be rewritten is taken as it is: of few records, those that it needs are found
   in the same way; of many they are not, and that is said.

Nothing is kept for this while flows run. The price is that the past is seen through the log as it
is now: where the answer is another row (a late record was left out, a table has changed since, the
log was cut), the row is not explained exactly, and that is said, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.config import SparkSettings
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.late import RECORD
from mainstem.definitions.model import Definition, FlowKind, Kind, Query
from mainstem.definitions.origins import ORIGIN, InTheWay, Traced, traced
from mainstem.engine.compile import compile_static, flow_session, quick_session
from mainstem.engine.decode import mentioned_metadata
from mainstem.engine.encode import row_id
from mainstem.engine.few_rows import here, span
from mainstem.engine.formats import Formats
from mainstem.engine.functions import check_loads
from mainstem.engine.least import least, same_row
from mainstem.engine.origins import Event, Inputs, Place, at_places, place_of, row_text
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection

MOST_EVENTS = 1_000
"""More events behind one row are not named."""
_MOST_TRIED = 200
"""Of more events it is not tried which of them can be left out."""
_MOST_SEARCHED = 1_000
"""Among more records those that a query needs are not searched for."""
_LATE = "there was no time to try which of the events decide the row"
_MOST_LOOKED_BACK = 3
"""For so many rows it is tried what the log told when they were written."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a row is made of."""

    places: tuple[Place, ...]
    note: str | None = None
    """Why it is not exact; None: it is."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the log says a row is made of; no text: it does not know such a row."""

    places: tuple[Place, ...]
    text: str | None
    same: bool = False
    """True when it is the row that is asked for."""


class Explainer:
    """Explains one row. `definitions` are all that the table is made of, by lower-case name."""

    def __init__(
        self,
        spark: SparkSession,
        settings: SparkSettings,
        connection: Connection,
        formats: Formats,
        admin: Admin,
        definitions: Mapping[str, Definition],
        seconds: float,
    ) -> None:
        self._session = flow_session(spark, settings.shuffle_partitions)
        self._quick = quick_session(spark, 1)
        self._inputs = Inputs(self._session, connection, formats, admin)
        self._definitions = definitions
        self._deadline = time.monotonic() + seconds / 2
        """Behind it nothing is tried any more: the answer needs some time, too."""

    def explain(self, query: Query) -> dict[str, Any]:
        """The tree of events behind the row that `SELECT * FROM table WHERE ...` finds."""
        table = self._definitions[query.inputs[0].lower()]
        rows = compile_static(self._session, query, {table: self._inputs.rows(table).drop(RECORD)})
        found = rows.select(ORIGIN).limit(2).collect()
        if len(found) != 1:
            raise MainstemError(
                "ROW_NOT_FOUND",
                location=query.location,
                count="no" if not found else "several",
                name=table.name,
                key=", ".join(table.key),
            )
        place = place_of(found[0][ORIGIN][0])
        events = self._inputs.events(table, [place])
        tree = self._nodes(table, list(events.values()))[place]
        return {"table": table.name, "exact": _exact(tree), "tree": tree}

    def _nodes(self, definition: Definition, events: Sequence[Event]) -> dict[Place, Any]:
        """The events with what they are made of, by their places."""
        ordered = sorted(events, key=lambda event: event.place)
        behind = self._behind(definition, ordered)
        children: dict[Place, Any] = {}
        for source in self._sources(definition):
            places = {p for found in behind for p in found.places if p.source == source.name}
            if places:
                # rows of many rows of many events: there has to be an end
                made_of = self._inputs.events(source, sorted(places)[:MOST_EVENTS])
                children.update(self._nodes(source, list(made_of.values())))
        nodes = {}
        for event, found in zip(ordered, behind, strict=True):
            parts = [children[place] for place in sorted(found.places) if place in children]
            left_out = len(found.places) - len(parts)
            note = found.note or (f"{left_out:,} more events are not named" if left_out else None)
            nodes[event.place] = _node(definition, event, note, parts)
        return nodes

    def _sources(self, definition: Definition) -> list[Definition]:
        names = definition.query.inputs if definition.query is not None else ()
        return [self._definitions[name.lower()] for name in names]

    def _behind(self, definition: Definition, events: Sequence[Event]) -> list[Found]:
        """What each event is made of."""
        query, reason = definition.query, None
        if query is None:
            return [Found(()) for _ in events]
        if definition.made_by is not None:
            reason = f"the Python function {definition.made_by.name} made it"
        elif definition.kind is Kind.STREAM and self._kind(definition) is FlowKind.TABLE:
            reason = f"it is a change of {query.inputs[0]}, which is as it is by now"
        if reason is not None:
            return [Found((), f"{reason}: it is not followed further") for _ in events]
        check_loads(self._session, query.functions)
        try:
            how = None if definition.source is not None else traced(query, MOST_EVENTS + 1)
        except InTheWay as way:
            return [self._searched(definition, event, str(way)) for event in events]
        answers = self._asked(definition, how, events)
        for event in [event for event in events if not answers[event].same][:_MOST_LOOKED_BACK]:
            then = self._asked(definition, how, [event], event.time)[event]
            if then.same:
                answers[event] = then
        exact = how is None or how.exact
        return [self._judged(definition, event, answers[event], exact) for event in events]

    def _kind(self, definition: Definition) -> FlowKind:
        return flow_kind(self._sources(definition))

    def _asked(
        self,
        definition: Definition,
        how: Traced | None,
        events: Sequence[Event],
        before: int | None = None,
    ) -> dict[Event, _Answer]:
        """The places behind some rows, as the log tells them now or told them at a time."""
        names = [column.name for column in definition.columns]
        rows = self._with_origins(definition, how, before).toDF(*names, ORIGIN)
        texts, ids = {event.text for event in events}, {event.id for event in events}
        rows = rows.select(
            row_text(definition).alias("text"),
            row_id(definition).alias("id"),
            ORIGIN,
            F.coalesce(F.try_element_at(ORIGIN, F.lit(1))["o"], F.lit(0)).alias("last"),
        )
        if definition.kind is Kind.TABLE:
            rank = F.struct(F.col("text").isin(*texts), "last")
            picked = rows.filter(F.col("id").isin(*ids)).groupBy("id")
            made = picked.agg(F.max_by(F.struct("text", ORIGIN), rank).alias("best")).collect()
            of_id = {row.id: row.best for row in made}
            return {
                event: _answer(event, best.text, best[ORIGIN])
                if (best := of_id.get(event.id)) is not None
                else _Answer((), None)
                for event in events
            }
        picked = rows.filter(F.col("text").isin(*texts)).groupBy("text")
        made = picked.agg(F.max_by(ORIGIN, "last", MOST_EVENTS).alias("all")).collect()
        of_text = {row.text: sorted(row.all) for row in made}
        answers = {}
        for event in events:
            # equal rows have records of their own each
            left = of_text.get(event.text, [])
            found = left.pop(0) if len(left) > 1 else left[0] if left else None
            answers[event] = (
                _Answer((), None) if found is None else _answer(event, event.text, found)
            )
        return answers

    def _with_origins(
        self, definition: Definition, how: Traced | None, before: int | None
    ) -> DataFrame:
        sources = self._sources(definition)
        if how is None:  # captured: of a key the last change counts
            changes = self._inputs.rows(sources[0], before=before).filter("after IS NOT NULL")
            row = (F.col("after").getField(column.name) for column in definition.columns)
            return changes.select(*row, ORIGIN)
        metadata = mentioned_metadata(how.query.columns_read)
        rows = {
            source: self._inputs.rows(source, _metadata(source, metadata), before).drop(RECORD)
            for source in sources
        }
        return compile_static(self._session, how.query, rows)

    def _judged(self, definition: Definition, event: Event, answer: _Answer, exact: bool) -> Found:
        """The places, without those that can be left out."""
        places = answer.places
        if answer.text is None:
            return Found((), "the log no longer has what it was made of")
        if not answer.same:
            other = f"asked again over the log, the query gives {answer.text}"
            return Found(places[:MOST_EVENTS], f"{other}: records came too late, or changed since")
        if len(places) > MOST_EVENTS:
            return Found(
                places[:MOST_EVENTS], f"more than {MOST_EVENTS:,} events: not all are named"
            )
        if exact or len(places) == 1:
            return Found(places)
        if len(places) > _MOST_TRIED:
            note = f"with {len(places):,} events it was not tried which of them decide the row"
            return Found(places, note)
        return self._least(definition, event, places)

    def _searched(self, definition: Definition, event: Event, way: str) -> Found:
        """Those of all records of the inputs that a query needs, whatever it does."""
        extents = [self._inputs.extent(source) for source in self._sources(definition)]
        count = sum(span(begin[topic], end[topic]) for begin, end in extents for topic in begin)
        if count > _MOST_SEARCHED:
            note = f"the query of {definition.name} cannot be followed to {count:,} records: {way}"
            return Found((), note)
        return self._least(definition, event, None)

    def _least(self, definition: Definition, event: Event, places: Sequence[Place] | None) -> Found:
        """As few places as give the row: without any of them it is another one, or none."""
        query = definition.query
        assert query is not None
        if time.monotonic() > self._deadline:
            return Found(tuple(places or ()), _LATE)
        metadata = mentioned_metadata(query.columns_read)
        held = {}
        for source in self._sources(definition):
            shown = _metadata(source, metadata)
            if places is None:
                rows = self._inputs.rows(source, shown)
            else:
                own = [place for place in places if place.source == source.name]
                rows = self._inputs.rows_at(source, own, shown)
            held[source] = here(rows.drop(RECORD))
        if places is None:
            found = (
                row[ORIGIN][0] for rows in held.values() for row in rows.select(ORIGIN).collect()
            )
            places = [place_of(row) for row in found]

        def gives(some: Sequence[Place]) -> bool:
            few = {
                source: at_places(rows, [p for p in some if p.source == source.name]).drop(ORIGIN)
                for source, rows in held.items()
            }
            try:
                names = [column.name for column in definition.columns]
                rows = compile_static(self._quick, query, few).toDF(*names)
                texts = rows.filter(row_id(definition) == event.id).select(row_text(definition))
                return any(same_row(row[0], event.text) for row in texts.collect())
            except PySparkException:
                return False

        if not gives(places):
            note = "asked again over these events alone, the query gives another row"
            return Found(tuple(places)[:MOST_EVENTS], note)
        kept, done = least(places, gives, lambda: time.monotonic() < self._deadline)
        return Found(tuple(kept), None if done else _LATE)


def _metadata(source: Definition, metadata: Sequence[str]) -> Sequence[str]:
    return () if source.kind is Kind.TABLE else metadata


def _answer(event: Event, text: str, origin: Sequence[Any]) -> _Answer:
    places = dict.fromkeys(place_of(row) for row in origin)
    return _Answer(tuple(places), text, same_row(text, event.text))


def _node(
    definition: Definition, event: Event, note: str | None, inputs: Sequence[Any]
) -> dict[str, Any]:
    at = datetime.fromtimestamp(event.time / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "object": definition.name,
        "kind": definition.kind.value,
        "topic": event.place.topic,
        "partition": event.place.partition,
        "offset": event.place.offset,
        "time": at.replace("+00:00", "Z"),
        "schema_id": event.schema_id,
        "payload": json.loads(event.text),
        "note": note,
        "inputs": list(inputs),
    }


def _exact(node: Mapping[str, Any]) -> bool:
    return node["note"] is None and all(map(_exact, node["inputs"]))
