"""The source `spark`: a data source of Spark by its name, or one of the project's own in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource

from mainstem.config import SparkSettings
from mainstem.connect.connectors.spark import SPEC
from mainstem.connect.listening.column_list import columns_of, read_columns
from mainstem.connect.spec import ConnectorSpec
from mainstem.definitions.model import Definition
from mainstem.engine.encode import JSON_OPTIONS, key_of
from mainstem.engine.formats import Formats
from mainstem.engine.sources.records import records_of
from mainstem.engine.spark_errors import short
from mainstem.errors import MainstemError, did_you_mean

_by_value: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
FOLDER = "connectors"
PASSED_ON = "option."
_SPEC = "SPEC"


class OwnSource(NamedTuple):
    """A data source in Python, of a file of the project."""

    made: type[DataSource]
    spec: ConnectorSpec | None
    file: str


def own_sources(project: Path) -> dict[str, OwnSource]:
    """Those of the project, by name; SOURCE_CODE when a file cannot be loaded."""
    found = {}
    for path in sorted((project / FOLDER).glob("*.py")):
        module = _loaded(path)
        spec = getattr(module, _SPEC, None)
        for made in vars(module).values():
            own = isinstance(made, type) and made.__module__ == module.__name__
            if own and issubclass(made, DataSource):
                file = f"{FOLDER}/{path.name}"
                described = spec if isinstance(spec, ConnectorSpec) else None
                found[made.name()] = OwnSource(made, described, file)
    return found


def described(project: Path) -> dict[str, ConnectorSpec]:
    """The descriptions of the project's own data sources, by name, as they are written in SQL."""
    [format_] = [field for field in SPEC.fields if field.name == "format"]
    return {
        name: ConnectorSpec(
            SPEC.name,
            SPEC.role,
            own.spec.doc,
            (
                replace(format_, example=name),
                *(replace(field, name=PASSED_ON + field.name) for field in own.spec.fields),
            ),
        )
        for name, own in own_sources(project).items()
        if own.spec is not None
    }


def read_format(
    session: SparkSession, options: Mapping[str, Any], project: Path, settings: SparkSettings
) -> DataFrame:
    """The rows as a stream; what is wrong with the options is told at the one to blame."""
    name = options["format"]
    passed = options[PASSED_ON]
    own = own_sources(project)
    if name in own:
        _check(own[name], passed)
        session.dataSource.register(own[name].made)
    elif name.lower() not in (known.lower() for known in settings.source_formats):
        known = [*settings.source_formats, *own]
        problem = f"it is none of {', '.join(known)}.{did_you_mean(name, known)}"
        raise MainstemError(
            "INVALID_OPTION",
            option="format",
            value=name,
            problem=problem,
            advice="Name it in [spark] source_formats of mainstem.toml, or write it: connectors/.",
        )
    reading = session.readStream.format(name).options(**passed)
    if options["columns"] is not None:
        columns = columns_of(read_columns(options["columns"]))
        reading = reading.schema(", ".join(f"{_quoted(c.name)} {c.type}" for c in columns))
    try:
        return reading.load()
    except PySparkException as error:
        what = f'the format "{name}"'
        raise MainstemError(
            "SOURCE_NOT_READABLE", where=what, what="rows", problem=short(error), option="format"
        ) from None


def as_records(rows: DataFrame, stream: Definition, formats: Formats) -> DataFrame:
    """The rows as records of the stream."""
    typed = rows.select(
        *(F.col(_quoted(c.name)).cast(c.type).alias(c.name) for c in stream.columns)
    )
    value = F.to_json(F.struct("*"), JSON_OPTIONS).cast("binary")
    key = key_of(stream, formats).cast("binary")
    return records_of(typed.select(key.alias("key"), value.alias("value")))


def _check(own: OwnSource, passed: Mapping[str, str]) -> None:
    """Holds options against the description beside the class, if there is one."""
    if own.spec is None:
        return
    try:
        own.spec.validate(dict(passed))
    except MainstemError as error:
        if "option" in error.params:
            error.params["option"] = PASSED_ON + str(error.params["option"])
        raise


def _loaded(path: Path) -> ModuleType:
    """A file as a module, whose classes travel to workers as they are."""
    name = f"mainstem_{FOLDER}_{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(module))  # noqa: S102
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises
        problem = f"{type(error).__name__}: {error}"
        raise MainstemError("SOURCE_CODE", file=f"{FOLDER}/{path.name}", problem=problem) from None
    if before is None:
        _by_value(module)
    return module


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
