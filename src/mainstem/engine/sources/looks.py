"""What a source that runs in the engine brings: asked while a plan is made, before it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mainstem.config import SparkSettings
from mainstem.connect.capture import Captured
from mainstem.connect.kafka_cluster import connection_of
from mainstem.connect.listening.captures import type_of, typed_stream
from mainstem.connect.listening.column_list import columns_of, read_columns, written_columns
from mainstem.connect.listening.options import invalid
from mainstem.definitions.model import Definition, Format
from mainstem.engine.sources.database import Database, check_url
from mainstem.engine.sources.file_look import find_columns
from mainstem.engine.sources.file_parts import CSV, LINES, PARQUET
from mainstem.engine.sources.files import PLACE_COLUMNS, folder_of, kind_of
from mainstem.engine.sources.formats import read_format
from mainstem.engine.sources.kafka_copy import starting_at
from mainstem.engine.sources.source import resolved, without_secrets
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.vocabulary import Column

_FILE = "file"
_WHOLE = ("tinyint", "smallint", "int", "bigint", "decimal")
_TIMES = ("timestamp", "date")
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Looking:
    """What it takes to look into another system."""

    spark: SparkSession
    settings: SparkSettings
    project: Path


def look_at(source: Definition, at: Looking) -> tuple[Captured, ...]:
    """What a source brings, with what it needs checked; errors have no place and no secrets."""
    assert source.captures is not None, f"{source.name} is no source"
    options, _ = resolved(source, at.project)
    try:
        return LOOKS[source.captures.connector](source.name, options, at)
    except MainstemError as error:
        raise without_secrets(error, source, at.project) from None


def _files(name: str, options: Mapping[str, Any], at: Looking) -> tuple[Captured, ...]:
    format_ = options["format"]
    if options["pattern"].startswith("/") or ".." in options["pattern"].split("/"):
        problem = "it does not stay in the folder"
        raise invalid("pattern", options["pattern"], problem, "'**/*.jsonl'")
    if options["tail"] and format_ == PARQUET:
        raise invalid("tail", "true", "Parquet files do not grow", "'false'")
    if options["header"] and format_ != CSV:
        raise invalid("header", "true", "only CSV files have one", "'false'")
    if len(options["delimiter"]) != 1:
        raise invalid("delimiter", options["delimiter"], "it is not one character", "';'")
    if format_ == LINES and options["columns"] is not None:
        problem = "plain lines have one column, line"
        raise invalid("columns", options["columns"], problem, "nothing")
    folder = folder_of(options["folder"], at.project, at.settings)
    if options["columns"] is None:
        columns = find_columns(kind_of(options, folder, ()))
    else:
        columns = columns_of(read_columns(options["columns"]))
    taken = {column.name for column in PLACE_COLUMNS}
    for column in columns:
        if column.name.lower() in taken:
            problem = f'"{column.name}" tells where a record is from'
            raise invalid("columns", column.name, problem, "'id BIGINT, name STRING'")
    keyed = {**options, "key": options["key"] or (_FILE,)}
    return typed_stream(name, keyed, (*columns, *PLACE_COLUMNS))


def _jdbc(name: str, options: Mapping[str, Any], at: Looking) -> tuple[Captured, ...]:
    check_url(options["url"])
    if (options["table"] is None) is (options["query"] is None):
        option = "url" if options["table"] is None else "query"
        problem = "one of the options table and query has to be there"
        raise invalid(option, "...", problem, "..., table = 'public.orders'")
    if options["timestamp"] is None and options["incrementing"] is None:
        option = "table" if options["query"] is None else "query"
        problem = "one of the options incrementing and timestamp has to be there"
        raise invalid(option, "...", problem, "..., incrementing = 'id'")
    database = Database(at.spark.newSession(), options)
    found = database.rows(f"SELECT * FROM {database.relation}").schema.fields  # noqa: S608
    types = [(field.name, field.dataType.simpleString()) for field in found]
    columns = columns_of(read_columns(written_columns(types)))
    number, time = options["incrementing"], options["timestamp"]
    if number is not None and not type_of(columns, "incrementing", number).startswith(_WHOLE):
        raise invalid("incrementing", number, "it is no whole number", "'id'")
    if time is not None and not type_of(columns, "timestamp", time).startswith(_TIMES):
        raise invalid("timestamp", time, "it is neither a TIMESTAMP nor a DATE", "'changed_at'")
    if options["parallel"] > 1 and number is None:
        raise invalid("parallel", str(options["parallel"]), "it needs incrementing", "1")
    keyed = {**options, "key": options["key"] or (() if number is None else (number,))}
    return typed_stream(name, keyed, columns)


def _spark(name: str, options: Mapping[str, Any], at: Looking) -> tuple[Captured, ...]:
    rows = read_format(at.spark.newSession(), options, at.project, at.settings)
    types = [(field.name, field.dataType.simpleString()) for field in rows.schema.fields]
    return typed_stream(name, options, columns_of(read_columns(written_columns(types))))


def _kafka(name: str, options: Mapping[str, Any], at: Looking) -> tuple[Captured, ...]:
    if (options["topics"] is None) is (options["pattern"] is None):
        option = "servers" if options["topics"] is None else "pattern"
        problem = "one of the options topics and pattern has to be there"
        raise invalid(option, options[option], problem, "..., topics = 'orders'")
    starting_at(options["start"])
    format_ = Format(options["format"])
    if options["columns"] is not None:
        columns = columns_of(read_columns(options["columns"]))
    elif format_ is Format.RAW:
        columns = (Column("value", "string"),)
    else:
        raise invalid("format", format_.value, "it needs the option columns", "'raw'")
    one = len(columns) == 1 and columns[0].type in ("string", "binary")
    if format_ is Format.RAW and not one:
        problem = "a value in the format raw is one column of STRING or BINARY"
        raise invalid("columns", str(options["columns"]), problem, "'value STRING'")
    _check_topics(options)
    [captured] = typed_stream(name, {**options, "key": ()}, columns)
    assert captured.events is not None
    return (replace(captured, events=replace(captured.events, format=format_)),)


def _check_topics(options: Mapping[str, Any]) -> None:
    what = f"Kafka at {options['servers']}"
    admin = Admin(connection_of(options))
    try:
        admin.ping(_PATIENCE_SECONDS)
        missing = [topic for topic in options["topics"] or () if admin.topic(topic) is None]
    except MainstemError as error:
        raise MainstemError(
            "CONNECTOR_UNREACHABLE", what=what, problem=error.message, option="servers"
        ) from None
    finally:
        admin.close()
    if missing:
        raise MainstemError(
            "SOURCE_NOT_READABLE",
            where=what,
            what=f'the topic "{missing[0]}"',
            problem="there is no such topic",
            option="topics",
        )


LOOKS: Mapping[str, Callable[[str, Mapping[str, Any], Looking], tuple[Captured, ...]]] = {
    "files": _files,
    "jdbc-poll": _jdbc,
    "kafka": _kafka,
    "spark": _spark,
}
"""By connector."""
