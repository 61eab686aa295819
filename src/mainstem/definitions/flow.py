"""What kind of flow a query makes, whether it can run as one, and what key its rows have."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.calls import called, place_of_call
from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.enrich_rules import check_enrich_flow
from mainstem.definitions.formats import check_format_of_changes
from mainstem.definitions.grouping import Shape, many_groupings, shape_of
from mainstem.definitions.handlers import check_handler
from mainstem.definitions.model import Definition, Flavour, FlowKind, Kind, Lane, Query
from mainstem.definitions.pipelines import check_pipeline
from mainstem.definitions.query import one_row, parameters
from mainstem.definitions.relations import relations
from mainstem.definitions.sinks import check_sink
from mainstem.definitions.stateful import check_stateful
from mainstem.definitions.stream_rules import check_no_stream_options, check_stream_flow
from mainstem.definitions.table_rules import check_table_flow
from mainstem.errors import MainstemError


def flow_kind(inputs: Sequence[Definition]) -> FlowKind:
    """The kind of flow over these inputs."""
    kinds = {source.kind for source in inputs}
    if kinds == {Kind.STREAM}:
        return FlowKind.STREAM
    return FlowKind.TABLE if kinds == {Kind.TABLE} else FlowKind.ENRICH


def check_query(parsed: Parsed) -> None:
    """Refuse what no definition can hold, whatever it reads."""
    if parameters(parsed):
        raise parsed.error(
            "SQL_NOT_ALLOWED",
            next(t.start for t in parsed.tokens if t.text in ("?", ":")),
            what="a parameter in a definition",
            advice="Write the value itself.",
        )
    for function in called(parsed):
        if function.flavour is Flavour.AGGREGATE:
            raise parsed.error(
                "NOT_SUPPORTED",
                place_of_call(parsed, function),
                what=f'the aggregate function "{function.name}"',
                where="a definition",
                advice="A flow aggregates with Spark's own functions; call this one in a query "
                "over the stream.",
            )
    if not any(relations(parsed.tree)):
        raise parsed.error(
            "NOT_SUPPORTED",
            parsed.start,
            what="a query without FROM",
            where="a definition",
            advice="Read a stream or a table: SELECT ... FROM name.",
        )


def check_flow(definition: Definition, inputs: Sequence[Definition]) -> None:
    """Refuse a definition whose query cannot run as a flow over these inputs."""
    if definition.query is None or definition.source is not None or definition.target is not None:
        return  # a connector's flow takes its input as it is
    if definition.stateful is not None:
        check_stateful(definition, definition.stateful, inputs)
        return
    if definition.handler is not None:
        check_handler(definition, definition.handler, inputs)
        return
    if definition.sink is not None:
        check_sink(definition, inputs)
        return
    kind = flow_kind(inputs)
    if kind is FlowKind.TABLE and definition.kind is Kind.STREAM:
        check_format_of_changes(definition)
    if definition.query.python is not None:
        check_pipeline(definition, kind, inputs)
        return
    asked = Asked.of(definition.query)
    if kind is not FlowKind.STREAM:
        check_no_stream_options(asked, definition)
    counts = count_window_of(definition.query) is not None
    if definition.lane is Lane.REAL_TIME and (counts or kind is not FlowKind.STREAM):
        raise MainstemError(
            "REALTIME_NOT_POSSIBLE",
            location=definition.location,
            name=definition.name,
            reason="it counts events" if counts else "it reads tables",
        )
    match kind:
        case FlowKind.STREAM:
            check_stream_flow(asked, definition, inputs)
        case FlowKind.ENRICH:
            check_enrich_flow(asked, inputs)
        case FlowKind.TABLE:
            check_table_flow(asked, definition)


def table_key(
    parsed: Parsed, query: Query, name: str, declared: tuple[str, ...]
) -> tuple[str, ...] | None:
    """A derived table's primary key as far as the text tells: declared, or the grouping columns.

    None: the text alone does not tell it.
    """
    shape = Shape() if one_row(parsed) else shape_of(parsed)
    if many_groupings(parsed.tree) or (not shape.groups and not one_row(parsed)):
        return declared or None
    if shape.missing:
        group = next(parsed.tree.find_all(exp.Group))
        raise parsed.error(
            "MISSING_PRIMARY_KEY",
            parsed.clause(group, "GROUP"),
            name=name,
            advice=f"Add the grouping column {shape.missing[0]} to the SELECT list under a name "
            "(AS ...): the grouping columns are the key.",
        )
    keys = query.group_keys
    if declared and {k.lower() for k in declared} != {k.lower() for k in keys}:
        raise parsed.error(
            "INVALID_OPTION",
            parsed.start,
            option="key",
            value=", ".join(declared),
            problem="the key of an aggregate is its grouping columns",
            advice=f"Leave the key out; it is ({', '.join(keys)}).",
        )
    return declared or keys
