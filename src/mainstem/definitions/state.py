"""What a flow over streams has to remember, and when it writes its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mainstem.definitions.model import Definition, Kind, Query
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import relations, table_name

OutputMode = Literal["append", "update"]


def keeps_state(definition: Definition, inputs: Sequence[Definition]) -> bool:
    """True when something is kept from one batch for the next, by Spark or by a function.

    What such a flow writes is divided by its state, not by its input; and its checkpoint holds
    more than a position, so another query cannot go on from there.
    """
    query = definition.query
    if query is None or any(source.kind is Kind.TABLE for source in inputs):
        return False  # over tables, what is to be remembered is in the tables' own topics
    if definition.stateful is not None:
        return True
    return query.aggregates or query.joins or query.distinct or bool(definition.deduplicate)


def output_mode(definition: Definition) -> OutputMode:
    """`update`: a row is written each time it changes; `append`: each row once."""
    query = definition.query
    changing = query is not None and query.aggregates and not definition.final
    return "update" if changing else "append"


def takes_back(definition: Definition, inputs: Sequence[Definition]) -> bool:
    """True when a table's row goes as soon as what is true now for its key does not count.

    So it is with rows of an aggregate that changes, and with rows made of tables. Where each event
    gives a row of its own, one that does not count leaves the row that came before it.
    """
    if definition.kind is not Kind.TABLE:
        return False
    made_of_tables = all(source.kind is Kind.TABLE for source in inputs)
    return made_of_tables or output_mode(definition) == "update"


def streams_in_order(definition: Definition, inputs: Sequence[Definition]) -> list[str]:
    """The streams that a flow reads, as often as its query names them.

    A checkpoint holds positions by this order, so it fits no query that has another.
    """
    if definition.query is None:
        return []
    streams = {source.name.lower() for source in inputs if source.kind is Kind.STREAM}
    return [name for name in mentions(definition.query) if name in streams]


def mentions(query: Query) -> list[str]:
    """The names that a query reads in the order of its text, in lower case, each time."""
    if query.python is not None:
        return [name.lower() for name in query.mentioned]
    parsed = reparse(query)
    return [table_name(t).lower() for t in sorted(relations(parsed.tree), key=parsed.place)]


def event_time_of(definition: Definition) -> str:
    """The column that carries a stream's event time."""
    return definition.event_time or "_timestamp"
