"""What a source that runs in the engine brings: asked while a plan is made, before it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mainstem.config import SparkSettings
from mainstem.connect.capture import Captured
from mainstem.connect.listening.captures import typed_stream
from mainstem.connect.listening.column_list import columns_of, read_columns
from mainstem.connect.listening.options import invalid
from mainstem.definitions.model import Definition
from mainstem.engine.sources.file_look import find_columns
from mainstem.engine.sources.file_parts import CSV, LINES, PARQUET
from mainstem.engine.sources.files import PLACE_COLUMNS, folder_of, kind_of
from mainstem.engine.sources.source import resolved, without_secrets
from mainstem.errors import MainstemError

_FILE = "file"


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


LOOKS: Mapping[str, Callable[[str, Mapping[str, Any], Looking], tuple[Captured, ...]]] = {
    "files": _files,
}
"""By connector."""
