"""Rows of a sink into files of a folder, exactly once.

A file is named after its sink, topic, partition, first and last offset, and the topic's id. For
each partition a note in `_mainstem` has the next offset. What happens to a part of a batch:

1. Records before the noted offset are in files, and are left out. The first time after a start,
   files behind the noted offset go: a part that was not finished left them.
2. The rows are written to files whose names begin with a dot, which readers pass over. Crash: they
   go the next time.
3. Each is brought to the disk and then given its name, in one step: it is there whole, or not at
   all. Crash: the part comes again, and makes the same files in place of those that are there.
4. The note is written in the same way. Crash: the part comes again, and is known.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.connect.targets.file_formats import FileWriter, writer_for
from mainstem.connect.targets.object_store import check_folder, check_path
from mainstem.connect.targets.target import (
    DELETED,
    GONE,
    OFFSET,
    ROW,
    TIME,
    Form,
    Part,
    Poison,
    Shape,
    by_partition,
    json_rows,
    mismatch,
    refused,
)

GUARANTEE = "exactly once: files are named after their records, and appear whole or not at all"
KEYED = False

NOTES = "_mainstem"
_FORMS = {"parquet": Form.COLUMNS, "csv": Form.FLAT, "jsonl": Form.JSON}
_FOLDERS = {"day": "date=%Y-%m-%d", "hour": "date=%Y-%m-%d/hour=%H"}
_UNKNOWN = {"day": "date=unknown", "hour": "date=unknown/hour=unknown"}
_MOST_OPEN = 100
"""Files that are written at once; more become several files."""


def form(options: Mapping[str, Any]) -> Form:
    """As the format needs it."""
    return _FORMS[options["format"]]


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the folder can be made or written to."""
    folder = Path(options["folder"])
    check_path("folder", options["folder"])
    if any(column.name.lower() == DELETED for column in shape.columns) and shape.deletes:
        raise mismatch(
            f"folder {folder}",
            f'"{DELETED}" is the name of a column of the rows, and says there what is deleted',
            "Give the column another name in a query before the sink.",
        )
    with told(folder):
        check_folder(f"folder {folder}", folder)


def open_target(options: Mapping[str, Any], shape: Shape) -> FilesTarget:
    """The target for one task."""
    return FilesTarget(options, shape)


class FilesTarget:
    """One part of a batch: some new files."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._folder = Path(options["folder"])
        self._format = str(options["format"])
        self._by = str(options["partition_by"])
        self._shape = shape
        self._part: Part | None = None
        self._open: dict[tuple[str, int, str], _NewFile] = {}
        self._full: list[_NewFile] = []
        self._next: dict[tuple[str, int], int] = {}
        self._floor: dict[tuple[str, int], int] = {}

    def open(self, part: Part) -> None:
        """Makes the folder."""
        self._part = part
        with told(self._folder):
            (self._folder / NOTES).mkdir(parents=True, exist_ok=True)

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Adds the rows that are new to files that nobody sees yet."""
        with told(self._folder):
            for topic, partition, mine in by_partition(rows):
                floor = self._known(topic, partition)
                last = pc.max(mine[OFFSET]).as_py()
                self._next[topic, partition] = max(floor, last + 1)
                new = mine.filter(pc.greater_equal(mine[OFFSET], floor))
                for folder, some in self._by_folder(new):
                    self._file(topic, partition, folder).add(self._shown(some), some[OFFSET])
        return []

    def finish(self) -> Sequence[Poison]:
        """Gives the files their names, then notes how far the partitions are."""
        with told(self._folder):
            for file in (*self._full, *self._open.values()):
                file.publish()
            self._full, self._open = [], {}
            for (topic, partition), offset in self._next.items():
                if offset > self._floor[topic, partition]:
                    text = json.dumps({"topic": topic, "next_offset": offset})
                    _put(self._note(topic, partition), text.encode())
        return []

    def close(self) -> None:
        """Removes what has no name yet."""
        for file in (*self._full, *self._open.values()):
            file.drop()

    def _known(self, topic: str, partition: int) -> int:
        """From which offset on the records of a partition are new."""
        if (topic, partition) not in self._floor:
            try:
                note = json.loads(self._note(topic, partition).read_text("utf-8"))
            except FileNotFoundError:
                note = {"next_offset": 0}
            floor = self._floor[topic, partition] = int(note["next_offset"])
            if self._part is not None and self._part.recovering:
                self._clear(topic, partition, floor)
        return self._floor[topic, partition]

    def _clear(self, topic: str, partition: int, floor: int) -> None:
        """Removes files that a part has left which was not finished."""
        begin = f"{self._owner(topic)}-{partition}-"
        for pattern in (f"{begin}*", f".{begin}*"):
            for path in self._folder.rglob(pattern):
                first = path.name.lstrip(".").removeprefix(begin).partition("-")[0]
                if path.name.startswith(".") or int(first) >= floor:
                    path.unlink(missing_ok=True)

    def _owner(self, topic: str) -> str:
        assert self._part is not None
        return f"{self._part.sink}-{topic}-{self._part.topics[topic][:8]}"

    def _note(self, topic: str, partition: int) -> Path:
        return self._folder / NOTES / f"{self._owner(topic)}-{partition}.{self._format}.json"

    def _by_folder(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows by the folder that they belong to."""
        if not rows.num_rows:
            return
        if self._by == "none":
            yield "", rows
            return
        folders = pc.fill_null(pc.strftime(rows[TIME], _FOLDERS[self._by]), _UNKNOWN[self._by])
        for folder in pc.unique(folders).to_pylist():
            yield folder, rows.filter(pc.equal(folders, folder))

    def _file(self, topic: str, partition: int, folder: str) -> _NewFile:
        place = (topic, partition, folder)
        found = self._open.pop(place, None)
        if found is None:
            if len(self._open) >= _MOST_OPEN:
                oldest = self._open.pop(next(iter(self._open)))
                oldest.end()
                self._full.append(oldest)
            begin = f"{self._owner(topic)}-{partition}-"
            found = _NewFile(self._folder / folder, begin, self._format)
        self._open[place] = found
        return found

    def _shown(self, rows: pa.Table) -> pa.Table:
        """What a reader of the files gets to see."""
        if self._format == "jsonl":
            return pa.table({ROW: json_rows(rows, deletes=self._shape.deletes)})
        columns = {column.name: _readable(rows[column.name]) for column in self._shape.columns}
        if self._format == "parquet":
            columns = {column.name: rows[column.name] for column in self._shape.columns}
        if self._shape.deletes:
            columns[DELETED] = rows[GONE]
        return pa.table(columns)


class _NewFile:
    """A file that gets its name when it is whole."""

    def __init__(self, folder: Path, begin: str, format: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._begin = begin
        self._format = format
        self._path = folder / f".{begin}{uuid.uuid4().hex}"
        self._writer: FileWriter | None = None
        self._first: int | None = None
        self._last = 0

    def add(self, rows: pa.Table, offsets: pa.ChunkedArray) -> None:
        """More rows, with higher offsets than those before."""
        if self._writer is None:
            self._writer = writer_for(self._format, self._path, rows.schema)
        self._writer.write(rows)
        bounds = pc.min_max(offsets).as_py()
        self._first = bounds["min"] if self._first is None else self._first
        self._last = bounds["max"]

    def end(self) -> None:
        """No more rows come: the file is on the disk when this returns."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            to_disk(self._path)

    def publish(self) -> None:
        """Shows the file to readers."""
        self.end()
        name = f"{self._begin}{self._first:012}-{self._last:012}.{self._format}"
        self._path.replace(self._folder / name)
        to_disk(self._folder)

    def drop(self) -> None:
        """The file is not wanted."""
        if self._writer is not None:
            self._writer.close()
        self._path.unlink(missing_ok=True)


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column for a text: bytes as base64."""
    if not pa.types.is_binary(column.type):
        return column
    values = (None if v is None else base64.b64encode(v).decode() for v in column.to_pylist())
    return pa.chunked_array([pa.array(values, pa.string())])


def _put(path: Path, data: bytes) -> None:
    """Writes a file in one step."""
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    temporary.write_bytes(data)
    to_disk(temporary)
    temporary.replace(path)
    to_disk(path.parent)


def to_disk(path: Path) -> None:
    """What was written there, or named there, stays."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """The system's errors as ours."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
        if error.filename:
            problem = f"{problem}: {error.filename}"
        raise refused(f"folder {folder}", problem) from None
