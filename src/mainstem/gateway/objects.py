"""Streams, tables, sources and sinks as the interface shows them."""

from __future__ import annotations

from typing import Any

from mainstem.catalog.entry import Entry
from mainstem.definitions.connections import connection_of
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.personal import Personal
from mainstem.gateway.contracts import Broken, rules_shown
from mainstem.schemas.known import subject_of
from mainstem.vocabulary import METADATA_COLUMNS


def shown(
    entry: Entry, status: dict[str, Any] | None, personal: Personal, broken: Broken
) -> dict[str, Any]:
    """One object with its flow's status, if it has one, its rules and its personal data."""
    definition = entry.definition
    query, time = definition.query, definition.time
    connection = connection_of(definition)
    return {
        "name": entry.name,
        "kind": definition.kind.value,
        "sink": definition.is_sink,
        "function": None if definition.made_by is None else definition.made_by.flavour.value,
        "topic": definition.topic,
        "wildcard": definition.pattern is not None,
        "derived": definition.derived,
        "format": definition.format.value,
        "record": definition.record,
        "subject": _subject(definition),
        "subject_strategy": definition.subject_strategy.value,
        "key": list(definition.key),
        "columns": [
            {"name": c.name, "type": c.type, "pii": personal.get(c.name.lower())}
            for c in definition.columns
        ],
        "indexes": [{"name": i.name, "columns": list(i.columns)} for i in definition.indexes],
        "rules": rules_shown(definition, broken),
        "metadata_columns": list(METADATA_COLUMNS) if definition.kind is Kind.STREAM else [],
        "generation": entry.generation,
        "paused": entry.paused,
        "origin": entry.origin.value,
        "owns_topic": entry.owns_topic,
        "event_time": time.text.removeprefix("SELECT ") if time else definition.event_time,
        "watermark": definition.watermark,
        "max_ahead": definition.max_ahead,
        "max_behind": definition.max_behind,
        "idle_timeout": definition.idle_timeout,
        "lane": definition.lane.value if definition.derived else None,
        "comment": definition.comment,
        "status": status,
        "inputs": list(query.inputs) if query else [],
        "columns_read": list(query.columns_read) if query else [],
        "source": definition.source,
        "connector": None if connection is None else connection.connector,
        "options": {} if connection is None else dict(connection.options),
        "transforms": [transform.shown for transform in definition.transforms],
        "sql": definition.text,
        "file": definition.location.file,
        "line": definition.location.line,
    }


def _subject(definition: Definition) -> str | None:
    """Where the registry has the schemas of its values, if they have one."""
    known = definition.format.registered and definition.pattern is None
    return subject_of(definition) if known else None
