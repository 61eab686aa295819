"""A definition's query -> the DataFrame of its flow, over its inputs as temporary views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mainstem.definitions.count_windows import CountWindow, count_window_of
from mainstem.definitions.grouping import COUNT_WINDOW
from mainstem.definitions.model import Definition, Kind, Lane, Query
from mainstem.definitions.relations import narrow_stars, replace_relations
from mainstem.definitions.resolve import check_aliases
from mainstem.definitions.state import keeps_state
from mainstem.definitions.trace import traced
from mainstem.engine.count_windows import WINDOW_TYPE, in_windows, numbered
from mainstem.engine.decode import (
    Intake,
    mentioned_metadata,
    metadata_field,
    read_batch,
    read_between,
    read_stream,
    row_schema,
)
from mainstem.engine.extent import Extent
from mainstem.engine.few_rows import MOST_ROWS
from mainstem.engine.formats import Formats
from mainstem.engine.function_arguments import check_arguments
from mainstem.engine.functions import register
from mainstem.engine.java import java_class
from mainstem.engine.pipelines import call_pipeline
from mainstem.engine.set_aside import Excluded
from mainstem.engine.spark_errors import query_error
from mainstem.engine.streamed import as_streamed, metadata_needed, patient
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.vocabulary import EVENT_TIME, HIDDEN_PREFIX, RESERVED_COLUMNS, Column, Offsets

_QUICK = {
    # to make code of a plan takes longer than to interpret it
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # each broadcast is a job of its own
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def flow_session(spark: SparkSession, shuffle_partitions: int) -> SparkSession:
    """A session of its own for a flow: same context, separate views and settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    return session


def quick_session(spark: SparkSession, shuffle_partitions: int) -> SparkSession:
    """A session of its own for plans over few rows: they are run once, by one task."""
    session = flow_session(spark, shuffle_partitions)
    for name, value in _QUICK.items():
        session.conf.set(name, value)
    return session


class Quick:
    """A quick session for the small batches of one flow, made with the first of them."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None

    def session(self, beside: SparkSession) -> SparkSession:
        """The session; `beside` is that of the batch."""
        if self._session is None:
            self._session = quick_session(beside, 1)
        return self._session


def compile_stream(
    session: SparkSession,
    definition: Definition,
    inputs: Sequence[Definition],
    connection: Connection,
    max_records: int,
    formats: Formats | None = None,
    excluded: Excluded | None = None,
) -> DataFrame:
    """The streaming rows that the definition's query produces.

    To run them, say which records are left out, if any: then the calls of Python functions know
    which record they are for, where the query's shape allows it. None, as for `formats`, is for
    analysis only.
    """
    query = _query_of(definition)
    tracing = None if excluded is None else traced(query)
    register(session, query.functions, traced=tracing is not None)
    query = tracing or query
    realtime = definition.lane is Lane.REAL_TIME
    stateful = keeps_state(definition, inputs)
    sources = [patient(definition, source) for source in inputs]
    metadata = metadata_needed(query, sources, stateful=stateful)
    for source in sources:
        intake = Intake(
            connection,
            formats,
            start=definition.start,
            until=definition.until,
            # a real-time batch has no end to count towards, and may not hold an observation
            max_records=None if realtime else max_records,
            metadata=metadata,
            watermark=stateful,
            observed=not realtime,
            excluded=excluded or {},
        )
        given = read_stream(session, source, intake)
        if query.python is not None:
            # a function takes all the columns that there are: it gets none that it does not name
            given = given.drop(*set(RESERVED_COLUMNS).difference(query.columns_read))
        given.createOrReplaceTempView(_view(source))
    rows = as_streamed(definition, query, lambda text: run_query(session, text, metadata))
    if excluded is None:
        check_arguments(rows, query)
    if tracing is not None:
        # Spark names a column without AS after its text, which has grown
        names = [column.name for column in definition.columns]
        rows = rows.toDF(*names, *rows.columns[len(names) :])
    return rows


def compile_static(
    session: SparkSession, query: Query, inputs: Mapping[Definition, DataFrame]
) -> DataFrame:
    """The rows that a query gives over these rows of its inputs."""
    for source, rows in inputs.items():
        into(session, rows).createOrReplaceTempView(_view(source))
    register(session, query.functions, traced=False)
    return run_query(session, query)


def compile_mentions(session: SparkSession, query: Query, rows: Sequence[DataFrame]) -> DataFrame:
    """The rows that a query gives when each name of a table in its text has rows of its own."""
    views = [f"mention {number}" for number in range(len(rows))]
    for view, given in zip(views, rows, strict=True):
        into(session, given).createOrReplaceTempView(_quoted(view))
    names = iter(views)
    text = replace_relations(query.text, lambda _: _quoted(next(names)))
    register(session, query.functions, traced=False)
    return run_query(session, replace(query, text=text, inputs=()))


def compile_marked(
    session: SparkSession, query: Query, source: Definition, rows: DataFrame, mark: str
) -> DataFrame:
    """The rows that a query gives over rows of its only input, which have a column of their own."""
    rows.createOrReplaceTempView(_view(source))
    register(session, query.functions, traced=False)
    return run_query(session, query, (mark,))


def compile_empty(session: SparkSession, query: Query, inputs: Sequence[Definition]) -> DataFrame:
    """The query over inputs without rows: what its columns are, and whether it makes sense."""
    metadata = mentioned_metadata(query.columns_read)
    schemas = {
        source: row_schema(source)
        if source.kind is Kind.TABLE
        else StructType([*row_schema(source), *(metadata_field(source, name) for name in metadata)])
        for source in inputs
    }
    empty = {source: session.createDataFrame([], schema) for source, schema in schemas.items()}
    rows = compile_static(session, query, empty)
    check_arguments(rows, query)
    return rows


def into(session: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows as a DataFrame of another session, where its views are."""
    datasets = java_class("org.apache.spark.sql.classic.Dataset")
    plan = rows._jdf.queryExecution().analyzed()
    return DataFrame(datasets.ofRows(session._jsparkSession, plan), session)


def compile_history(
    session: SparkSession,
    query: Query,
    inputs: Sequence[Definition],
    connection: Connection,
    formats: Formats,
    extents: Mapping[str, Extent],
) -> DataFrame:
    """The rows of a query over the log as it is now; of each input, only its extent is read."""
    register(session, query.functions)
    for source in inputs:
        metadata = mentioned_metadata(query.columns_read)
        extent = extents[source.name]
        bounded = extent.records < extent.of or extent.records <= MOST_ROWS
        between = (extent.start, extent.end) if bounded else None
        rows = read_batch(session, source, connection, formats, metadata=metadata, between=between)
        rows.createOrReplaceTempView(_view(source))
    rows = run_query(session, query)
    check_arguments(rows, query)
    return rows


def compile_range(
    session: SparkSession,
    query: Query,
    source: Definition,
    connection: Connection,
    formats: Formats,
    positions: tuple[Mapping[str, Offsets], Mapping[str, Offsets]],
    times: tuple[str, str] | None = None,
) -> DataFrame:
    """The rows of a query over a part of one stream's log.

    `positions` are start and end by topic; `times` narrow it to event times from the first to
    before the second.
    """
    register(session, query.functions, traced=False)
    metadata = mentioned_metadata({*query.columns_read, EVENT_TIME})
    rows = read_between(session, source, connection, formats, *positions, metadata=metadata)
    if times is not None:
        first, last = (F.lit(text).cast("timestamp") for text in times)
        rows = rows.filter((F.col(EVENT_TIME) >= first) & (F.col(EVENT_TIME) < last))
    rows.createOrReplaceTempView(_view(source))
    return run_query(session, query, metadata)


def run_query(
    session: SparkSession, query: Query, metadata: Sequence[str] | None = None
) -> DataFrame:
    """The query, analysed by Spark; its complaints become ours, with their place.

    `metadata` are the metadata columns that the inputs have; by default, those that it mentions.
    """
    if query.python is not None:
        return call_pipeline(session, query)
    counts = count_window_of(query)
    if counts is not None:
        return _count(session, query, counts)
    text = query.text
    if any("." in name for name in query.inputs):
        # a temporary view has no database: a dotted name must be one quoted word
        text = replace_relations(text, _quoted)
    hidden = mentioned_metadata(query.columns_read) if metadata is None else metadata
    if hidden and "*" in query.columns_read:
        views = {name: session.table(_quoted(name)).columns for name in query.inputs}
        owners = [name for name, columns in views.items() if hidden[0] in columns]
        text = narrow_stars(text, hidden, owners)
    try:
        return session.sql(text)
    except PySparkException as error:
        raise query_error(error, query) from None


def _count(session: SparkSession, query: Query, counts: CountWindow) -> DataFrame:
    """The rows of a query with windows of so many events, over all of its input."""
    view = _quoted(query.inputs[0])
    source = session.table(view)
    if COUNT_WINDOW in (name.lower() for name in source.columns):
        raise MainstemError(
            "NOT_SUPPORTED",
            location=query.location,
            what=f'a column "{COUNT_WINDOW}" of the input',
            where="a query with count_window",
            advice="Make a STREAM first that gives the column another name with AS.",
        )
    check_aliases(query, source.columns)
    any_window = F.lit(None).cast(WINDOW_TYPE)
    source.withColumn(COUNT_WINDOW, any_window).createOrReplaceTempView(view)
    run_query(session, counts.checked)
    source.createOrReplaceTempView(view)
    rows = numbered(run_query(session, counts.numbered), None, counts.keys)
    in_windows(rows, counts, full=False).createOrReplaceTempView(view)
    return run_query(session, counts.asked)


def columns_of(rows: DataFrame) -> tuple[Column, ...]:
    """Names and types of a DataFrame's columns."""
    return tuple(
        Column(field.name, field.dataType.simpleString())
        for field in rows.schema.fields
        if not field.name.startswith(HIDDEN_PREFIX)
    )


def _query_of(definition: Definition) -> Query:
    if definition.query is None:
        message = f"{definition.name} is declared, so it has no flow"
        raise ValueError(message)
    return definition.query


def _view(definition: Definition) -> str:
    return _quoted(definition.name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
