"""The plan of a Python function's DataFrame: what it reads, keeps and groups, as Spark sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from mainstem.definitions.functions import functions
from mainstem.definitions.model import Definition, Kind, Query
from mainstem.definitions.pipelines import refusal
from mainstem.engine.plans import each, name_of
from mainstem.errors import MainstemError

INPUT = "Input"
_GROUPING_ID = "spark_grouping_id"
_WINDOWS = ("spark.timeWindow", "spark.sessionWindow")
"""How Spark marks the columns of windows."""
STATEFUL = {"Aggregate", "Join", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"}
SAME_ROWS = {
    "Filter",
    "SubqueryAlias",
    "View",
    "Sort",
    "GlobalLimit",
    "LocalLimit",
    "ResolvedHint",
    "EventTimeWatermark",
}
"""Nodes whose rows are rows of what stands below them, with the same columns."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a plan; an input is a leaf, whatever it is made of."""

    kind: str
    node: Any
    below: tuple[Step, ...] = ()
    input: str | None = None

    def walk(self) -> Iterator[Step]:
        """The step and all below it, from the top."""
        yield self
        for step in self.below:
            yield from step.walk()

    def has(self, names: Sequence[str]) -> bool:
        """True when one of these inputs is read here or below."""
        return any(step.input in names for step in self.walk())


def steps_of(rows: DataFrame, query: Query) -> Step:
    """The plan of what a function returned."""
    names = {name.lower(): name for name in query.inputs}
    return _step(rows._jdf.queryExecution().analyzed(), names)


def with_shape(query: Query, top: Step) -> Query:
    """The query with what its plan tells."""
    found = list(top.walk())
    kinds = {step.kind for step in found}
    return replace(
        query,
        aggregates="Aggregate" in kinds,
        joins="Join" in kinds,
        distinct=bool(kinds & (STATEFUL - {"Aggregate", "Join"})),
        mentioned=tuple(step.input for step in found if step.input is not None),
    )


def row_key(
    top: Step, definition: Definition, inputs: Sequence[Definition]
) -> tuple[str, ...] | None:
    """The columns that tell the rows of a table apart; None when the plan does not say."""
    above, base = _down_to_rows(top)
    match base.kind:
        case "Aggregate" if not is_many_groupings(base):
            return _group_key(above, base, top, definition)
        case "Deduplicate":
            parts = {_id(key): number for number, key in enumerate(each(base.node.keys()))}
        case _ if base.input is not None and sum(s.input is not None for s in top.walk()) == 1:
            [source] = inputs
            if source.kind is not Kind.TABLE:
                return None
            key = [name.lower() for name in source.key]
            output = each(base.node.output())
            parts = {_id(a): key.index(a.name().lower()) for a in output if a.name().lower() in key}
        case _:
            return None
    columns = _carried(above, parts, top)
    whole = set(columns.values()) == set(parts.values())
    return tuple(columns) if whole else None


def is_many_groupings(step: Step) -> bool:
    """True for an aggregate by cube, rollup or grouping sets."""
    return step.kind == "Aggregate" and any(
        name_of(group) == "AttributeReference" and group.name() == _GROUPING_ID
        for group in each(step.node.groupingExpressions())
    )


def check_functions(top: Step, definition: Definition) -> None:
    """Refuse functions that give another answer each time."""
    known = functions()
    for step in top.walk():
        if step.input is not None:
            continue
        for expression in each(step.node.expressions()):
            for called in _calls(expression):
                if called in known.random:
                    raise refusal(
                        definition, f"{called}()", f"Leave it out: {known.random_reason}."
                    )


def _step(node: Any, inputs: dict[str, str]) -> Step:
    kind = name_of(node)
    if kind == "View":
        name = inputs.get(str(node.desc().identifier().table()).lower())
        if name is not None:
            return Step(INPUT, node, input=name)
    below = [*each(node.children()), *each(node.subqueries())]
    return Step(kind, node, tuple(_step(part, inputs) for part in below))


def _calls(expression: Any) -> Iterator[str]:
    yield str(expression.prettyName()).lower()
    for child in each(expression.children()):
        yield from _calls(child)


def _down_to_rows(top: Step) -> tuple[list[Step], Step]:
    """The selections above what makes the rows, from the top, and what makes them."""
    above = []
    while top.kind in SAME_ROWS or top.kind == "Project":
        if len(top.below) != 1:
            break  # a query inside an expression
        if top.kind == "Project":
            above.append(top)
        [top] = top.below
    return above, top


def _group_key(
    above: Sequence[Step], base: Step, top: Step, definition: Definition
) -> tuple[str, ...]:
    groups = list(each(base.node.groupingExpressions()))
    parts = {}
    for out in each(base.node.aggregateExpressions()):
        inner = out.child() if name_of(out) == "Alias" else out
        for number, group in enumerate(groups):
            if inner.semanticEquals(group):
                parts[_id(out)] = number
    columns = _carried(above, parts, top)
    for number, group in enumerate(groups):
        if number not in columns.values():
            plain = name_of(group) == "AttributeReference"
            named = group.name() if plain else group.sql()
            raise MainstemError(
                "MISSING_PRIMARY_KEY",
                location=definition.location,
                name=definition.name,
                advice=f"Keep the grouping column {named} among the columns: the grouping columns "
                "are the key.",
            )
    declared = {name.lower() for name in definition.key}
    if not declared:
        return tuple(columns)
    chosen = [name for name in columns if name.lower() in declared]
    if len(chosen) != len(declared) or {columns[c] for c in chosen} != set(columns.values()):
        raise MainstemError(
            "INVALID_OPTION",
            location=definition.location,
            option="primary_key",
            value=", ".join(definition.key),
            problem="the key of an aggregate is its grouping columns",
            advice=f"Leave the key out; it is ({', '.join(columns)}).",
        )
    return tuple(chosen)


def _carried(above: Sequence[Step], parts: dict[int, int], top: Step) -> dict[str, int]:
    """Output columns that hold parts of a key, by name -> which part."""
    for project in reversed(above):
        found = {}
        for out in each(project.node.projectList()):
            inner = out.child() if name_of(out) == "Alias" else out
            if name_of(inner) == "GetStructField" and _is_window(inner.child()):
                inner = inner.child()  # an end of a window tells it from all others
            if name_of(inner) == "AttributeReference" and _id(inner) in parts:
                found[_id(out)] = parts[_id(inner)]
        parts = found
    return {str(a.name()): parts[_id(a)] for a in each(top.node.output()) if _id(a) in parts}


def _is_window(expression: Any) -> bool:
    """True for a window of Spark's, not for a structure that looks like one."""
    if name_of(expression) != "AttributeReference":
        return False
    return any(expression.metadata().contains(mark) for mark in _WINDOWS)


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())
