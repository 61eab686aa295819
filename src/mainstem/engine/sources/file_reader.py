"""What the tasks of the source `files` read: lines as bytes, rows of Parquet by their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from mainstem.engine.sources.file_parts import LINES, Kind, Piece, lines_of
from mainstem.engine.sources.file_plan import find_by_key
from mainstem.engine.spark_errors import task_failure
from mainstem.errors import MainstemError
from mainstem.schemas.arrow_types import arrow_type

_ROWS = 10_000
_MARK = b"\xef\xbb\xbf"
_PLACE = {"file": pa.string(), "position": pa.int64(), "refused": pa.string()}
LINE = {"line": pa.binary(), **_PLACE}
"""What is read of a file of lines; `refused` says why nothing of a file can be read."""


def read_columns(kind: Kind) -> pa.Schema:
    """What the tasks give."""
    if not kind.by_group:
        return pa.schema(LINE)
    columns = {column.name: arrow_type(column.type) for column in kind.columns}
    return pa.schema({**columns, **_PLACE})


def reader(
    kind: Kind, tasks: Sequence[Sequence[Piece]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What each task runs: it reads the parts that its number has."""

    def read(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        try:
            for piece in tasks[number]:
                yield from read_piece(kind, piece)
        except MainstemError as error:
            # only text gets through Spark to the driver
            raise RuntimeError(task_failure(error)) from None

    return read


def read_piece(kind: Kind, piece: Piece) -> Iterator[pa.RecordBatch]:
    """The lines or rows of a part; SOURCE_FILE_LOST when the file is not what it was."""
    schema = read_columns(kind)
    if piece.cause is not None:
        row = {"file": piece.file, "position": piece.first, "refused": piece.cause}
        yield pa.RecordBatch.from_pylist([row], schema=schema)
        return
    path = _path(kind, piece)
    try:
        found = _groups(kind, piece, path) if kind.by_group else _lines(kind, piece, path)
        yield from found
    except EOFError:
        raise _lost(kind, piece, "was cut") from None
    except OSError as error:
        raise _lost(kind, piece, f"cannot be read: {error.strerror or error}") from None


def _lines(kind: Kind, piece: Piece, path: Path) -> Iterator[pa.RecordBatch]:
    lines: list[bytes] = []
    numbers: list[int] = []

    def batch() -> pa.RecordBatch:
        count = len(lines)
        columns = [
            pa.array(lines, pa.binary()),
            pa.repeat(piece.file, count),
            pa.array(numbers, pa.int64()),
            pa.nulls(count, pa.string()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(LINE))

    for number, line in lines_of(path, piece):
        if number == 1:
            if kind.header:
                continue
            line = line.removeprefix(_MARK)  # noqa: PLW2901 - it is no part of the text
        if not line.strip() and kind.format != LINES:
            continue
        lines.append(line)
        numbers.append(number)
        if len(lines) == _ROWS:
            yield batch()
            lines, numbers = [], []
    if lines:
        yield batch()


def _groups(kind: Kind, piece: Piece, path: Path) -> Iterator[pa.RecordBatch]:
    names = [column.name for column in kind.columns]
    number = piece.first
    with pq.ParquetFile(path) as file:
        groups = list(range(piece.start, piece.end))
        for rows in file.iter_batches(_ROWS, row_groups=groups, columns=names):
            yield from _typed(kind, piece, rows, number)
            number += rows.num_rows


def _typed(kind: Kind, piece: Piece, rows: pa.RecordBatch, number: int) -> Iterator[pa.RecordBatch]:
    """Rows with the columns' types; one whose value does not fit is told apart."""
    schema, count = read_columns(kind), rows.num_rows
    try:
        columns = [_cast(rows.column(c.name), arrow_type(c.type)) for c in kind.columns]
    except pa.ArrowInvalid as error:
        if count > 1:
            for index in range(count):
                yield from _typed(kind, piece, rows.slice(index, 1), number + index)
            return
        row = {"file": piece.file, "position": number, "refused": str(error)}
        yield pa.RecordBatch.from_pylist([row], schema=schema)
        return
    columns += [
        pa.repeat(piece.file, count),
        pa.array(range(number, number + count), pa.int64()),
        pa.nulls(count, pa.string()),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Nothing but the nanoseconds of times may be cut off."""
    return pc.cast(values, options=pc.CastOptions(kind, allow_time_truncate=True))


def _path(kind: Kind, piece: Piece) -> Path:
    """Where the file is now, if it is still the one that was planned."""
    path = kind.path(piece.file)
    try:
        facts = path.stat()
    except OSError:
        facts = None
    if kind.tail:
        if facts is not None and f"{facts.st_dev}:{facts.st_ino}" == piece.key:
            return path
        now = find_by_key(kind, piece.key)
        if now is None:
            raise _lost(kind, piece, "is gone")
        return kind.path(now)
    if facts is None:
        raise _lost(kind, piece, "is gone")
    if (facts.st_size, facts.st_mtime_ns) != (piece.size, piece.changed):
        raise _lost(kind, piece, "was changed")
    return path


def _lost(kind: Kind, piece: Piece, problem: str) -> MainstemError:
    return MainstemError("SOURCE_FILE_LOST", file=str(kind.path(piece.file)), problem=problem)
