"""Tables of the log as tables of PostgreSQL: one thread follows all topics and writes the rows.

A round, for each view that has records, in the order in which it happens:

1. poll     records of all views' topics come out of the log, each partition in order
2. stage    a transaction begins; the view's records are copied into the staging table
3. write    the last record of each key is upserted, or deleted when it is a tombstone
4. set aside  records that cannot become rows, or break a rule, are in the quarantine topic,
            acknowledged
5. offsets  the next offset of each partition is written
6. commit   rows and offsets become visible together

A crash after 1, 2 or 3 leaves nothing behind; the records are read again. After 4 the records are
read again, too; the quarantine knows those that it has, and keeps none twice. After 5 it is as
after 3. After 6 the view goes on behind the records. So a row is the work of each record exactly
once, however often the process dies. A commit that PostgreSQL itself loses in a crash takes its
offsets with it. (Crash points: view-poll, view-write, view-set-aside, view-offsets, view-commit.)

Each view has one writer at a time, which holds its lock through the very session that it writes
with; several processes share the views (see `elected`). Each knows of all views how far they are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from mainstem.catalog.entry import Catalog, Entry
from mainstem.crash import crash_point
from mainstem.definitions.model import Kind
from mainstem.definitions.rules import only_dropped
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.schemas.codec import Codec
from mainstem.views.batch import DATA_ERRORS, Rejected, ViewWriter
from mainstem.views.carried_on import OTHER_TOPIC, added_columns, why_rebuild
from mainstem.views.elected import Elected
from mainstem.views.indexes import Found, IndexKeeper, found_in
from mainstem.views.observe import Observer, ViewProgress
from mainstem.views.quarantine import ViewQuarantine
from mainstem.views.store import Connection as StoreConnection
from mainstem.views.store import StoredView, ViewStore, connect, reader_role
from mainstem.views.times import iso_utc
from mainstem.vocabulary import Offsets, Record

_LOG = logging.getLogger(__name__)

MAX_RECORDS = 20_000
"""Most records of one round."""
_POLL_SECONDS = 0.2
_STANDBY_SECONDS = 0.5
_IDLE_OFFSETS_SECONDS = 0.2
_LOOK_SECONDS = 1.0
_MAX_BACK_OFF_SECONDS = 5.0


@dataclass(slots=True)
class _View:
    """A view that is being written."""

    entry: Entry
    writer: ViewWriter
    built_from: dict[int, int]
    offsets: dict[int, int]
    saved: dict[int, int] = field(default_factory=dict)
    quarantined: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    """By rule, how many records have broken it."""
    updated_at: float = 0.0
    rounds: int = 0

    @property
    def topic(self) -> str:
        return self.entry.definition.topic

    def pass_point(self, name: str) -> None:
        """Behind a step of a round; a test may end the process here."""
        crash_point(name, self.entry.name, self.rounds)


class _Aside(NamedTuple):
    """Records of a round that did not become rows."""

    kept: int
    """In the quarantine; others were dropped."""
    broken: Counter[str]
    """By rule, how many have broken it."""


class Materialiser:
    """Keeps PostgreSQL's tables at what the log says.

    All public methods may be called from any thread; the work is done in a thread of its own,
    which survives the loss of either server.
    """

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        url: str,
        reader_url: str,
        codec: Codec,
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._admin = admin
        self._url = url
        self._reader_role = reader_role(url, reader_url)
        self._quarantine = ViewQuarantine(connection, admin)
        self._observer = Observer(admin)
        self._wanted: Catalog | None = None
        self._done: Catalog | None = None
        self._views: dict[str, _View] = {}
        self._stored: dict[str, StoredView] = {}
        """What PostgreSQL said of all views, at the last look."""
        self._indexes: Found = {}
        self._keeper = IndexKeeper(lambda: connect(self._url))
        self._problems: dict[str, MainstemError] = {}
        self._look_at = 0.0
        self._writing = False
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="views", daemon=True)

    def start(self) -> None:
        """Begin; views appear when `reconcile` has named a catalog."""
        self._observer.start()
        self._keeper.start()
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is under way."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._keeper.stop()
        self._observer.stop()

    def reconcile(self, catalog: Catalog) -> None:
        """Make the views those of this catalog; returns at once, the thread does it."""
        self._wanted = catalog
        self._wake.set()

    @property
    def writing(self) -> bool:
        """True while this process is one of those that write, and both servers answer."""
        return self._writing

    @property
    def written(self) -> frozenset[str]:
        """The views that this process writes."""
        return frozenset(self._views)

    def problems(self) -> dict[str, MainstemError]:
        """Views that cannot be written at present, and why."""
        return dict(self._problems)

    def ends_of(self, name: str) -> Offsets | None:
        """The last known ends of a view's topic; None when there is no such view here."""
        stored = self._views.get(name) or self._stored.get(name)
        return None if stored is None else self._observer.ends_of(stored.topic)

    def broken(self, name: str) -> dict[str, int]:
        """By rule of a declared table, how many records have broken it."""
        stored = self._views.get(name) or self._stored.get(name)
        return {} if stored is None else dict(stored.broken)

    def index_states(self) -> dict[tuple[str, str], str]:
        """How each index is, by table and name."""
        catalog = self._wanted
        tables = () if catalog is None else catalog.of_kind(Kind.TABLE)
        indexes = (index for entry in tables for index in entry.definition.indexes)
        return {(i.table, i.name): self._keeper.state(i, self._indexes) for i in indexes}

    def progress(self) -> list[ViewProgress]:
        """How far each view is, by name; those of other writers as they were a moment ago."""
        views: dict[str, _View | StoredView] = {**self._stored, **self._views}
        return [
            self._observer.progress(
                name,
                view.topic,
                dict(view.offsets),
                quarantined=view.quarantined,
                updated_at=iso_utc(view.updated_at) if view.updated_at else None,
            )
            for name, view in sorted(views.items())
            if name not in self._problems
        ]

    # -- the thread

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._serve()
            except (MainstemError, psycopg.Error) as error:
                _LOG.warning("views wait: %s", error)
            except Exception:  # noqa: BLE001 - whatever it was, views must go on
                _LOG.exception("views wait after an unexpected error")
            self._writing = False
            if time.monotonic() - began > _MAX_BACK_OFF_SECONDS:
                pause = 0.0
            pause = min(_MAX_BACK_OFF_SECONDS, max(0.1, pause * 2))
            self._stop.wait(pause)

    def _serve(self) -> None:
        """Write views over one connection until told to stop or until a server is lost."""
        with connect(self._url) as connection:
            store = ViewStore(connection, self._reader_role)
            elected = Elected(connection)
            while not elected.join():
                if self._stop.wait(_STANDBY_SECONDS):
                    return
            store.prepare()
            reader = Reader(self._connection, {}, committed=True)
            try:
                self._views, self._done, self._writing = {}, None, True
                while not self._stop.is_set():
                    self._turn(store, elected, reader)
            finally:
                reader.close()

    def _turn(self, store: ViewStore, elected: Elected, reader: Reader) -> None:
        self._wake.clear()
        if self._wanted is not self._done or time.monotonic() >= self._look_at:
            self._reconcile(store, elected, reader)
        if not self._views:
            self._wake.wait(_POLL_SECONDS)
            return
        records = reader.poll(MAX_RECORDS, _POLL_SECONDS)
        self._round(store, reader, records)

    def _round(self, store: ViewStore, reader: Reader, records: list[Record]) -> None:
        by_topic: dict[str, list[Record]] = {}
        for record in records:
            by_topic.setdefault(record.topic, []).append(record)
        positions = reader.positions()
        for name, view in list(self._views.items()):
            reached = positions.get(view.topic, {})
            new = [
                record
                for record in by_topic.get(view.topic, ())
                if record.offset >= view.offsets.get(record.partition, 0)
            ]
            try:
                if new:
                    self._write(store, view, new, reached)
                else:
                    self._save_idle(store, view, reached)
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:
                self._give_up(reader, view, _view_failed(name, error))
            except MainstemError as error:
                if error.code not in ("REGISTRY_UNREACHABLE", "RULE_STOPS_FLOW"):
                    raise
                # such a schema or record concerns this view alone
                self._give_up(reader, view, error)

    def _write(
        self, store: ViewStore, view: _View, records: list[Record], reached: Mapping[int, int]
    ) -> None:
        view.rounds += 1
        view.pass_point("view-poll")
        offsets = {p: max(o, view.offsets.get(p, 0)) for p, o in reached.items()}
        try:
            aside = self._write_some(store, view, records, offsets)
        except DATA_ERRORS as error:
            if not view.writer.too_long_for_index(error):
                raise
            self._drop_indexes(store, view, error)
            aside = self._write_some(store, view, records, offsets)
        view.pass_point("view-commit")
        view.quarantined += aside.kept
        view.broken += aside.broken
        view.offsets, view.saved, view.updated_at = offsets, dict(offsets), time.time()
        if aside.kept:
            _LOG.warning(
                "%d records of %s were set aside",
                aside.kept,
                view.entry.name,
                extra={"view": view.entry.name, "topic": view.topic},
            )

    def _write_some(
        self, store: ViewStore, view: _View, records: Sequence[Record], offsets: Offsets
    ) -> _Aside:
        """All records, or those that can become rows."""
        try:
            return self._write_by(view.writer.write, store, view, records, offsets)
        except DATA_ERRORS as error:
            if view.writer.too_long_for_index(error):
                raise
            return self._write_by(view.writer.write_good, store, view, records, offsets)

    def _write_by(
        self,
        write: Callable[[StoreConnection, Sequence[Record]], list[Rejected]],
        store: ViewStore,
        view: _View,
        records: Sequence[Record],
        offsets: Offsets,
    ) -> _Aside:
        """Steps 2 to 6; gives what did not become rows."""
        name, definition = view.entry.name, view.entry.definition
        with store.connection.transaction():
            rejected = write(store.connection, records)
            view.pass_point("view-write")
            kept = [r for r in rejected if not (r.rules and only_dropped(definition, r.rules))]
            if kept:
                self._quarantine.keep(name, view.topic, kept)
                view.pass_point("view-set-aside")
                store.count_quarantined(name, len(kept))
            broken = Counter(rule for r in rejected for rule in r.rules)
            if broken:
                store.count_broken(name, broken)
            store.save_offsets(name, offsets)
            view.pass_point("view-offsets")
        return _Aside(len(kept), broken)

    def _drop_indexes(self, store: ViewStore, view: _View, error: psycopg.Error) -> None:
        """An index must not cost a row: one that cannot hold a value goes."""
        problem = error.diag.message_primary or type(error).__name__
        self._keeper.give_up(view.entry.definition, problem)
        store.drop_indexes(view.entry.name)
        view.writer.indexed = False
        _LOG.warning("the indexes of view %s were dropped: %s", view.entry.name, problem)

    def _save_idle(self, store: ViewStore, view: _View, reached: Mapping[int, int]) -> None:
        """Follow the log past transaction markers, which are no records but take up offsets."""
        view.offsets = {p: max(o, view.offsets.get(p, 0)) for p, o in reached.items()}
        if view.offsets != view.saved and time.time() - view.updated_at > _IDLE_OFFSETS_SECONDS:
            store.save_offsets(view.entry.name, view.offsets)
            view.saved, view.updated_at = dict(view.offsets), time.time()

    # -- reconciling

    def _reconcile(self, store: ViewStore, elected: Elected, reader: Reader) -> None:
        catalog = self._wanted
        self._look_at = time.monotonic() + _LOOK_SECONDS
        if catalog is None:
            return
        wanted = {entry.name: entry for entry in catalog.of_kind(Kind.TABLE)}
        mine = elected.choose(wanted)
        # read behind the choice: whoever wrote a view before us has left off
        stored = store.views()
        for name in stored.keys() - wanted.keys():
            if elected.take(name):
                store.drop(name)
                self._quarantine.forget(name)
                elected.release(name)
                _LOG.info("view %s dropped", name)
        self._stored = {name: stored[name] for name in stored.keys() & wanted.keys()}
        self._indexes = found_in(store.connection)
        self._problems = {n: p for n, p in self._problems.items() if n in mine}
        views: dict[str, _View] = {}
        for name in sorted(mine):
            entry = wanted[name]
            try:
                view = self._settle(store, entry, stored.get(name))
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:
                self._fail(name, _view_failed(name, error))
            except MainstemError as error:
                if error.code in ("LOG_UNREACHABLE", "VIEW_STORE_UNREACHABLE"):
                    raise
                self._fail(name, error)
            else:
                self._problems.pop(name, None)
                views[name] = view
        self._views = views
        self._follow(reader)
        self._observer.watch(entry.definition.topic for entry in wanted.values())
        self._keeper.keep({n: v.entry.definition for n, v in views.items()}, self._indexes)
        self._done = catalog

    def _settle(self, store: ViewStore, entry: Entry, stored: StoredView | None) -> _View:
        """The view as it should be: made, made again, or as it is."""
        ends = self._observer.look(entry.definition.topic)
        running = self._views.get(entry.name)
        why = why_rebuild(entry, stored, ends)
        if stored is None or why:
            if why == OTHER_TOPIC:
                self._quarantine.forget(entry.name)
            store.build(entry, ends.begin)
            _LOG.info("view %s is built: %s", entry.name, why or "new")
            return _View(
                entry, ViewWriter(entry.definition, self._codec), dict(ends.begin), dict(ends.begin)
            )
        offsets = {p: stored.offsets.get(p, begin) for p, begin in ends.begin.items()}
        added = added_columns(entry, stored)
        if added:
            # records from here on may have the columns; to read some again does no harm
            for column in added:
                since = entry.grown[column.name]
                offsets = {p: min(o, since.get(p, 0)) for p, o in offsets.items()}
            offsets = {p: max(o, ends.begin[p]) for p, o in offsets.items()}
            store.widen(entry, added, offsets)
            names = ", ".join(column.name for column in added)
            _LOG.info("view %s has new columns: %s", entry.name, names)
            running = None
        if running is not None and running.entry == entry:
            running.offsets = {p: max(o, running.offsets.get(p, 0)) for p, o in offsets.items()}
            return running
        return _View(
            entry,
            ViewWriter(entry.definition, self._codec),
            stored.built_from,
            offsets,
            quarantined=stored.quarantined,
            broken=Counter(stored.broken),
        )

    def _follow(self, reader: Reader) -> None:
        """Let the reader follow exactly the topics of the views, from where the last one is."""
        start: dict[str, dict[int, int]] = {}
        for view in self._views.values():
            positions = start.setdefault(view.topic, {})
            for partition, offset in view.offsets.items():
                positions[partition] = min(offset, positions.get(partition, offset))
        following = reader.positions()
        for topic in following.keys() - start.keys():
            reader.remove(topic)
        for topic, positions in start.items():
            if following.get(topic) != positions:
                if topic in following:
                    reader.remove(topic)
                reader.add(topic, positions)

    def _give_up(self, reader: Reader, view: _View, problem: MainstemError) -> None:
        """Leave a view until the next reconciling, which goes on from its saved offsets."""
        self._fail(view.entry.name, problem)
        self._views = {n: v for n, v in self._views.items() if v is not view}
        self._follow(reader)

    def _fail(self, name: str, problem: MainstemError) -> None:
        if name not in self._problems:
            _LOG.warning("view %s waits: %s", name, problem)
        self._problems[name] = problem


def _view_failed(name: str, error: psycopg.Error) -> MainstemError:
    problem = error.diag.message_primary or type(error).__name__
    return MainstemError("VIEW_FAILED", name=name, problem=problem)
