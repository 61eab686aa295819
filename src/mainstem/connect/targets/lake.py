"""Batches of a sink into a lake table: staged by the tasks, one commit by the driver.

A lake table changes by commits, and each writes files of metadata: a commit for each partition of
the topic would make thousands of small ones. So the tasks bring their rows to Parquet files beside
the table (`StagedPart`), which keep the offsets, and the driver brings all of a batch into it:

1. It looks up to which offset the table has each partition; the table itself says so, by what the
   last commits wrote along with the rows. Rows before it are left out. Crash: nothing has happened.
2. It writes the table's own files from the staged ones. Crash: nobody refers to them; the batch
   comes again, at 1.
3. It commits files and offsets in one step, on top of the state that 1 has looked at. If somebody
   else has committed meanwhile, be it an older driver that was thought dead, it begins again at 1.
   Crash: the batch comes again, and 1 finds that the table has all of it.
4. It removes the staged files; in the first batch of a run, all that are left of earlier ones, and
   none of its own: an older driver must not take those of a younger one. Crash: the next run does
   so.
5. Now and then it makes small files into larger ones, some at a time.
"""

from __future__ import annotations

import json
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from mainstem.connect.targets.lake_schema import fitted, partitions_of
from mainstem.connect.targets.object_store import filesystem, to_disk
from mainstem.connect.targets.target import (
    GONE,
    OFFSET,
    Part,
    Poison,
    Shape,
    by_partition,
    last_of_each,
    poison_at,
    refused,
)

_LOG = logging.getLogger(__name__)
STAGING = "_mainstem"
"""Beside the table's own folders; readers and clean-ups of tables pass over such a name."""
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Extent:
    """The records of one partition in a staged part."""

    topic: str
    topic_id: str
    partition: int
    next: int
    """Behind the last one."""

    @property
    def id(self) -> str:
        """What their position is kept under, in the table, for one sink."""
        return f"{self.topic_id}.{self.partition}"


@dataclass(frozen=True, slots=True)
class Staged:
    """A part as the task's token tells it."""

    file: str
    extents: tuple[Extent, ...]

    def text(self) -> str:
        """For the token."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def of(text: str) -> Staged:
        """From the token."""
        said = json.loads(text)
        return Staged(said["file"], tuple(Extent(**extent) for extent in said["extents"]))


class StagedPart:
    """The target of a lake's sink: one part of a batch becomes one Parquet file."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._store: pafs.FileSystem | None = None
        self._folder = self._file = ""
        self._required: tuple[str, ...] = ()
        self._writer: pq.ParquetWriter | None = None
        self._topics: Mapping[str, str] = {}
        self._ends: dict[tuple[str, int], int] = {}

    def open(self, part: Part) -> None:
        """Finds the place."""
        told = json.loads(part.prepared)
        self._required = tuple(told["required"])
        self._store, root = filesystem(told["place"], self._options)
        self._folder = f"{root}/{part.sink}/{part.epoch}"
        self._file = f"{self._folder}/{part.batch}-{uuid.uuid4().hex}.parquet"
        self._topics = part.topics

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Adds the rows to the file, but for those that the table will never take."""
        assert self._store is not None
        for topic, partition, mine in by_partition(rows):
            self._ends[topic, partition] = pc.max(mine[OFFSET]).as_py() + 1
        rows, poison = self._taken(rows)
        if self._writer is None:
            self._store.create_dir(self._folder)
            self._writer = pq.ParquetWriter(
                self._file, rows.schema, filesystem=self._store, compression="zstd"
            )
        self._writer.write_table(rows)
        return poison

    def finish(self) -> Sequence[Poison]:
        """The file is whole, and on the disk."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            if isinstance(self._store, pafs.LocalFileSystem):
                to_disk(self._file)
        return []

    def staged(self) -> str:
        """Where the part is, and what is in it."""
        extents = (
            Extent(topic, self._topics[topic], partition, end)
            for (topic, partition), end in self._ends.items()
        )
        return Staged(self._file, tuple(extents)).text()

    def close(self) -> None:
        """Lets a file be that is not whole: the driver removes it."""
        if self._writer is not None:
            self._writer.close()

    def _taken(self, rows: pa.Table) -> tuple[pa.Table, list[Poison]]:
        """The rows without those that lack what the table demands."""
        poison = []
        for name in self._required:
            lacks = pc.and_(pc.is_null(rows[name]), pc.invert(rows[GONE]))
            cause = f'column "{name}" of the table takes no NULL'
            found = pc.indices_nonzero(lacks).to_pylist()
            poison += [poison_at(rows, index, cause) for index in found]
            if found:
                rows = rows.filter(pc.invert(lacks))
        return rows, poison


class Conflict(Exception):
    """Somebody else has committed meanwhile."""


class LakeTable(ABC):
    """A table of a lake, for the one driver that commits to it."""

    what: str
    """How errors call it."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where parts are staged; asked for behind `prepare`."""

    @abstractmethod
    def prepare(self) -> pa.Schema:
        """Makes the table or its missing columns; says which it has."""

    @abstractmethod
    def positions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The next offsets by id, as of now: what is written next is on top of this state."""

    @abstractmethod
    def append(self, rows: pa.Table, positions: Mapping[str, int]) -> None:
        """Adds rows and notes positions, in one commit; `Conflict` when the state is another."""

    @abstractmethod
    def merge(self, rows: pa.Table, gone: pa.Table, positions: Mapping[str, int]) -> None:
        """Replaces or adds rows and removes those that are gone, by their keys; as `append`."""

    @abstractmethod
    def compact(self) -> None:
        """Makes some small files into larger ones; may lose against another commit."""


def key_in(key: Sequence[str], rows: pa.Table) -> list[str]:
    """The columns of a key, called as the table calls them."""
    wanted = {name.lower() for name in key}
    return [name for name in rows.column_names if name.lower() in wanted]


class LakeCommitter:
    """Brings the staged parts of each batch into a table."""

    def __init__(
        self, table: LakeTable, options: Mapping[str, Any], shape: Shape, sink: str
    ) -> None:
        self._table = table
        self._options = options
        self._shape = shape
        self._sink = sink
        self._schema: pa.Schema | None = None
        self._first = True
        self._commits = 0

    def prepare(self) -> str:
        """Makes what is missing."""
        self._schema = self._table.prepare()
        names = {column.name.lower(): column.name for column in self._shape.columns}
        required = [
            names[field.name.lower()]
            for field in self._schema
            if not field.nullable and field.name.lower() in names
        ]
        return json.dumps({"place": self._table.place, "required": required})

    def commit(self, staged: Sequence[str]) -> None:
        """One commit for all parts, behind which the staged files go."""
        parts = [Staged.of(text) for text in staged]
        store, _ = filesystem(self._table.place, self._options)
        for _ in range(_TRIES):
            try:
                self._bring(parts, store)
                break
            except Conflict:
                problem = "others change it all the time while the sink writes"
                advice = "The sink tries again."
            except FileNotFoundError as error:  # or an older driver has just brought it all
                problem = f"rows that were staged for it are gone: {error}"
                advice = f"Drop the sink {self._sink} and create it again: it adds what is missing."
        else:
            raise refused(self._table.what, problem, advice)
        self._clear(parts, store)
        every = self._options["compact_every"]
        if every and self._commits % every == 0:
            try:
                self._table.compact()
            except Exception as error:  # noqa: BLE001 - the rows are there; upkeep can wait
                _LOG.warning("%s: small files stay as they are: %s", self._table.what, error)
        self._commits += 1

    def _bring(self, parts: Sequence[Staged], store: pafs.FileSystem) -> None:
        ids = [extent.id for part in parts for extent in part.extents]
        known = self._table.positions(ids)
        ends = {extent.id: extent.next for part in parts for extent in part.extents}
        moved = {id_: end for id_, end in ends.items() if end > known.get(id_, 0)}
        if not moved:
            return
        new = [rows for part in parts for rows in self._new(part, known, store)]
        rows = pa.concat_tables(new) if new else None
        if rows is None or not rows.num_rows:
            return  # only rows that the table does not take: the quarantine has them
        assert self._schema is not None
        if self._shape.upserts:
            rows = last_of_each(rows)
        new_rows = fitted(rows, self._schema, partitions_of(self._options["partition_by"]))
        if not self._shape.upserts:
            self._table.append(new_rows, moved)
            return
        gone = rows[GONE]
        self._table.merge(new_rows.filter(pc.invert(gone)), new_rows.filter(gone), moved)

    def _new(
        self, part: Staged, known: Mapping[str, int], store: pafs.FileSystem
    ) -> list[pa.Table]:
        """The rows of a part that the table does not have."""
        if all(extent.next <= known.get(extent.id, 0) for extent in part.extents):
            return []
        rows = pq.read_table(part.file, filesystem=store, partitioning=None)
        floors = {(e.topic, e.partition): known.get(e.id, 0) for e in part.extents}
        if not any(floors.values()):
            return [rows]
        return [
            mine.filter(pc.greater_equal(mine[OFFSET], floors[topic, partition]))
            for topic, partition, mine in by_partition(rows)
        ]

    def _clear(self, parts: Sequence[Staged], store: pafs.FileSystem) -> None:
        """Removes what is of no use any more."""
        files = {part.file for part in parts}
        if self._first:
            for folder in {file.rpartition("/")[0] for file in files}:
                there = store.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
                now = min(_batch(file) for file in files)
                files |= {info.path for info in there if info.is_file and _batch(info.path) < now}
            self._first = False
        for file in files:
            try:
                store.delete_file(file)
            except FileNotFoundError:
                continue


def _batch(file: str) -> int:
    """The number of the batch that a staged file is of."""
    return int(file.rpartition("/")[2].partition("-")[0])
