"""A plan in words: one line for each step, what changes in a query, what it costs."""

from __future__ import annotations

import difflib
from collections import Counter

from mainstem.catalog.entry import Entry
from mainstem.catalog.plan import (
    ChangeInPlace,
    CreateObject,
    DropObject,
    FunctionStep,
    Plan,
    Rebuild,
    SchemaStep,
    Step,
)
from mainstem.definitions.connections import connection_of
from mainstem.definitions.model import Kind

_SIGNS = {"create": "+", "change": "~", "rebuild": "!", "drop": "-"}


def explain(plan: Plan) -> str:
    """The plan as text for a terminal; equal plans give equal text."""
    notes = [f"Note: {note}" for note in plan.notes]
    if not plan.changes:
        return "\n".join(["No changes.", *notes])
    lines = [f"Plan for {plan.target}:"] if plan.target else ["Plan:"]
    titles = [_title(step.entry) for step in plan.steps]
    titles += [f"function {step.function.name}" for step in plan.functions]
    width = max(map(len, titles))
    for change in plan.functions:
        title = f"function {change.function.name}"
        lines.append(f"  {_SIGNS[change.step]} {title:<{width}}  {_function_words(change)}")
    for step in plan.steps:
        words = _source_words(step, plan) if _is_source(step.entry) else _words(step)
        lines.append(f"  {_SIGNS[step.step]} {_title(step.entry):<{width}}  {words}")
        lines += _query_diff(step)
        for schema in plan.schemas:
            if schema.name == step.entry.name:
                lines += _schema_lines(schema)
    counts = Counter[str](step.step for step in (*plan.functions, *plan.steps))
    lines.append(", ".join(f"{counts[name]} to {name}" for name in _SIGNS if counts[name]) + ".")
    broken = [schema.subject for schema in plan.schemas if schema.breaks]
    if broken:
        lines.append(f"It cannot be applied: the schema breaks the rule of {', '.join(broken)}.")
    return "\n".join(lines + notes)


def _function_words(change: FunctionStep) -> str:
    match change.step:
        case "create":
            return f"new; {change.function.signature}"
        case "change":
            return f"changed; {change.function.signature}"
        case "drop":
            return "no longer in the project"


def _title(entry: Entry) -> str:
    connection = connection_of(entry.definition)
    how = "" if connection is None else f" ({connection.connector})"
    return f"{entry.definition.noun} {entry.name}{how}"


def _is_source(entry: Entry) -> bool:
    return entry.definition.kind is Kind.SOURCE


def _source_words(step: Step, plan: Plan) -> str:
    match step:
        case CreateObject(entry):
            theirs = (s.entry.definition for s in plan.steps)
            tables = sum(d.source == entry.name and d.kind is Kind.TABLE for d in theirs)
            return f"new; {tables} table{'' if tables == 1 else 's'}"
        case ChangeInPlace(_, _, why) | Rebuild(_, _, why):
            return f"{why}; in place"
        case DropObject(_, why):
            return f"{why}; with all that came with it"


def _words(step: Step) -> str:
    match step:
        case CreateObject(entry, topic, replay):
            made = "new" if topic is not None else f"new, {_where(entry)}"
            return made + (f"; reads {_records(replay)}" if replay else "")
        case ChangeInPlace(_, _, why):
            return f"{why}; in place"
        case Rebuild(_, _, why, replay):
            return f"{why}; rebuilt from {_records(replay)}"
        case DropObject(entry, why, lost):
            if entry.definition.pattern is not None:
                return f"{why}; the topics {_topic(entry)} stay"
            if not entry.owns_topic:
                return f"{why}; topic {_topic(entry)} stays"
            return f"{why}; {_records(lost)} {'is' if lost == 1 else 'are'} deleted"


def _where(entry: Entry) -> str:
    known = "on the existing topic" if entry.definition.pattern is None else "over the topics"
    return f"{known} {_topic(entry)}"


def _topic(entry: Entry) -> str:
    return entry.definition.topic


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _query_diff(step: Step) -> list[str]:
    """The lines that differ between the old and the new query, as written."""
    if not isinstance(step, ChangeInPlace | Rebuild):
        return []
    old, new = step.before.definition.query, step.entry.definition.query
    if old is None or new is None or old.canonical == new.canonical:
        return []
    diff = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), lineterm="", n=1)
    return [f"      {line}".rstrip() for line in diff if not line.startswith(("---", "+++", "@@"))]


def _schema_lines(schema: SchemaStep) -> list[str]:
    """What becomes of the schema: each change, and each break at its place."""
    after = "new" if schema.version is None else f"follows version {schema.version}"
    lines = [f"      schema {schema.subject}: {after} ({schema.level})"]
    lines += [f"        {line}" for line in schema.changes]
    lines += [f"        {found.location}: BREAKS: {found.problem}" for found in schema.breaks]
    return lines
