"""Changes of the catalog: plan, apply, and the single statements that are plans of one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mainstem.catalog.apply import Executor, apply_plan
from mainstem.catalog.build import Analyser, LogFacts, build_plan, drop_plan, follow_plan
from mainstem.catalog.connectors import Connectors
from mainstem.catalog.entry import Catalog, CatalogRecord, Entry, Origin
from mainstem.catalog.explain import explain
from mainstem.catalog.plan import ChangeInPlace, Plan
from mainstem.catalog.schemas import Schemas
from mainstem.definitions.model import (
    Create,
    CreateIndex,
    Definition,
    Drop,
    DropIndex,
    FunctionDefinition,
    Kind,
)
from mainstem.definitions.project import load_definitions
from mainstem.definitions.python_functions import load_functions
from mainstem.errors import MainstemError, did_you_mean
from mainstem.gateway.indexes import indexes_of, with_index, without_index
from mainstem.log.catalog_store import CatalogStore
from mainstem.views.store import check_names


@dataclass(frozen=True, slots=True)
class Done:
    """What a change did, in words, and the plan that it was."""

    message: str
    plan: Plan | None = None


class Changes:
    """Every way to change the catalog. Calls block: the engine and the log are asked."""

    def __init__(
        self,
        store: CatalogStore,
        executor: Executor,
        analyser: Analyser,
        facts: LogFacts,
        schemas: Schemas,
        connectors: Connectors,
        target: str,
    ) -> None:
        self._store = store
        self._executor = executor
        self._analyser = analyser
        self._facts = facts
        self._schemas = schemas
        self._connectors = connectors
        self._target = target

    def plan(self, files: Iterable[tuple[str, str]]) -> Plan:
        """What the project's files would change."""
        texts = list(files)
        functions = load_functions(texts)
        definitions = load_definitions(texts, functions)
        return self._build(definitions, Origin.PROJECT, drop_missing=True, functions=functions)

    def apply(self, files: Iterable[tuple[str, str]], digest: str, revision: int) -> Plan:
        """Carry out the plan that was looked at; STALE_PLAN when it would be another one now."""
        plan = self.plan(files)
        if plan.digest != digest:
            raise MainstemError("STALE_PLAN", planned=revision, actual=plan.revision)
        apply_plan(plan, self._executor, self._schemas)
        return plan

    def follow(self) -> Plan:
        """Give streams the columns that their subjects have come to have; the plan that was."""
        plan = follow_plan(
            self._store.catalog(),
            analyser=self._analyser,
            facts=self._facts,
            schemas=self._schemas,
            target=self._target,
        )
        apply_plan(plan, self._executor, self._schemas)
        return plan

    def grow(self, source: str) -> Plan:
        """Look into a source again, and add the columns that its tables have come to have.

        A plan that does more than that is an error, since nobody has asked for it.
        """
        entry = self._store.catalog().get(source)
        if entry is None:
            raise MainstemError("UNKNOWN_RELATION", name=source, suggestion="")
        plan = self._build([entry.definition], entry.origin, drop_missing=False)
        more = [step.entry.name for step in plan.steps if not isinstance(step, ChangeInPlace)]
        if more:
            raise MainstemError("COLUMNS_NOT_ADDED", names=", ".join(sorted(more)))
        apply_plan(plan, self._executor, self._schemas)
        return plan

    def create(self, statement: Create) -> Done:
        """CREATE STREAM, TABLE, SOURCE or SINK."""
        definition = statement.definition
        existing = self._store.catalog().get(definition.name)
        if existing is not None and not statement.or_replace:
            if statement.if_not_exists:
                return Done(f"{_title(existing)} exists already")
            raise MainstemError(
                "DUPLICATE_NAME",
                location=statement.location,
                name=definition.name,
                other=str(existing.definition.location),
            )
        if existing is not None:
            definition = replace(definition, indexes=existing.definition.indexes)
        plan = self._build([definition], Origin.STATEMENT, drop_missing=False)
        apply_plan(plan, self._executor, self._schemas)
        if not plan.steps:
            return Done(f"{definition.noun} {definition.name} is unchanged", plan)
        verb = "created" if existing is None else "replaced"
        return Done(f"{definition.noun} {definition.name} {verb}", plan)

    def drop(self, statement: Drop) -> Done:
        """DROP STREAM, TABLE, SOURCE or SINK."""
        catalog = self._store.catalog()
        entry = catalog.get(statement.name)
        if entry is None:
            if statement.if_exists:
                return Done(f"there is no {statement.wanted} {statement.name}")
            raise unknown(catalog, statement.name).at(statement.location)
        definition = entry.definition
        wrong = statement.kind not in (None, definition.kind)
        if wrong or (statement.sink and not definition.is_sink):
            raise MainstemError(
                "WRONG_KIND",
                location=statement.location,
                name=entry.name,
                actual=definition.noun,
                expected=statement.wanted,
                advice=f"Use DROP {definition.noun.upper()} {entry.name}.",
            )
        try:
            plan = drop_plan(
                catalog,
                entry.name,
                facts=self._facts,
                cascade=statement.cascade,
                target=self._target,
            )
        except MainstemError as error:
            raise error.at(statement.location) from None
        apply_plan(plan, self._executor)
        names = ", ".join(step.entry.name for step in plan.steps)
        return Done(f"dropped {names}", plan)

    def create_index(self, statement: CreateIndex) -> Done:
        """CREATE INDEX: the table goes on as it is."""
        catalog, index = self._store.catalog(), statement.index
        entry = catalog.get(index.table)
        if entry is None:
            raise unknown(catalog, index.table).at(index.location)
        if statement.if_not_exists and index.name.lower() in indexes_of(catalog):
            return Done(f"index {index.name} exists already")
        self._change(with_index(catalog, entry, statement), catalog)
        return Done(f"index {index.name} on {entry.name} is being made; SHOW INDEXES says how far")

    def drop_index(self, statement: DropIndex) -> Done:
        """DROP INDEX."""
        catalog = self._store.catalog()
        if statement.if_exists and statement.name.lower() not in indexes_of(catalog):
            return Done(f"there is no index {statement.name}")
        self._change(without_index(catalog, statement), catalog)
        return Done(f"index {statement.name} dropped")

    def _change(self, entries: Iterable[Entry], catalog: Catalog) -> None:
        changes: dict[str, CatalogRecord | None] = {e.name.lower(): e for e in entries}
        self._executor.write_catalog(changes, catalog.revision)

    def pause(self, name: str, paused: bool) -> Done:
        """PAUSE or RESUME."""
        catalog = self._store.catalog()
        entry = catalog.get(name)
        if entry is None:
            raise unknown(catalog, name)
        if not entry.definition.derived and entry.definition.kind is not Kind.SOURCE:
            raise MainstemError("NO_FLOW", name=entry.name)
        word = "paused" if paused else "resumed"
        if entry.paused is paused:
            return Done(f"{_title(entry)} was {word} before")
        self._change([replace(entry, paused=paused)], catalog)
        return Done(f"{_title(entry)} {word}")

    def _build(
        self,
        definitions: list[Definition],
        origin: Origin,
        *,
        drop_missing: bool,
        functions: Mapping[str, FunctionDefinition] | None = None,
    ) -> Plan:
        for definition in definitions:
            if definition.kind is Kind.TABLE:
                _check_served(definition)
        plan = build_plan(
            self._store.catalog(),
            definitions,
            analyser=self._analyser,
            facts=self._facts,
            origin=origin,
            drop_missing=drop_missing,
            target=self._target,
            functions=functions,
            schemas=self._schemas,
            connectors=self._connectors,
        )
        for step in plan.steps:
            brought = step.entry.definition
            if brought.source is not None and brought.kind is Kind.TABLE:
                _check_served(brought)
        return plan


def plan_text(plan: Plan) -> str:
    """The plan in words."""
    return explain(plan)


def unknown(catalog: Catalog, name: str) -> MainstemError:
    """UNKNOWN_RELATION with the nearest known name."""
    known = [entry.name for entry in catalog.entries.values()]
    return MainstemError("UNKNOWN_RELATION", name=name, suggestion=did_you_mean(name, known))


def _check_served(definition: Definition) -> None:
    try:
        check_names(definition)
    except MainstemError as error:
        raise error.at(definition.location) from None


def _title(entry: Entry) -> str:
    return f"{entry.definition.noun} {entry.name}"
