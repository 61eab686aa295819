"""Definitions against the catalog -> a plan. Pure, but for what it asks analyser and log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mainstem.catalog.compare import differences
from mainstem.catalog.connectors import (
    Connectors,
    check_drop,
    expanded,
    of_source,
    origin_of,
)
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.fingerprint import (
    core_of,
    fingerprint,
    with_inputs,
)
from mainstem.catalog.functions import check_users, function_steps, renewed
from mainstem.catalog.plan import (
    ChangeInPlace,
    CreateObject,
    DropObject,
    FunctionStep,
    Plan,
    Rebuild,
    Step,
    topic_need,
)
from mainstem.catalog.rebuild import must_rebuild
from mainstem.catalog.schemas import Schemas, schema_steps
from mainstem.catalog.shared import check_rebuild, check_topics
from mainstem.definitions.connections import receipts
from mainstem.definitions.flow import check_flow
from mainstem.definitions.following import check_follows, follows
from mainstem.definitions.indexes import check_indexes
from mainstem.definitions.model import Definition, FunctionDefinition, Kind, Query
from mainstem.definitions.patterns import TopicPattern
from mainstem.definitions.resolve import order, resolve
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column, Offsets


class Analyser(Protocol):
    """Knows what columns a query has: the engine."""

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        """The output columns; raises an error with a place inside the query's text.

        A declared object without a query is asked about when its event time is an expression, or
        when it has rules; a sink, when it has transforms.
        """
        ...

    def inspect(self, definition: Definition, inputs: Sequence[Definition]) -> Query:
        """The query that is a Python function, with what only its plan tells."""
        ...


class LogFacts(Protocol):
    """Knows what is in the log."""

    def records(self, topic: str) -> int | None:
        """How many records the topic holds; None when there is no such topic."""
        ...

    def partitions(self, topic: str) -> int | None:
        """How many partitions the topic has; None when there is no such topic."""
        ...

    def ends(self, topic: str) -> Offsets:
        """Where the partitions of the topic end; empty when there is no such topic."""
        ...

    def matching(self, pattern: TopicPattern) -> Sequence[str]:
        """The topics that a pattern stands for now."""
        ...


def build_plan(
    catalog: Catalog,
    definitions: Iterable[Definition],
    *,
    analyser: Analyser,
    facts: LogFacts,
    origin: Origin,
    drop_missing: bool,
    target: str = "",
    functions: Mapping[str, FunctionDefinition] | None = None,
    schemas: Schemas | None = None,
    connectors: Connectors | None = None,
) -> Plan:
    """The steps that make the catalog hold these definitions.

    With `drop_missing`, objects that came from the project and are no longer in it are dropped.
    `functions` are the project's Python functions by lower-case name; None leaves them alone.
    Without `schemas`, no definition may leave its columns to the registry, and none is checked.
    Without `connectors`, none may have one.
    """
    given = expanded(catalog, definitions, connectors)
    wanted = {definition.name.lower(): definition for definition in given.definitions}
    gone = given.gone | {
        name
        for name, entry in catalog.entries.items()
        if drop_missing and origin_of(catalog, entry) is Origin.PROJECT and name not in wanted
    }
    staying = {n: e.definition for n, e in catalog.entries.items() if n not in gone}
    _check_dependents(catalog, gone, {n for n in staying if n not in wanted})
    changes: tuple[FunctionStep, ...] = ()
    if functions is not None:
        changes = function_steps(catalog, functions, drop_missing=drop_missing)
        check_users(catalog, changes, {n for n in staying if n not in wanted})
        known = {**catalog.functions, **functions}
        staying = {n: renewed(d, known) for n, d in staying.items() if n not in wanted}
    order(wanted.values(), staying)
    everything = order({**staying, **wanted}.values(), {})
    check_topics(everything)
    topics = {definition.topic for definition in everything}
    planner = _Planner(catalog, analyser, facts, origin, topics, schemas, connectors)
    for definition in everything:
        planner.place(definition, given=definition.name.lower() in wanted)
    drops = drop_steps(catalog, gone, facts, "no longer in the project", topics)
    registered = () if schemas is None else schema_steps(planner.steps, schemas)
    steps = (*planner.drops, *planner.steps, *drops)
    return Plan(catalog.revision, steps, target, changes, registered, tuple(given.notes))


def follow_plan(
    catalog: Catalog, *, analyser: Analyser, facts: LogFacts, schemas: Schemas, target: str = ""
) -> Plan:
    """The steps that give streams the columns which their subjects have come to have.

    And all behind them that take all their columns. Columns are added, and nothing else: a step
    that would begin anew is an error, since nobody has asked for it.
    """
    everything = order(_all(catalog).values(), {})
    topics = {definition.topic for definition in everything}
    planner = _Planner(catalog, analyser, facts, Origin.PROJECT, topics, schemas, follow=True)
    for definition in everything:
        planner.place(definition, given=False)
    if planner.restarted:
        raise MainstemError("COLUMNS_NOT_ADDED", names=", ".join(sorted(planner.restarted)))
    steps = tuple(planner.steps)
    return Plan(catalog.revision, steps, target, (), schema_steps(steps, schemas))


def drop_plan(
    catalog: Catalog, name: str, *, facts: LogFacts, cascade: bool = False, target: str = ""
) -> Plan:
    """The steps that drop one object, with `cascade` all that depend on it, too."""
    entry = catalog.get(name)
    if entry is None:
        raise MainstemError("UNKNOWN_RELATION", name=name, suggestion="")
    gone = {entry.name.lower(), *(d.name.lower() for d in of_source(catalog, entry.name))}
    check_drop(catalog, gone)
    waiting = sorted(gone)
    while cascade and waiting:
        for dependent in catalog.dependents(waiting.pop()):
            if dependent.name.lower() not in gone:
                gone.add(dependent.name.lower())
                waiting.append(dependent.name)
    _check_dependents(catalog, gone, set(catalog.entries) - gone)
    topics = {e.definition.topic for n, e in catalog.entries.items() if n not in gone}
    return Plan(catalog.revision, drop_steps(catalog, gone, facts, "DROP", topics), target)


def drop_steps(
    catalog: Catalog, gone: Iterable[str], facts: LogFacts, why: str, kept: Collection[str]
) -> tuple[Step, ...]:
    """A drop for each name, dependents first; `kept` are the topics that others have."""
    going = order((catalog.entries[name].definition for name in sorted(gone)), _all(catalog))
    entries = (catalog.entries[definition.name.lower()] for definition in reversed(going))
    return tuple(_drop(entry, why, facts, kept) for entry in entries)


def _drop(entry: Entry, why: str, facts: LogFacts, kept: Collection[str]) -> DropObject:
    if entry.definition.topic in kept:
        entry = replace(entry, owns_topic=False)
    lost = facts.records(entry.definition.topic) if entry.owns_topic else 0
    return DropObject(entry, why, lost or 0)


def _all(catalog: Catalog) -> Mapping[str, Definition]:
    return {name: entry.definition for name, entry in catalog.entries.items()}


def _check_dependents(catalog: Catalog, gone: set[str], keeping: set[str]) -> None:
    for name in sorted(gone):
        left = [e.name for e in catalog.dependents(name) if e.name.lower() in keeping]
        if left:
            raise MainstemError(
                "HAS_DEPENDENTS",
                name=catalog.entries[name].name,
                dependents=", ".join(left),
            )


class _Planner:
    """Goes through the definitions, inputs first, and collects steps."""

    def __init__(
        self,
        catalog: Catalog,
        analyser: Analyser,
        facts: LogFacts,
        origin: Origin,
        topics: Collection[str],
        schemas: Schemas | None,
        connectors: Connectors | None = None,
        *,
        follow: bool = False,
    ) -> None:
        self.schemas = schemas
        self.connectors = connectors
        self.follow = follow
        self.catalog = catalog
        self.topics = topics
        self.analyser = analyser
        self.facts = facts
        self.origin = origin
        self.steps: list[Step] = []
        self.drops: list[Step] = []
        self.resolved: dict[str, Definition] = {}
        self.restarted: set[str] = set()
        """Names whose records are written anew, so that readers must begin again."""

    def place(self, definition: Definition, given: bool) -> None:
        """Add the steps that a definition needs; its inputs were placed before."""
        name = definition.name.lower()
        before = self.catalog.entries.get(name)
        inputs = self._inputs(definition)
        if before is None:
            self._create(definition, inputs, self.catalog.revision + 1)
        elif before.definition.topic != definition.topic:
            why = f"its topic changes to {definition.topic}"
            self.drops.append(_drop(before, why, self.facts, self.topics))
            self.restarted.add(name)
            generation = max(before.generation, self.catalog.revision) + 1
            self._create(definition, inputs, generation)
        else:
            self._compare(before, definition, inputs, given)
        check_indexes(self.resolved.get(name, definition))
        if definition.pattern is not None and self._restarts_a_topic_of(definition):
            self.restarted.add(name)

    def _restarts_a_topic_of(self, wildcard: Definition) -> bool:
        """True when records that the wildcard stream reads are written anew."""
        return any(wildcard.reads(self.resolved[name].topic) for name in self.restarted)

    def _inputs(self, definition: Definition) -> list[Definition]:
        names = definition.query.inputs if definition.query else ()
        return [self.resolved[name.lower()] for name in names]

    def _resolve(self, definition: Definition, inputs: Sequence[Definition]) -> Definition:
        if definition.target is not None:
            if self.connectors is not None:
                self.connectors.check(definition, inputs[0])
            definition = replace(definition, columns=receipts())
            if definition.transforms:
                self.analyser.analyse(definition, inputs)
        elif definition.source is not None:
            pass  # its columns are those of the table that it comes from
        elif definition.derived:
            check_flow(definition, inputs)
            if definition.query is not None and definition.query.python is not None:
                definition = replace(definition, query=self.analyser.inspect(definition, inputs))
            check_follows(definition, inputs)
            columns = self.analyser.analyse(definition, inputs)
            definition = resolve(definition, columns, inputs)
            definition = replace(definition, follows=follows(definition, inputs))
        elif definition.follows:
            before = self.catalog.get(definition.name)
            known = before.definition.columns if before and before.definition.follows else ()
            definition = resolve(definition, self._columns(definition, known))
        if not definition.derived and (definition.time is not None or definition.rules):
            self.analyser.analyse(definition, ())
        self.resolved[definition.name.lower()] = definition
        return definition

    def _columns(
        self, definition: Definition, known: tuple[Column, ...], *, widen: bool = True
    ) -> tuple[Column, ...]:
        """The columns that a stream gets from the registry."""
        assert self.schemas is not None, "there is no registry to take columns from"
        return self.schemas.columns(definition, known, widen=widen)

    def _columns_now(
        self, old: Definition, definition: Definition, given: bool
    ) -> tuple[Column, ...]:
        """The columns that an object of the catalog has, or gains from registry or source."""
        if definition.source is not None:
            return definition.columns
        if definition.derived or not (definition.follows and old.follows):
            return old.columns
        if given:
            return self._columns(definition, old.columns)
        return self._columns(definition, old.columns, widen=False) if self.follow else old.columns

    def _create(
        self, definition: Definition, inputs: Sequence[Definition], generation: int
    ) -> None:
        print_ = fingerprint(definition, inputs)
        definition = self._resolve(definition, inputs)
        if definition.kind is Kind.SOURCE:
            entry = Entry(definition, print_, generation, origin=self.origin, owns_topic=False)
            self.steps.append(CreateObject(entry, None, 0))
            return
        partitions = self.facts.partitions(definition.topic)
        exists = partitions is not None
        self._check_foreign_records(definition)
        if exists and definition.partitions not in (None, partitions):
            wanted = f"{definition.partitions} partitions"
            raise self._mismatch(definition, f"{partitions} partitions", wanted)
        entry = Entry(
            definition,
            print_,
            generation=generation,
            origin=self.origin,
            owns_topic=definition.pattern is None and (not exists or self._is_ours(definition)),
        )
        topic = topic_need(entry) if entry.owns_topic else None
        self.steps.append(CreateObject(entry, topic, self._replay(definition, inputs)))

    def _is_ours(self, definition: Definition) -> bool:
        """True when a topic that exists was made by us: for this object, or for one beside it."""
        beside = [
            e for e in self.catalog.entries.values() if e.definition.topic == definition.topic
        ]
        if definition.record is not None and beside:
            return any(entry.owns_topic for entry in beside)
        # an empty topic that only we write is what an interrupted apply left behind
        ours = definition.derived or definition.source is not None
        return ours and not self.facts.records(definition.topic)

    def _compare(
        self, before: Entry, definition: Definition, inputs: Sequence[Definition], given: bool
    ) -> None:
        old = before.definition
        name = definition.name.lower()
        # what the catalog holds is resolved, so only its stored fingerprint knows it as written
        print_ = (
            fingerprint(definition, inputs)
            if given
            else with_inputs(before.fingerprint, inputs, definition)
        )
        restarted = [source for source in inputs if source.name.lower() in self.restarted]
        columns = self._columns_now(old, definition, given)
        same = columns == old.columns and definition.indexes == old.indexes
        if print_ == before.fingerprint and not restarted and same:
            self.resolved[name] = old
            return
        if core_of(print_) == core_of(before.fingerprint) and not restarted:
            definition = replace(
                definition,
                columns=columns,
                key=old.key,
                event_time=old.event_time,
                follows=old.follows,
            )
            if definition.query is not None and old.query is not None:
                definition = replace(definition, query=definition.query.seen_as(old.query))
            self.resolved[name] = definition
        else:
            definition = self._resolve(definition, inputs)
        self._check_partitions(before, definition)
        if definition.derived and not old.derived:
            self._check_foreign_records(definition)
            before = replace(before, owns_topic=True)
        why = differences(old, definition)
        if restarted:
            why.append(f"{restarted[0].name} begins anew")
        elif not why:
            why.append("input changed")
        entry = replace(
            before,
            definition=definition,
            fingerprint=print_,
            origin=self.origin if given else before.origin,
        )
        if restarted or must_rebuild(self.catalog, self.connectors, old, definition, inputs):
            check_rebuild(definition, "; ".join(why))
            self.restarted.add(name)
            generation = before.newest_generation + 1
            entry = replace(
                entry, generation=generation, continues=None, backfill=None, reaches=None, grown={}
            )
            replay = self._replay(definition, inputs)
            self.steps.append(Rebuild(entry, before, "; ".join(why), replay))
        else:
            entry = replace(entry, grown=self._since(before, definition))
            self.steps.append(ChangeInPlace(entry, before, "; ".join(why)))

    def _since(self, before: Entry, new: Definition) -> Mapping[str, Offsets]:
        """The columns that a flow's table has gained, and where its topic ended before that."""
        known = {column.name for column in before.definition.columns}
        added = [column.name for column in new.columns if column.name not in known]
        if not added or new.kind is not Kind.TABLE or not new.derived:
            return before.grown
        end = self.facts.ends(new.topic)
        return {**before.grown, **dict.fromkeys(added, end)}

    def _check_foreign_records(self, definition: Definition) -> None:
        """A flow has its topic for itself: it may not mix with, nor empty, what others wrote.

        Records with a name of their own do not mix, and are never emptied.
        """
        if definition.record is not None:
            return
        alone = definition.derived or definition.source is not None
        if alone and self.facts.records(definition.topic):
            raise self._mismatch(definition, "records of another writer", "a topic of its own")

    def _check_partitions(self, before: Entry, new: Definition) -> None:
        if new.partitions is None or new.partitions == before.definition.partitions:
            return
        actual = self.facts.partitions(new.topic)
        if actual is None or new.partitions == actual:
            return
        fixed = new.kind is Kind.TABLE and not new.derived
        if new.partitions < actual or fixed or not before.owns_topic:
            raise self._mismatch(new, f"{actual} partitions", f"{new.partitions} partitions")

    def _replay(self, definition: Definition, inputs: Sequence[Definition]) -> int:
        """Records that are read to build the object up."""
        if definition.query is None:
            if definition.kind is not Kind.TABLE:
                return 0
            return self.facts.records(definition.topic) or 0
        if definition.start != "earliest":
            return 0
        topics = [
            topic
            for source in inputs
            for topic in (self.facts.matching(source.pattern) if source.pattern else [source.topic])
        ]
        return sum(self.facts.records(topic) or 0 for topic in topics)

    @staticmethod
    def _mismatch(definition: Definition, actual: str, wanted: str) -> MainstemError:
        return MainstemError(
            "TOPIC_MISMATCH",
            location=definition.location,
            topic=definition.topic,
            actual=actual,
            wanted=wanted,
        )
