"""SQL text that turns records of the log into typed rows: one way for views and subscriptions.

A record's value is a JSON object of all columns. `jsonb_to_record` gives the columns their types;
only a few need a second step, such as bytea, which JSON carries as base64.
"""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.definitions.model import Definition
from mainstem.schemas.postgres_types import postgres_type
from mainstem.vocabulary import Column

_TIMES = ("date", "timestamp", "timestamptz")


def quoted(name: str) -> str:
    """A name as one quoted identifier, dots and all."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def table(name: str) -> str:
    """A view's table, with its schema."""
    return "public." + quoted(name)


def names(columns: Iterable[str], prefix: str = "") -> str:
    """Quoted names, separated by commas."""
    return ", ".join(prefix + quoted(name) for name in columns)


def record_columns(definition: Definition) -> str:
    """The column list behind `jsonb_to_record(...) AS r`."""
    return ", ".join(
        f"{quoted(c.name)} {'text' if _converted(c, definition) else postgres_type(c.type, c.name)}"
        for c in definition.value_columns
    )


def typed_columns(definition: Definition) -> str:
    """The columns of such a record with their final types and names.

    Named parts of a wildcard stream's topics come from the staged record's topic.
    """
    places = definition.pattern.places if definition.pattern else {}
    return ", ".join(
        f"split_part(s.topic, '.', {places[c.name]}) AS {quoted(c.name)}"
        if c.name in places
        else f"{_converted(c, definition) or 'r.' + quoted(c.name)} AS {quoted(c.name)}"
        for c in definition.columns
    )


def value_object(definition: Definition) -> str:
    """The JSON object of a staged record `s`: its value, its key on a tombstone.

    A flow writes all columns into the value. Others may leave the key's columns to the record's
    key, so for a declared table both are merged; the value wins. Where the format of keys is said,
    a null of the value leaves a column to the key, too: some formats cannot leave a field out.
    """
    key, value = key_object(definition), "s.value::jsonb"
    if definition.keys is not None:
        names_of_key = ", ".join(literal(name) for name in definition.key)
        value = (
            f"(s.value::jsonb - ARRAY(SELECT k FROM unnest(ARRAY[{names_of_key}]) k"  # noqa: S608
            " WHERE s.value::jsonb ->> k IS NULL))"
        )
    if definition.derived:
        return f"CASE WHEN s.value IS NULL THEN {key} ELSE s.value::jsonb END"
    return (
        f"CASE WHEN s.value IS NULL THEN {key} WHEN s.key IS NULL THEN s.value::jsonb"
        f" ELSE {key} || {value} END"
    )


def key_object(definition: Definition) -> str:
    """The JSON object of a staged record's key; a plain text gives the only key column.

    A key in some other form says nothing: the value has to carry the key's columns then.
    """
    one = len(definition.key) == 1
    plain = f"jsonb_build_object({literal(definition.key[0])}, s.key)" if one else "'{}'::jsonb"
    return f"CASE WHEN s.key LIKE '{{%' THEN s.key::jsonb ELSE {plain} END"


def _converted(column: Column, definition: Definition) -> str | None:
    """How a column is made of its text, where its type alone would not do."""
    type_name = postgres_type(column.type, column.name)
    text = "r." + quoted(column.name)
    if type_name == "bytea":
        return f"decode({text}, 'base64')"
    if type_name in _TIMES and not definition.derived:
        # PostgreSQL takes "now" and "yesterday" for times; a row must not depend on when it is read
        wrong = f"('not a time: ' || {text})::{type_name}"
        return f"CASE WHEN {text} ~ '^[-+0-9]' THEN {text}::{type_name} ELSE {wrong} END"
    return None
