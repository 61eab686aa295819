"""The columns of files, by a look at the first megabyte of the first of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type

from mainstem.connect.listening.column_list import columns_of, read_columns, written_columns
from mainstem.engine.sources.file_parts import CSV, JSONL, LINES, Kind
from mainstem.engine.sources.file_plan import present
from mainstem.errors import MainstemError
from mainstem.schemas.infer import infer
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.to_columns import to_columns
from mainstem.vocabulary import Column

_MOST_FILES = 10
_MOST_BYTES = 1 << 20
_LINE = (Column("line", "string"),)


def find_columns(kind: Kind) -> tuple[Column, ...]:
    """What a record has; SOURCE_NO_COLUMNS when that cannot be told."""
    if kind.format == LINES:
        return _LINE
    files = [kind.path(file) for file in present(kind)[:_MOST_FILES]]
    if not files:
        raise _unknown(f"the folder {kind.folder}", f'there is no file "{kind.pattern}" yet')
    try:
        if kind.format == JSONL:
            return _of_json(files)
        if kind.format == CSV:
            return _of_types(_csv_types(files[0], kind))
        return _of_types(_types(pq.read_schema(files[0])))
    except (OSError, ValueError, PySparkException) as error:
        raise _unknown(files[0].name, str(error).splitlines()[0]) from None


def _of_json(files: Sequence[Path]) -> tuple[Column, ...]:
    try:
        schema = infer(_objects(files), SchemaType.JSON, "record")
    except MainstemError as error:
        raise _unknown(files[0].name, error.message) from None
    found = to_columns(parse(schema, _no_reference))
    if found.left_out:
        name, problem = found.left_out[0]
        raise _unknown(files[0].name, f'field "{name}": {problem}')
    return _of_types(found.columns)


def _objects(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        for line in _beginning(path).splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                continue  # a broken line says nothing of the others
            if isinstance(value, dict):
                yield value


def _csv_types(path: Path, kind: Kind) -> Iterator[tuple[str, str]]:
    table = pcsv.read_csv(
        io.BytesIO(_beginning(path)),
        read_options=pcsv.ReadOptions(autogenerate_column_names=not kind.header),
        parse_options=pcsv.ParseOptions(delimiter=kind.delimiter),
    )
    for name, type_ in _types(table.schema):
        yield name if kind.header else f"c{int(name[1:]) + 1}", type_


def _types(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    for field in schema:
        name = from_arrow_type(field.type, prefer_timestamp_ntz=True).simpleString()
        yield field.name, "string" if name == "void" else name


def _of_types(types: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """The columns, if they can be called so."""
    return columns_of(read_columns(written_columns(types)))


def _beginning(path: Path) -> bytes:
    """The first lines of a file that are whole; of one that is shorter, all of it."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    return data if len(data) < _MOST_BYTES else data[: data.rfind(b"\n") + 1]


def _no_reference(reference: Reference) -> Schema:
    raise AssertionError(reference)


def _unknown(what: str, problem: str) -> MainstemError:
    return MainstemError("SOURCE_NO_COLUMNS", what=what, problem=problem, option="columns")
