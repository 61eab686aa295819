"""The source `files`: each batch reads parts of files, which are noted before they are read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition, Format
from mainstem.engine.encode import JSON_OPTIONS, key_of
from mainstem.engine.formats import Versions
from mainstem.engine.quarantine import diagnose_json
from mainstem.engine.sources.file_parts import CSV, JSONL, Kind, Piece
from mainstem.engine.sources.file_plan import Files, Plan
from mainstem.engine.sources.file_reader import read_columns, reader
from mainstem.engine.sources.notes import BatchNotes
from mainstem.engine.sources.records import Diagnose, records_of
from mainstem.engine.sources.source import Surroundings
from mainstem.engine.values import CORRUPT, column_of, corrupt_of, row_of
from mainstem.errors import MainstemError
from mainstem.schemas.csv_rows import row_text
from mainstem.schemas.csv_text import BadLine
from mainstem.vocabulary import HIDDEN_PREFIX, Column

PLACE_COLUMNS = (Column("file", "string"), Column("position", "bigint"))
_FORMATS = {JSONL: Format.JSON, CSV: Format.CSV}
_FOUND, _CAUSE = HIDDEN_PREFIX + "found", HIDDEN_PREFIX + "cause"
_MOST_TASKS = 4
_SUM_UP_EVERY = 50


def folder_of(written: str, project: Path, settings: SparkSettings) -> Path:
    """The folder of an option, if a source may read it: SOURCE_FOLDER when not."""
    folder = (project / written).resolve()
    homes = [(project / home).resolve() for home in settings.source_folders]
    if not any(folder.is_relative_to(home) for home in homes):
        problem = f"sources may read {', '.join(settings.source_folders) or 'no folder'} alone"
        raise MainstemError("SOURCE_FOLDER", folder=written, problem=problem, option="folder")
    if not folder.is_dir():
        problem = "there is no such folder"
        raise MainstemError("SOURCE_FOLDER", folder=written, problem=problem, option="folder")
    return folder


def kind_of(options: Mapping[str, Any], folder: Path, columns: Sequence[Column]) -> Kind:
    """What the files of a source are, by its options."""
    return Kind(
        folder=str(folder),
        pattern=options["pattern"],
        format=options["format"],
        columns=tuple(columns),
        delimiter=options["delimiter"],
        tail=options["tail"],
        header=options["header"],
        settle=options["settle"] / 1000,
        batch_bytes=options["batch_bytes"],
    )


class FileBatches:
    """An `Asked` source."""

    few = True

    def __init__(self, at: Surroundings) -> None:
        self._at = at
        folder = folder_of(at.options["folder"], at.project, at.settings)
        stream = at.entry.definition
        own = stream.columns[: -len(PLACE_COLUMNS)]
        self._kind = kind_of(at.options, folder, own)
        self._lines = line_definition(stream, self._kind)
        self._files = Files(self._kind)
        self._notes = BatchNotes(at.checkpoints, at.checkpoint)
        self._noted = 0
        self._plan = Plan([])
        known, behind = self._notes.since()
        self._files.from_json(known or [])
        for note in behind:
            self._files.take([piece for task in _tasks(note) for piece in task])

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame | None:
        """The records of the parts that the batch reads."""
        note = self._notes.of(batch_id)
        if note is None:
            self._plan = self._files.plan(self._at.clock.now())
            if not self._plan.pieces:
                return None
            note = {"tasks": [[asdict(p) for p in task] for task in _shared(self._plan.pieces)]}
            self._notes.write(batch_id, note)
            self._files.take(self._plan.pieces)
            self._tidy(batch_id)
        tasks = _tasks(note)
        schema = from_arrow_schema(read_columns(self._kind))
        empty = batch.sparkSession.range(0, len(tasks), 1, len(tasks))
        return self._records(empty.mapInArrow(reader(self._kind, tasks), schema))

    def release(self) -> None:
        """Nothing is kept for a batch."""

    @property
    def more(self) -> bool:
        """True when the last batch has left some parts for the next."""
        return bool(self._plan.pieces) and self._plan.waiting > 0

    @property
    def told(self) -> Mapping[str, Any]:
        """How many files, and what of them is to be read yet."""
        plan = self._plan
        told: dict[str, Any] = {"files": self._files.count, "waiting_bytes": plan.waiting}
        return told | ({"changed_files": plan.altered} if plan.altered else {})

    @property
    def diagnose(self) -> Diagnose:
        """What tells why a line is no record."""
        return Diagnosis(self._lines)

    def _tidy(self, batch_id: int) -> None:
        self._noted += 1
        if self._noted % _SUM_UP_EVERY == 0:
            self._notes.sum_up(batch_id, self._files.to_json())

    def _records(self, read: DataFrame) -> DataFrame:
        stream = self._at.entry.definition
        rows = _rows(read) if self._kind.by_group else _parsed(read, self._lines)
        row = F.struct(*(F.col(_quoted(column.name)) for column in stream.columns))
        value = F.to_json(row, JSON_OPTIONS).cast("binary")
        number = F.concat_ws(" ", F.lit(self._kind.unit), F.col("position"))
        whole = F.col(_FOUND).isNull()
        return records_of(
            rows.select(
                key_of(stream, self._at.formats).cast("binary").alias("key"),
                F.when(F.col(_CAUSE).isNull(), value)
                .otherwise(F.coalesce(_FOUND, F.col("file").cast("binary")))
                .alias("value"),
                F.when(whole, F.col("file"))
                .otherwise(F.concat_ws(", ", "file", number))
                .alias("place"),
                F.col(_CAUSE).alias("cause"),
            )
        )


class Diagnosis:
    """Why a line is no record; travels to workers."""

    def __init__(self, lines: Definition) -> None:
        self._lines = lines

    def __call__(self, line: bytes) -> str:
        """As near as can be told without Spark."""
        if self._lines.format is Format.JSON:
            return diagnose_json(line, self._lines.columns)
        try:
            text = line.decode()
            if self._lines.format is Format.CSV:
                row_text(self._lines, text)
        except UnicodeDecodeError as error:
            return f"it is not UTF-8: {error.reason} at byte {error.start}"
        except BadLine as problem:
            return str(problem)
        return "a field does not fit its column's type"


def line_definition(stream: Definition, kind: Kind) -> Definition:
    """What a line is, as if it were the value of a record."""
    format_ = _FORMATS.get(kind.format, Format.RAW)
    delimiter = kind.delimiter if format_ is Format.CSV else None
    return replace(stream, columns=kind.columns, key=(), format=format_, delimiter=delimiter)


def _rows(read: DataFrame) -> DataFrame:
    """Rows of Parquet, which have their types."""
    # of one that does not fit, only its place is known
    found = F.lit(None).cast("binary")
    return read.withColumns({_FOUND: found, _CAUSE: F.col("refused")})


def _parsed(read: DataFrame, lines: Definition) -> DataFrame:
    """Lines as rows; a line that is none keeps its text."""
    place = ("file", "position", "refused", "value")
    raw = read.withColumnRenamed("line", "value")
    rows = raw.select(row_of(lines, Versions()), *place)
    columns = [column_of(lines, Versions(), c.name).alias(c.name) for c in lines.columns]
    return rows.select(*columns, corrupt_of(lines, Versions()), *place).select(
        *(_quoted(c.name) for c in lines.columns),
        "file",
        "position",
        F.col("value").alias(_FOUND),
        F.coalesce("refused", CORRUPT).alias(_CAUSE),
    )


def _shared(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The parts divided among tasks; those of a file stay in their order."""
    count = min(_MOST_TASKS, len(pieces))
    tasks: list[list[Piece]] = [[] for _ in range(count)]
    for piece in pieces:
        tasks[zlib.crc32(piece.key.encode()) % count].append(piece)
    return tasks


def _tasks(note: Mapping[str, Any]) -> list[list[Piece]]:
    return [[Piece(**fields) for fields in task] for task in note["tasks"]]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
