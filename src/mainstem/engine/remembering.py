"""What Spark says against a flow over streams, and what the flow has to remember, for EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from mainstem.definitions.count_windows import CountWindow, count_window_of
from mainstem.definitions.expiry import expiry_of
from mainstem.definitions.late import late_queries
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.pipelines import refusal
from mainstem.definitions.state import event_time_of, keeps_state, output_mode
from mainstem.definitions.stream_filters import without_filters
from mainstem.definitions.stream_joins import bounds_advice, waits
from mainstem.engine.java import java_class
from mainstem.engine.plans import each, name_of
from mainstem.engine.plans import nodes as nodes_of
from mainstem.engine.realtime import streaming_complaint
from mainstem.errors import MainstemError

_WINDOW = "GROUP BY a window over the event time: window({time}, '1 minute')."
_DELETED = "a row that no longer meets the condition of HAVING or WHERE is deleted"
_WATERMARK = "spark.watermarkDelayMs"
"""Spark's mark of a column with a watermark."""
_SOME_TIME = 10**13
"""Any number that does not fit into 32 bits: it reaches Spark as a Long."""


def check_streaming(definition: Definition, inputs: Sequence[Definition], rows: DataFrame) -> None:
    """Refuse what Spark would refuse when the flow starts, and say what to change."""
    query = definition.query
    problem = streaming_complaint(rows, output_mode(definition))
    if problem is None or query is None:
        return
    if query.python is not None:
        advice = _advice(definition, inputs)
        raise refusal(definition, f"this DataFrame ({problem.rstrip('.;')})", advice)
    if definition.final:
        what = "EMIT FINAL without a window over the event time"
        advice = _WINDOW.format(time=event_time_of(inputs[0]))
    elif definition.within:
        what = "deduplicate within a time without the event time among the columns"
        advice = f"Add the event time to the SELECT list: {event_time_of(inputs[0])}."
    elif waits(query):
        what = "an outer or semi join of streams without bounds between their times"
        advice = bounds_advice(inputs)
    else:
        raise MainstemError("INVALID_QUERY", location=query.location, problem=problem)
    raise MainstemError(
        "NOT_SUPPORTED", location=query.location, what=what, where="a definition", advice=advice
    )


def _advice(definition: Definition, inputs: Sequence[Definition]) -> str:
    """What most likely helps against what Spark says of a Python function's plan."""
    time = event_time_of(inputs[0])
    if definition.final:
        return f'Group by a window over the event time: groupBy(F.window("{time}", "1 minute")).'
    if definition.within:
        return f"Keep the event time among the columns: {time}."
    if definition.query is not None and definition.query.joins:
        return "Bound the times of the streams in the join's condition, and give each a watermark."
    if definition.query is not None and definition.query.aggregates:
        return "Change the aggregate; or use final=True, which writes a row when its window closes."
    return "Make the first part a @stream or @table of its own, and the rest over that one."


def remembers(definition: Definition, inputs: Sequence[Definition], rows: DataFrame) -> list[str]:
    """When the flow writes, what it keeps, and for how long, in sentences."""
    query = definition.query
    if query is None or not keeps_state(definition, inputs):
        return []
    counts = count_window_of(query)
    if counts is not None:
        return _counted(definition, query, counts)
    nodes = list(nodes_of(_optimized(rows)))
    said = []
    if query.aggregates:
        aggregates = [node for node in nodes if name_of(node) == "Aggregate"]
        said.append(_aggregate(definition, aggregates))
    python = query.python is not None
    if query.aggregates and not (definition.final or python) and without_filters(query) != query:
        said.append(_DELETED)
    joins = [node for node in nodes if name_of(node) == "Join"]
    if joins and all(_bounded(rows, join) for join in joins):
        said.append("rows wait for those they join with until the times' bounds have passed")
    elif joins:
        said.append(
            "WARNING: rows wait for those they join with for ever, so the state grows without end. "
            + bounds_advice(inputs)
        )
    if query.distinct or definition.deduplicate:
        said.append(_duplicates(definition, nodes[0]))
    if expiry_of(definition, inputs) is not None:
        said.append(
            f"rows of windows that ended more than {definition.retention} before the watermark are "
            "deleted"
        )
    if late_queries(definition, inputs) is not None:
        said.append(
            "a record that comes too late for its window is kept with the windows it missed: "
            f"APPLY LATE {definition.name} takes it in"
        )
    elif any(_timed(node.output()) for node in nodes):
        said.append("a record that comes too late is counted, and not kept")
    return said


def _counted(definition: Definition, query: Query, counts: CountWindow) -> list[str]:
    said = [
        "events are counted for each key in the order of partition and offset, batch by batch",
        "a row is written once, when its window is full"
        if definition.final
        else "a row is written at every change of its window",
        f"up to {max(1, counts.size - 1)} records of each key are kept, for ever",
    ]
    deleting = not definition.final and without_filters(query) != query
    return [*said, *([_DELETED] if deleting else [])]


def _aggregate(definition: Definition, aggregates: Sequence[Any]) -> str:
    if definition.final:
        return "a row is written once, when the watermark has passed the end of its window"
    groups = [e for node in aggregates for e in each(node.groupingExpressions())]
    if any(_timed(group.references().toSeq()) for group in groups):
        return "a row is written at every change, and kept until the watermark has passed it"
    return "a row is written at every change, and kept for ever: one for each group"


def _duplicates(definition: Definition, plan: Any) -> str:
    if definition.within:
        return f"what was written is remembered for {definition.within} of event time"
    if not definition.deduplicate and _timed(plan.output()):
        return "what was written is remembered until the watermark has passed it"
    return (
        "WARNING: what was written is remembered for ever, so the state grows without end. "
        "Select the event time of a stream with a watermark, too, or use "
        "WITH (deduplicate = '...', within = '1 hour')."
    )


def _optimized(rows: DataFrame) -> Any:
    """The plan with all conditions where they work: a comma and WHERE are a join, too."""
    session: Any = rows.sparkSession._jsparkSession
    return session.sessionState().optimizer().execute(rows._jdf.queryExecution().analyzed())


def _bounded(rows: DataFrame, join: Any) -> bool:
    """True when Spark can tell from the watermarks that a row will meet no other any more."""
    helper = java_class("org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper")
    if helper.isWatermarkInJoinKeys(join):
        return True
    now = java_class("scala.Option").apply(_SOME_TIME)
    left, right = join.left().outputSet(), join.right().outputSet()
    return all(
        helper.getStateValueWatermark(one, other, join.condition(), now).isDefined()
        for one, other in ((left, right), (right, left))
    )


def _timed(attributes: Any) -> bool:
    """True when one of the columns is an event time with a watermark."""
    return any(a.metadata().contains(_WATERMARK) for a in each(attributes))
