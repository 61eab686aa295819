"""Who takes the columns that a stream gains while it is read, and who does not notice them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.state import keeps_state
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column


def takes_all(definition: Definition) -> bool:
    """True when a column more of an input is a column more for the flow, as with `SELECT *`."""
    query = definition.query
    if query is None or definition.stateful is not None or definition.handler is not None:
        return False  # such a function takes the fields of its record
    return "*" in query.columns_read


def follows(definition: Definition, inputs: Sequence[Definition]) -> bool:
    """True when the columns of a derived object grow with those of its inputs."""
    return takes_all(definition) and any(source.follows for source in inputs)


def check_follows(definition: Definition, inputs: Sequence[Definition]) -> None:
    """Refuse `*` over columns that grow where Spark would have to remember them.

    The state of a join, an aggregate or a DISTINCT has the columns with which it was begun; that of
    `deduplicate` has the columns which it names.
    """
    query = definition.query
    if query is None or not follows(definition, inputs):
        return
    if not keeps_state(replace(definition, deduplicate=()), inputs):
        return
    source = next(source for source in inputs if source.follows)
    raise MainstemError(
        "NOT_SUPPORTED",
        location=query.location,
        what="taking all columns (*)",
        where=f'a flow that keeps state over "{source.name}", whose columns grow with its schema',
        advice="Name the columns, here or in a stream between.",
    )


def noticed(source: Definition, reader: Definition) -> Definition:
    """An input with the columns that decide of its reader: all, or those that it takes.

    Only streams: what is kept of a table has all its columns, whoever reads it.
    """
    if not source.follows or source.kind is Kind.TABLE or takes_all(reader):
        return source
    taken = _taken(reader) | {name.lower() for name in source.key}
    if source.event_time is not None:
        taken.add(source.event_time.lower())
    if source.time is not None:
        taken.update(source.time.columns_read)
    return replace(source, columns=tuple(c for c in source.columns if c.name.lower() in taken))


def _taken(reader: Definition) -> set[str]:
    """Lower-case names of the columns that a definition reads."""
    how = reader.stateful or reader.handler
    if how is not None:
        keys = reader.stateful.key if reader.stateful is not None else ()
        fields = struct_fields(how.function.parameters[0].type)
        return {*fields, *(key.lower() for key in keys)}
    return set(reader.query.columns_read) if reader.query is not None else set()


def only_added(old: Sequence[Column], new: Sequence[Column]) -> bool:
    """True when all columns are still there, and nothing has happened but that some came."""
    known = {column.name: column for column in new}
    return all(known.get(column.name) == column for column in old)
