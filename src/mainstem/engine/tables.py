"""Tables as they are at given offsets of their topics, kept where flows can read them fast.

A table is read from the log once. From then on only what is new is read: `base` holds the rows at
some offsets, as columns in files beside the checkpoints; `changes` what has happened to rows since.
A table at an offset is the base without the rows that have changed, and the last change of each of
those. When the changes have become many, a thread makes a new base of the older ones, while readers
go on with what there is; the newest stay, so that flows that lag a little still find what they ask
for. An engine that starts takes up the base that it finds.

Few rows are held by the driver (`few_rows`): a small table has no base, only changes.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.fingerprint import rules_of
from mainstem.definitions.model import Definition
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.few_rows import MOST_ROWS, as_rows, few_records, here, span
from mainstem.engine.formats import Formats
from mainstem.engine.held_table import (
    ALL_ROWS,
    NEWEST_PIECES,
    Base,
    Held,
    Only,
    Piece,
    as_one,
    kept,
    latest_of,
    release,
    table_columns,
    together,
    with_changes,
)
from mainstem.engine.rules import judged
from mainstem.engine.spark_errors import short
from mainstem.engine.table_records import changes_in, read_changes
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets

_LOG = logging.getLogger(__name__)

_LEAST_CHANGES_TO_MERGE = 20_000
_LEAST_TO_MERGE_HERE = 2_000
"""For a table that the driver holds, and will hold as long as its rows are few."""
_SHARE_TO_MERGE = 0.1
_MOST_PIECES = 10
"""Each piece of the changes is read by tasks of its own."""
_VISIBLE_SECONDS = 10.0
_READERS_SECONDS = 600.0
"""How long a reader that does not say that it is done may read what is of no use to others."""
_CHANGES_HERE = 5
"""To fetch changes is cheaper than a job for them until they are this many times the rows with
which a table is small: such rows are computed with whole, again and again."""
_FEW_BYTES = 1024 * 1024
"""Of a base's files, if the driver is to hold its rows; they are compressed."""
_ABOUT = "about"
_MERGES = "new bases of tables"


@dataclass(frozen=True)
class Changed:
    """The rows of a table that are not the same at two offsets."""

    before: Callable[[], DataFrame]
    """Made when it is asked for: not all need it."""
    after: DataFrame
    records: DataFrame
    """The changes themselves: of a deleted row only the key's columns."""
    count: int
    """How many changes there were, at most."""


@dataclass
class _Reader:
    """A thread that reads tables, for one batch."""

    since: float = field(default_factory=time.monotonic)
    topics: dict[str, tuple[str, list[tuple[int, int]]]] = field(default_factory=dict)
    """Id and first offsets of the topics when it first looked at them, by name."""


@dataclass
class _Retired:
    """What is of no use but to batches that still run."""

    folders: list[tuple[float, str]] = field(default_factory=list)
    changes: list[tuple[float, DataFrame]] = field(default_factory=list)


class Tables:
    """The tables that flows of one engine read. Safe to use from several threads."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        admin: Admin,
        checkpoints: Checkpoints,
        formats: Formats,
        most_here: int = MOST_ROWS,
    ) -> None:
        self._most_here = most_here
        """A table with so many rows the driver holds itself."""
        self._most_changes = most_here * _CHANGES_HERE
        """And so many changes at once of any table."""
        self._spark = spark
        self._connection = connection
        self._formats = formats
        self._admin = admin
        self._checkpoints = checkpoints
        self._held: dict[str, Held] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._retired: dict[str, _Retired] = defaultdict(_Retired)
        self._reading: dict[int, _Reader] = {}
        """Who reads tables, by thread."""
        self._merging: dict[str, threading.Thread] = {}
        """The threads that make new bases, by topic."""
        self._closed = False

    def close(self) -> None:
        """Ends what goes on beside the flows, which have ended."""
        self._closed = True
        self._spark.sparkContext.cancelJobGroup(_MERGES)
        for thread in list(self._merging.values()):
            thread.join()

    def done(self) -> None:
        """The calling thread has no use any more for what it has read."""
        self._reading.pop(threading.get_ident(), None)

    def ends(self, definition: Definition, *, committed: bool = True) -> Offsets:
        """Where the table's topic ends now."""
        return self._admin.end_offsets(definition.topic, committed=committed)

    def settled_end(self, definition: Definition) -> dict[int, int]:
        """Where the topic of a flow's own result ends; its last records are seen a moment late."""
        deadline = time.monotonic() + _VISIBLE_SECONDS
        while True:
            end = self.ends(definition)
            if end == self.ends(definition, committed=False) or time.monotonic() > deadline:
                return dict(end)
            time.sleep(0.01)

    def bring_up(self, asked: Sequence[tuple[Definition, Offsets]]) -> None:
        """Reads what is new of several tables up to these offsets, all at the same time."""
        new = [table for table in asked if self._lags(*table)]
        if len(new) < 2:  # who asks for its rows reads it
            return
        reader = self._reads()

        def read(definition: Definition, end: Offsets) -> None:
            self._reading[threading.get_ident()] = reader  # who knows the topics already
            try:
                self._upto(definition, end)
            finally:
                self.done()

        # the flow's own properties, so that who stops it stops these jobs, too
        as_caller = inheritable_thread_target(self._spark)
        with ThreadPoolExecutor(len(new)) as pool:
            for result in [pool.submit(as_caller(read), table, end) for table, end in new]:
                result.result()

    def at(self, definition: Definition, end: Offsets, only: Only = ALL_ROWS) -> DataFrame:
        """The table's rows at these offsets.

        `only` leaves of some rows those that are wanted, by their own columns. It is asked for the
        rows of the base, and then again for those that have changed.
        """
        held = self._upto(definition, end)
        if held.reaches_back(end):
            return table_columns(self._state(held, end, only), definition)
        # a replay from long ago
        begin = self._admin.begin_offsets(definition.topic)
        changes = self._changes_of(definition, begin, end)
        return table_columns(only(latest_of(changes).filter(~F.col("_gone"))), definition)

    def _changes_of(self, definition: Definition, start: Offsets, end: Offsets) -> DataFrame:
        parts = (self._spark, definition, self._connection, self._formats)
        return read_changes(*parts, start, end)

    def changed(self, definition: Definition, start: Offsets, end: Offsets) -> Changed | None:
        """What is different at `end` from `start`; None when that is long ago."""
        held = self._upto(definition, end)
        if not held.reaches_back(start):
            return None
        between = held.between(start, end)
        after = latest_of(between).filter(~F.col("_gone"))
        return Changed(
            lambda: table_columns(held.before(start, between), definition),
            table_columns(after, definition),
            table_columns(between, definition),
            span(start, end),
        )

    def history(self, definition: Definition, start: Offsets, end: Offsets) -> DataFrame:
        """All that happened to rows between two positions, and before it those rows at `start`.

        The columns are those of `read_changes`.
        """
        held = self._upto(definition, end)
        if held.reaches_back(start):
            between = held.between(start, end)
            return held.before(start, between).unionByName(between)
        begin = self._admin.begin_offsets(definition.topic)
        start = {p: max(offset, begin.get(p, 0)) for p, offset in start.items()}
        read = partial(self._changes_of, definition)
        between = read(start, end)
        before = latest_of(read(begin, start)).filter(~F.col("_gone"))
        ids = F.broadcast(between.select("_id").distinct())
        return before.join(ids, "_id", "left_semi").unionByName(between)

    def rows_about(self, definition: Definition) -> int:
        """About how many rows the table has; 0 when it was not read yet."""
        held = self._held.get(definition.topic)
        return held.base.count if held else 0

    def few(self, definition: Definition, end: Offsets) -> bool:
        """True when the driver holds all rows that the table has at these offsets."""
        held = self._upto(definition, end)
        return held.here and held.reaches_back(end)

    def identity(self, definition: Definition) -> str:
        """Equal as long as a table is one topic, read in one way, and was not emptied.

        A reader looks at the topic once, until it is `done`.
        """
        known = self._reads().topics
        topic = definition.topic
        if topic not in known:
            begin = sorted(self._admin.begin_offsets(topic).items())
            known[topic] = (self._admin.topic_id(topic), begin)
        columns = [[c.name, c.type] for c in definition.columns]
        by = judged(definition)
        rules = [rules_of(by)] if by.rules else []
        return json.dumps([*known[topic], columns, definition.key, *rules])

    def _lags(self, definition: Definition, end: Offsets) -> bool:
        """True when there are changes before `end` that were not read yet."""
        held = self._held.get(definition.topic)
        return held is None or _is_behind(held, end)

    def _upto(self, definition: Definition, end: Offsets) -> Held:
        """The table with all changes before `end`, and maybe later ones."""
        topic = definition.topic
        identity = self.identity(definition)
        with self._locks[topic]:
            held = self._held.get(topic) or self._found(definition, identity)
            if held is None or held.base.identity != identity:
                old = held
                held = self._load(definition, identity, self._admin.begin_offsets(topic), end)
                if old is not None:
                    self._retire_all(old)
            elif _is_behind(held, end):
                held = self._advance(held, end)
            self._held[topic] = held
            self._clear(topic)
        return held

    def _reads(self) -> _Reader:
        """From now on the calling thread may use what is there, until it is `done`."""
        return self._reading.setdefault(threading.get_ident(), _Reader())

    def _load(self, definition: Definition, identity: str, begin: Offsets, end: Offsets) -> Held:
        """The table from the beginning of its topic."""
        end = {p: max(o, begin.get(p, 0)) for p, o in end.items()}
        few = self._few_changes(definition, begin, end, self._most_here)
        if few is not None:
            base = Base(identity, begin, few.rows.limit(0), 0, here=True)
            return Held(definition, base, (few,), None, 0, end)
        changes = self._changes_of(definition, begin, end)
        # brought together first: else Spark sorts them twice, before and behind that
        rows = latest_of(changes.repartition("_id")).filter(~F.col("_gone"))
        base = self._write(definition.topic, identity, rows, end)
        return self._begun(definition, base)

    def _found(self, definition: Definition, identity: str) -> Held | None:
        """The newest base that an earlier run of the engine has left, if it is of this table."""
        folders = sorted(self._checkpoints.folders(self._home(definition.topic)))
        found = None
        for folder in reversed(folders):
            about = self._checkpoints.read_note(folder, _ABOUT, 0) if found is None else None
            document = json.loads(about) if about else {}
            if document.get("identity") == identity:
                end = {int(p): o for p, o in document["end"].items()}
                base = self._base(identity, end, document["count"], folder)
                found = self._begun(definition, base)
            else:
                self._checkpoints.delete(folder)
        return found

    def _begun(self, definition: Definition, base: Base) -> Held:
        at = base.end
        none = self._piece(definition, at, at)
        return Held(definition, base, (none,), None, 0, at)

    def _piece(self, definition: Definition, start: Offsets, end: Offsets) -> Piece:
        """The changes between two positions, read once."""
        few = self._few_changes(definition, start, end, self._most_changes)
        if few is not None:
            return few
        changes = self._changes_of(definition, start, end)
        return Piece(start, end, kept(changes, span(start, end)))

    def _few_changes(
        self, definition: Definition, start: Offsets, end: Offsets, most: int
    ) -> Piece | None:
        """The changes between two positions, held by the driver; None when they are many."""
        records = few_records(self._connection, definition.topic, start, end, most)
        if records is None:
            return None
        changes = changes_in(as_rows(self._spark, records), definition, self._formats)
        return Piece(start, end, here(changes), here=True)

    def _advance(self, held: Held, end: Offsets) -> Held:
        """What is held, brought up to `end`."""
        end = {p: max(end.get(p, 0), held.end.get(p, 0)) for p in {*end, *held.end}}
        start = {p: held.end.get(p, 0) for p in end}
        new_rows = sum(offset - start[p] for p, offset in end.items())
        if new_rows > max(_LEAST_CHANGES_TO_MERGE, held.base.count):
            # a table that is being filled: no use to keep all of it in memory first
            return self._load_again(held, end)
        new = self._piece(held.definition, start, end)
        if len(held.pieces) >= _MOST_PIECES:
            held = self._together(held)
        held = replace(held, pieces=(*held.pieces, new), end=end)
        topic = held.definition.topic
        least = _LEAST_TO_MERGE_HERE if held.here else _LEAST_CHANGES_TO_MERGE
        most = max(least, held.base.count * _SHARE_TO_MERGE)
        if held.changes_rows > most and topic not in self._merging:
            reads = threading.Event()
            thread = threading.Thread(target=self._merge, args=(held, reads), daemon=True)
            self._merging[topic] = thread
            thread.start()
            reads.wait()
        return held

    def _load_again(self, held: Held, end: Offsets) -> Held:
        definition = held.definition
        begin = self._admin.begin_offsets(definition.topic)
        loaded = self._load(definition, held.base.identity, begin, end)
        self._retire_all(held)
        return loaded

    def _together(self, held: Held) -> Held:
        """All pieces as one, but for the newest."""
        old, new = held.pieces[:-NEWEST_PIECES], held.pieces[-NEWEST_PIECES:]
        pieces = (as_one(old, held.base.end), *new)
        self._retire_pieces(held.definition.topic, old)
        if held.settled >= len(old):
            return replace(held, pieces=pieces, settled=held.settled - len(old) + 1)
        if held.latest is not None:
            self._retire(held.definition.topic, held.latest)
        return replace(held, pieces=pieces, latest=None, settled=0)

    def _settled(self, held: Held) -> Held:
        """What is held, with the last change of each row. Only who reads whole rows needs it."""
        new = held.pieces[held.settled :]
        if not new:
            return held
        latest = latest_of(together(new))
        if held.latest is not None:
            newest = F.broadcast(latest.select("_id"))
            latest = held.latest.join(newest, "_id", "left_anti").unionByName(latest)
            self._retire(held.definition.topic, held.latest)
        latest = kept(latest, held.changes_rows)
        return replace(held, latest=latest, settled=len(held.pieces))

    def _state(self, held: Held, end: Offsets, only: Only = ALL_ROWS) -> DataFrame:
        """Rows of the base, with the changes up to `end`."""
        if not held.changes_rows:
            return only(held.base.rows)
        if only.by_key(held.definition):
            # all changes of a row have its key, so what happened to others need not be known
            changes = only(held.between({}, end))
            return with_changes(only(held.base.rows), latest_of(changes))
        if held.here:
            last = latest_of(held.between({}, end))
            if not held.base.count:
                return only(last.filter(~F.col("_gone")))
            return only(with_changes(held.base.rows, last).coalesce(1))
        topic = held.definition.topic
        if dict(end) == dict(held.end):
            with self._locks[topic]:
                if self._held[topic] is held:  # else another flow has gone on
                    held = self._held[topic] = self._settled(held)
        latest = held.latest
        if latest is None or dict(end) != dict(held.end) or held.settled < len(held.pieces):
            latest = latest_of(held.between({}, end))
        return with_changes(held.base.rows, latest, only)

    def _merge(self, held: Held, reads: threading.Event) -> None:
        """Makes a new base of the older changes. Crash: the old base is the one that is found."""
        topic = held.definition.topic
        self._reads()
        reads.set()
        try:
            self._spark.sparkContext.setJobGroup(_MERGES, f"a new base of {held.definition.name}")
            upto = held.older_end
            rows = with_changes(held.base.rows, latest_of(held.between({}, upto)))
            base = self._write(topic, held.base.identity, rows, upto)
            with self._locks[topic]:
                now = self._held[topic]
                if now.base is held.base:
                    self._held[topic] = self._rebased(now, base)
                elif base.folder is not None:  # the topic is another one, or was emptied
                    self._checkpoints.delete(base.folder)
        except Exception as error:  # noqa: BLE001 - whatever it was, the old base will do
            if not self._closed:
                _LOG.warning("no new base for table %s: %s", held.definition.name, short(error))
        finally:
            self._merging.pop(topic)
            self.done()

    def _rebased(self, held: Held, base: Base) -> Held:
        """What is held, with another base; no changes are left that are part of that one."""
        stay, go = [], []
        for piece in held.pieces:
            left = piece.between(base.end, held.end)
            if left is piece:
                stay.append(piece)
                continue
            go.append(piece)
            if left is not None:  # it was put together with later ones meanwhile
                stay.append(left if left.here else replace(left, rows=kept(left.rows, left.count)))
        self._retire_all(replace(held, pieces=tuple(go)))
        begun = self._begun(held.definition, base)
        return replace(begun, pieces=(*begun.pieces, *stay), end=held.end)

    def _write(self, topic: str, identity: str, rows: DataFrame, end: Offsets) -> Base:
        """A new base. Crash before its note is written: the folder is of no use, and goes."""
        folder = f"{self._home(topic)}/{time.time_ns()}"
        # few files: each is opened by a task of its own, by every reader
        tasks = int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)
        rows.coalesce(tasks).write.parquet(f"{folder}/rows")
        count = self._spark.read.parquet(f"{folder}/rows").count()
        about = json.dumps({"identity": identity, "end": end, "count": count})
        self._checkpoints.write_note(folder, _ABOUT, 0, about)
        return self._base(identity, end, count, folder)

    def _base(self, identity: str, end: Offsets, count: int, folder: str) -> Base:
        """The rows of a folder; few of them are read at once."""
        rows = self._spark.read.parquet(f"{folder}/rows")
        few = count <= self._most_here and self._checkpoints.size(folder) <= _FEW_BYTES
        rows = here(rows).coalesce(1) if few else rows
        return Base(identity, end, rows, count, folder, here=few)

    def _home(self, topic: str) -> str:
        return self._checkpoints.inside(f"_tables/{topic}")

    def _retire(self, topic: str, *changes: DataFrame) -> None:
        now = time.monotonic()
        self._retired[topic].changes.extend((now, kept) for kept in changes)

    def _retire_all(self, held: Held) -> None:
        topic = held.definition.topic
        self._retire_pieces(topic, held.pieces)
        if held.latest is not None:
            self._retire(topic, held.latest)
        if held.base.folder is not None:
            self._retired[topic].folders.append((time.monotonic(), held.base.folder))

    def _retire_pieces(self, topic: str, pieces: Sequence[Piece]) -> None:
        self._retire(topic, *(piece.rows for piece in pieces if not piece.here))

    def _clear(self, topic: str) -> None:
        """Removes what nobody reads any more: Spark alone would do so some time, or never."""
        now = time.monotonic()
        begun = [reader.since for reader in [*self._reading.values()]]
        limit = max(min([*begun, now]), now - _READERS_SECONDS)
        retired = self._retired[topic]
        while retired.folders and retired.folders[0][0] < limit:
            self._checkpoints.delete(retired.folders.pop(0)[1])
        while retired.changes and retired.changes[0][0] < limit:
            release(retired.changes.pop(0)[1])


def _is_behind(held: Held, end: Offsets) -> bool:
    return any(offset > held.end.get(p, 0) for p, offset in end.items())
