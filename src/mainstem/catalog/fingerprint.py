"""When is an object the same? A hash of what matters, blind to layout, comments and keyword case.

A fingerprint has three parts, `own.inputs.options`: the object by its own text, what it depends on
in its inputs and Python functions, and the options that are taken over while it runs (retention,
comment, trigger, partitions, idle time-out, tags). A changed first or second part needs the flow to
change. A column that a stream gains by itself counts only for those who take it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.connections import connection_of
from mainstem.definitions.following import noticed
from mainstem.definitions.model import Definition, Format, FunctionDefinition, SubjectStrategy
from mainstem.definitions.transforms import Filter


def fingerprint(definition: Definition, inputs: Sequence[Definition]) -> str:
    """The fingerprint of a definition as written; the `inputs` that it reads are resolved."""
    own = {
        **own_parts(definition),
        "columns": None if definition.query else _columns(definition),
        **_rule_parts(definition),
    }
    options: dict[str, Any] = {
        "retention": definition.retention,
        "comment": definition.comment,
        "trigger": definition.trigger,
        "partitions": definition.partitions,
    }
    if definition.idle_timeout is not None:
        options["idle timeout"] = definition.idle_timeout
    if definition.pii:
        options["pii"] = sorted(name.lower() for name in definition.pii)
    return f"{_hash(own)}.{_of_inputs(inputs, definition)}.{_hash(options)}"


def with_inputs(print_: str, inputs: Sequence[Definition], definition: Definition) -> str:
    """The fingerprint of the same text over inputs and functions that may have changed."""
    own, _, options = print_.split(".")
    return f"{own}.{_of_inputs(inputs, definition)}.{options}"


def core_of(print_: str) -> str:
    """The part of a fingerprint that a flow depends on."""
    return print_.rpartition(".")[0]


def own_parts(definition: Definition) -> dict[str, Any]:
    """What an object is by its own text, apart from its columns and options."""
    return {
        "kind": definition.kind,
        "topic": definition.topic,
        "key": [name.lower() for name in definition.key],
        "event time": time_of(definition),
        "watermark": definition.watermark,
        "latency": definition.lane,
        "query": definition.query.canonical if definition.query else None,
        "emit": "final" if definition.final else "changes",
        "deduplicate": [*(name.lower() for name in definition.deduplicate), definition.within],
        **_format_parts(definition),
        **_function_parts(definition),
        **_connection_parts(definition),
    }


def _format_parts(definition: Definition) -> dict[str, Any]:
    """What is not JSON says so; JSON has been there before there was a choice."""
    parts: dict[str, Any] = {}
    if definition.format is not Format.JSON:
        parts["format"] = [definition.format, definition.delimiter]
    if definition.key_format is not None:
        parts["key format"] = definition.key_format
    if definition.record is not None:
        parts["record"] = definition.record
    if definition.subject_strategy is not SubjectStrategy.TOPIC_NAME:
        parts["subject strategy"] = definition.subject_strategy
    return parts


def _function_parts(definition: Definition) -> dict[str, Any]:
    stateful, handler = definition.stateful, definition.handler
    if stateful is not None:
        key = [name.lower() for name in stateful.key]
        return {"function": _version(stateful.function), "state": [*key, stateful.clock]}
    if handler is not None:
        calls = [handler.batch, handler.tries, handler.pause, handler.most]
        return {"function": _version(handler.function), "calls": calls}
    if definition.sink is not None:
        return {"function": _version(definition.sink)}
    return {}


def _connection_parts(definition: Definition) -> dict[str, Any]:
    connection = connection_of(definition)
    if connection is None:
        return {}
    parts: dict[str, Any] = {
        "connector": connection.connector,
        "options": sorted(connection.options),
    }
    if definition.transforms:
        parts["transforms"] = [
            [t.kind, t.canonical] if isinstance(t, Filter) else t.shown
            for t in definition.transforms
        ]
    return parts


def _version(function: FunctionDefinition) -> str:
    return f"{function.signature} {function.version}"


def rules_of(definition: Definition) -> dict[str, list[str]]:
    """Name -> what a rule says, of each rule."""
    return {r.name.lower(): [r.condition.canonical, r.action] for r in definition.rules}


def conditions_of(definition: Definition) -> list[str]:
    """What the rules ask for, whatever they are called and whatever a violation means."""
    return sorted(rule.condition.canonical for rule in definition.rules)


def _rule_parts(definition: Definition) -> dict[str, Any]:
    return {"rules": rules_of(definition)} if definition.rules else {}


def decoding(definition: Definition) -> str:
    """A hash of all that a reader of the object depends on."""
    rows = rows_read(definition)
    judged = definition.rules and not definition.derived
    return _hash([rows, rules_of(definition)]) if judged else rows


def rows_read(definition: Definition) -> str:
    """A hash of what the rows of an object are; rules only say which of them there are."""
    return _hash(
        {
            "name": definition.name.lower(),
            "kind": definition.kind,
            "topic": definition.topic,
            "columns": _columns(definition),
            "key": definition.key,
            "event_time": time_of(definition),
            "watermark": definition.watermark,
            **_format_parts(definition),
        }
    )


def function_versions(definition: Definition) -> dict[str, str]:
    """Name -> what decides of a restart, of each Python function that the definition calls."""
    called = definition.query.functions if definition.query else ()
    return {f.name: _version(f) for f in called}


def _of_inputs(inputs: Sequence[Definition], definition: Definition) -> str:
    called = [f"{name} {version}" for name, version in function_versions(definition).items()]
    read = (decoding(noticed(source, definition)) for source in inputs)
    return _hash(sorted([*read, *called]))


def time_of(definition: Definition) -> Any:
    """Where the event time comes from, and its bounds if there are any."""
    name = definition.event_time.lower() if definition.event_time else None
    said = definition.time.canonical if definition.time else name
    bounds = [definition.max_ahead, definition.max_behind]
    return [said, *bounds] if any(bounds) else said


def _columns(definition: Definition) -> list[list[str]]:
    return [[column.name, column.type] for column in definition.columns]


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
