"""Parts of files: where one ends, and what is in it. No Spark: it runs in driver and workers."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mainstem.schemas.arrow_types import arrow_type
from mainstem.vocabulary import Column

PARQUET, CSV, JSONL, LINES = "parquet", "csv", "jsonl", "lines"
_CHUNK = 1 << 20
_SMALLEST = 4096
_HEAD_BYTES = 256


@dataclass(frozen=True, slots=True)
class Kind:
    """What the files of a source are; plain values, so that it travels to workers."""

    folder: str
    pattern: str
    format: str
    columns: tuple[Column, ...]
    """Of a record, without those that say where it is from."""
    delimiter: str = ","
    tail: bool = False
    header: bool = False
    settle: float = 0.0
    """Seconds without a change after which a file is taken to be whole."""
    batch_bytes: int = 1 << 25

    @property
    def by_group(self) -> bool:
        """True when a file has row groups in the place of lines."""
        return self.format == PARQUET

    @property
    def unit(self) -> str:
        """What positions count."""
        return "row" if self.by_group else "line"

    def path(self, file: str) -> Path:
        """Where a file is."""
        return Path(self.folder) / file

    def check_header(self, path: Path) -> None:
        """ValueError when the file's first line does not name the columns, and should."""
        if not self.header:
            return
        with path.open("rb") as file:
            line = file.readline(_CHUNK)
        names = header_names(line, self.delimiter)
        wanted = [column.name for column in self.columns]
        if [name.lower() for name in names] != [name.lower() for name in wanted]:
            problem = f"its header is {', '.join(names)}; the columns are {', '.join(wanted)}"
            raise ValueError(problem)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file: bytes of lines, or row groups of Parquet."""

    key: str
    """By which the file is known."""
    file: str
    """Its path inside of the folder."""
    start: int
    end: int
    first: int
    """The number of its first line, or row, from 1 on."""
    next: int
    """The number behind its last one."""
    size: int
    """Bytes of the file when the part was planned."""
    changed: int
    """When the file had been changed last by then, in nanoseconds."""
    done: bool
    """True when nothing of the file is behind it."""
    head: str = ""
    """Of a file that grows: how many of its first bytes, and a hash of them."""
    cause: str | None = None
    """Why nothing more of the file can be read."""


def header_names(line: bytes, delimiter: str) -> list[str]:
    """The names in the first line of a CSV file."""
    text = line.decode("utf-8-sig", "replace").rstrip("\r\n")
    return [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]


def head_of(path: Path, most: int) -> str:
    """What tells a file from another one that has its number: `length:hash`."""
    with path.open("rb") as file:
        data = file.read(min(most, _HEAD_BYTES))
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()[:16]}"


def line_end(path: Path, start: int, size: int, most: int, *, whole: bool) -> tuple[int, int]:
    """Where a part of about `most` bytes ends, with a line; and how many lines are in it.

    `whole`: the file does not grow any more, so what is behind its last end of a line is a line.
    """
    at, end, lines = start, start, 0
    chunk = min(_CHUNK, max(most, _SMALLEST))
    with path.open("rb") as file:
        file.seek(start)
        while at < size and (end == start or at - start < most):
            data = file.read(min(chunk, size - at))
            if not data:
                break  # it was cut just now
            last = data.rfind(b"\n")
            if last >= 0:
                end = at + last + 1
            lines += data.count(b"\n")
            at += len(data)
    if whole and at >= size and end < size:
        return size, lines + 1
    return end, lines


def lines_of(path: Path, piece: Piece) -> Iterator[tuple[int, bytes]]:
    """The lines of a part with their numbers, without what ends them."""
    number, rest, left = piece.first, b"", piece.end - piece.start
    with path.open("rb") as file:
        file.seek(piece.start)
        while left > 0:
            data = file.read(min(_CHUNK, left))
            if not data:
                raise EOFError
            left -= len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield number, line.removesuffix(b"\r")
                number += 1
    if rest:
        yield number, rest.removesuffix(b"\r")


def parquet_problem(schema: pa.Schema, columns: Sequence[Column]) -> str | None:
    """Why rows of that schema do not have these columns; None: they do, or can be made to."""
    for column in columns:
        index = schema.get_field_index(column.name)
        if index < 0:
            return f'it has no column "{column.name}"'
        try:
            pa.array([], schema.field(index).type).cast(arrow_type(column.type))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            kind = schema.field(index).type
            return f'its column "{column.name}" is {kind}, not {column.type}'
    return None
