"""What a function over DataFrames may do, by the kind of its flow: the rules that SQL has, too.

Over streams Spark never takes a row back, and writes a batch in tasks that are named after their
input or state; a stream joined to tables goes record by record; tables give one answer only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import Definition, FlowKind, Kind, Query
from mainstem.definitions.pipelines import refusal
from mainstem.definitions.state import output_mode
from mainstem.engine.pipeline_shape import (
    INPUT,
    SAME_ROWS,
    STATEFUL,
    Step,
    check_functions,
    is_many_groupings,
    row_key,
    steps_of,
    with_shape,
)

_ROW_BY_ROW = {
    INPUT,
    "Project",
    "Filter",
    "SubqueryAlias",
    "View",
    "Generate",
    "Expand",
    "EventTimeWatermark",
    "ResolvedHint",
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
}
_ORDERED = {"GlobalLimit", "LocalLimit", "Offset"}
_CONSTANT = {"LocalRelation", "LogicalRDD", "OneRowRelation", "Range", "CTERelationRef"}
_WORDS = {
    "Sort": "orderBy",
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "Offset": "offset",
    "Tail": "tail",
    "Window": "a function over a window of rows (.over)",
    "Sample": "sample",
    "Repartition": "repartition",
    "RepartitionByExpression": "repartition",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "Aggregate": "an aggregate",
    "Deduplicate": "dropDuplicates",
    "Distinct": "DISTINCT",
    "Union": "union",
}
_WHOLE = "A flow never sees the whole stream; do this in a @table over the result."
_STREAMS = "a function over streams"
_PER_RECORD = "Make a @stream of the join first, and a second definition over that one."


def inspected(definition: Definition, inputs: Sequence[Definition], rows: DataFrame) -> Query:
    """The function's query with what its plan tells; raises for a plan that cannot be a flow."""
    query = definition.query
    assert query is not None
    top = steps_of(rows, query)
    kind = flow_kind(inputs)
    _check_reads(top, definition, query, kind)
    check_functions(top, definition)
    query = with_shape(query, top)
    match kind:
        case FlowKind.STREAM:
            _check_stream(top, replace(definition, query=query))
        case FlowKind.ENRICH:
            _check_enrich(top, definition, inputs)
        case FlowKind.TABLE:
            _check_choice(top, definition)
    key = row_key(top, definition, inputs) if definition.kind is Kind.TABLE else None
    return replace(query, row_key=key)


def _check_reads(top: Step, definition: Definition, query: Query, kind: FlowKind) -> None:
    """All inputs are read, and nothing else is: it would be another one at a replay."""
    for name in query.inputs:
        if not top.has([name]):
            raise refusal(
                definition,
                f'a DataFrame that does not come from the input "{name}"',
                "Return what is made of the parameters; leave out those that are not needed.",
            )
    for step in top.walk():
        constant = step.kind in _CONSTANT and kind is not FlowKind.STREAM
        if not step.below and step.input is None and not constant:
            raise refusal(
                definition,
                "reading something else than the inputs",
                "Make a stream or a table of it, and take that as a parameter.",
            )


def _check_stream(top: Step, definition: Definition) -> None:
    steps = list(top.walk())
    for step in steps:
        if step.kind not in _ROW_BY_ROW | STATEFUL | {"Union"}:
            raise refusal(definition, _words(step), _WHOLE, _STREAMS)
        if is_many_groupings(step):
            advice = "Group by columns; make a table for each grouping."
            raise refusal(definition, "cube, rollup or grouping sets", advice, _STREAMS)
    levels = [step for step in steps if step.kind == "Aggregate"]
    if definition.final and not levels:
        advice = 'Leave it out, or group by a window: groupBy(F.window("at", "1 minute")).'
        raise refusal(definition, "final without a window", advice)
    if output_mode(definition) == "update":
        _check_changing(top, definition, levels)
    if definition.deduplicate and definition.query and (levels or definition.query.distinct):
        advice = "Make the deduplicated stream first, and the rest over that one."
        raise refusal(definition, "deduplicate beside dropDuplicates or an aggregate", advice)
    _check_unions(top, definition)


def _check_changing(top: Step, definition: Definition, levels: Sequence[Step]) -> None:
    """An aggregate whose rows are written at every change."""
    if definition.kind is Kind.STREAM:
        raise refusal(
            definition,
            "an aggregate in a @stream",
            "Make it a @table: its rows change as events arrive. Or use final=True: the rows of a "
            "window are written once, when it closes.",
        )
    if len(levels) > 1:
        advice = "Use final=True, or make a @table of the first one and the second over that."
        raise refusal(definition, "an aggregate of an aggregate with every change", advice)
    step = top
    while step.kind != "Aggregate":
        if step.kind not in ("Project", "SubqueryAlias", "View"):
            what = "a filter" if step.kind == "Filter" else _words(step)
            raise refusal(
                definition,
                f"{what} over an aggregate that is written at every change",
                "Make a @table of the aggregate, and a second @table over that one with the rest: "
                "rows that no longer belong are deleted there.",
            )
        [step] = step.below


def _check_unions(step: Step, definition: Definition) -> None:
    """What is written must come from state in all parts of a union, or in none."""
    if step.kind in STATEFUL:
        return
    if step.kind == "Union":
        keep = [any(inner.kind in STATEFUL for inner in part.walk()) for part in step.below]
        if any(keep) and not all(keep):
            raise refusal(
                definition,
                "a union of a join or an aggregate with something else",
                "Make a @stream of the join or aggregate first, and the union over that one.",
            )
    for part in step.below:
        _check_unions(part, definition)


def _check_enrich(top: Step, definition: Definition, inputs: Sequence[Definition]) -> None:
    streams = [source.name for source in inputs if source.kind is Kind.STREAM]
    read = [step for step in top.walk() if step.input in streams]
    if len(read) > 1:
        raise refusal(
            definition,
            "reading streams more than once beside a table",
            "Join the streams to a @stream first, then that one to the table.",
        )
    step = top
    while step.input is None:
        parts = [part for part in step.below if part.has(streams)]
        if step.kind == "Join":
            _check_side(step, parts[0] is step.below[0], definition)
        elif step.kind not in _ROW_BY_ROW or len(step.below) != 1:
            raise refusal(
                definition, _words(step), _PER_RECORD, "a function over a stream and tables"
            )
        [step] = parts
    _check_choice(top, definition)


def _check_side(join: Step, left: bool, definition: Definition) -> None:
    """Every row of a table must come with a record."""
    how = str(join.node.joinType().sql())
    allowed = ("INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI")
    if how not in (allowed if left else ("INNER", "CROSS", "RIGHT OUTER")) or len(join.below) != 2:
        raise refusal(
            definition,
            f"a {how.lower()} join at this place",
            'Keep the stream\'s rows: stream.join(table, ..., "left").',
        )


def _words(step: Step) -> str:
    return _WORDS.get(step.kind, step.kind)


def _check_choice(step: Step, definition: Definition) -> None:
    """Refuse rows that chance chooses: a sample, a limit of rows in no order."""
    if step.kind == "Sample":
        raise refusal(definition, "sample", "Leave it out: any rows may be the chosen ones.")
    below = step
    inner: list[Step] = []
    while below.kind in _ORDERED or (
        below is not step and below.kind in (SAME_ROWS - {"Sort"}) | {"Project"}
    ):
        below, *queries = below.below
        inner += queries  # those inside its expressions
    if below is not step and below.kind != "Sort":
        advice = "Add orderBy, or any rows may be the chosen ones."
        raise refusal(definition, "limit without orderBy", advice)
    for part in (*inner, *below.below):
        _check_choice(part, definition)
