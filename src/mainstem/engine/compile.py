"""A definition's query -> the DataFrame of its flow, over its inputs as temporary views."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.definitions.model import Definition, Lane, Query
from mainstem.definitions.relations import narrow_stars, replace_relations
from mainstem.definitions.trace import traced
from mainstem.engine.decode import Intake, mentioned_metadata, read_batch, read_stream
from mainstem.engine.function_arguments import check_arguments
from mainstem.engine.functions import register
from mainstem.engine.set_aside import Excluded
from mainstem.engine.spark_errors import query_error
from mainstem.log.connection import Connection
from mainstem.vocabulary import Column


def flow_session(spark: SparkSession, shuffle_partitions: int) -> SparkSession:
    """A session of its own for a flow: same context, separate views and settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    return session


def compile_stream(
    session: SparkSession,
    definition: Definition,
    inputs: Sequence[Definition],
    connection: Connection,
    max_records: int,
    excluded: Excluded | None = None,
) -> DataFrame:
    """The streaming rows that the definition's query produces.

    To run them, say which records are left out, if any: then the calls of Python functions know
    which record they are for, where the query's shape allows it. None is for analysis only.
    """
    query = _query_of(definition)
    tracing = None if excluded is None else traced(query)
    register(session, query.functions, traced=tracing is not None)
    query = tracing or query
    realtime = definition.lane is Lane.REAL_TIME
    for source in inputs:
        intake = Intake(
            connection,
            start=definition.start,
            # a real-time batch has no end to count towards, and may not hold an observation
            max_records=None if realtime else max_records,
            metadata=mentioned_metadata(query.columns_read),
            watermark=query.aggregates,
            observed=not realtime,
            excluded=excluded or {},
        )
        read_stream(session, source, intake).createOrReplaceTempView(_view(source))
    rows = run_query(session, query)
    if excluded is None:
        check_arguments(rows, query)
    if tracing is not None:
        # Spark names a column without AS after its text, which has grown
        rows = rows.toDF(*(column.name for column in definition.columns))
    return rows


def compile_history(
    session: SparkSession, query: Query, inputs: Sequence[Definition], connection: Connection
) -> DataFrame:
    """The rows of a query over the log as it is now."""
    register(session, query.functions)
    for source in inputs:
        metadata = mentioned_metadata(query.columns_read)
        rows = read_batch(session, source, connection, metadata=metadata)
        rows.createOrReplaceTempView(_view(source))
    rows = run_query(session, query)
    check_arguments(rows, query)
    return rows


def run_query(session: SparkSession, query: Query) -> DataFrame:
    """The query, analysed by Spark; its complaints become ours, with their place."""
    text = query.text
    if any("." in name for name in query.inputs):
        # a temporary view has no database: a dotted name must be one quoted word
        text = replace_relations(text, _quoted)
    hidden = mentioned_metadata(query.columns_read)
    if hidden and "*" in query.columns_read:
        text = narrow_stars(text, hidden)
    try:
        return session.sql(text)
    except PySparkException as error:
        raise query_error(error, query) from None


def columns_of(rows: DataFrame) -> tuple[Column, ...]:
    """Names and types of a DataFrame's columns."""
    return tuple(Column(f.name, f.dataType.simpleString()) for f in rows.schema.fields)


def _query_of(definition: Definition) -> Query:
    if definition.query is None:
        message = f"{definition.name} is declared, so it has no flow"
        raise ValueError(message)
    return definition.query


def _view(definition: Definition) -> str:
    return _quoted(definition.name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
