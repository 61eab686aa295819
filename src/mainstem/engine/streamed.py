"""A query as a stream can run it: filters over aggregates, duplicates, and how long rows wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from mainstem.definitions.model import Definition, Query
from mainstem.definitions.options import milliseconds
from mainstem.definitions.state import event_time_of, output_mode
from mainstem.definitions.stream_filters import without_distinct, without_filters
from mainstem.engine.decode import mentioned_metadata
from mainstem.errors import MainstemError, did_you_mean


def as_streamed(
    definition: Definition, query: Query, run: Callable[[Query], DataFrame]
) -> DataFrame:
    """The rows of the flow; columns that begin with `HIDDEN_PREFIX` say which are to be kept."""
    rows = run(query)  # as written first: what Spark has to say of it is said with its place
    if query.python is not None:
        return _deduplicated(definition, rows) if definition.deduplicate else rows
    if output_mode(definition) == "update":
        unfiltered = without_filters(query)
        return rows if unfiltered == query else run(unfiltered)
    if query.distinct:
        return run(without_distinct(query)).dropDuplicates()
    return _deduplicated(definition, rows) if definition.deduplicate else rows


def _deduplicated(definition: Definition, rows: DataFrame) -> DataFrame:
    for name in definition.deduplicate:
        if name.lower() not in (column.lower() for column in rows.columns):
            raise MainstemError(
                "INVALID_OPTION",
                location=definition.location,
                option="deduplicate",
                value=name,
                problem=f"it is not a column of the query{did_you_mean(name, rows.columns)}",
                advice=f"Name columns of the query: {', '.join(rows.columns)}.",
            )
    columns = list(definition.deduplicate)
    if definition.within is None:
        return rows.dropDuplicates(columns)
    return rows.dropDuplicatesWithinWatermark(columns)


def metadata_needed(
    query: Query, sources: Sequence[Definition], *, stateful: bool
) -> tuple[str, ...]:
    """Metadata columns that the inputs must have, for the query or for a watermark."""
    needed = set(mentioned_metadata(query.columns_read))
    if stateful:
        needed |= {event_time_of(s) for s in sources if s.watermark}
    return mentioned_metadata(needed)


def patient(definition: Definition, source: Definition) -> Definition:
    """The input with a watermark that is not ahead of the time within which duplicates count."""
    within = definition.within
    if within is None:
        return source
    late = max((source.watermark, within), key=lambda text: milliseconds(text or "") or 0)
    return replace(source, watermark=late)
