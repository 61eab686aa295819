"""Indexes of views in PostgreSQL: made beside the writing, which goes on meanwhile.

What there is and what is wanted are compared by name: an index's name in PostgreSQL says its view,
its own name and its columns. A new view gets its indexes with its table; here is what comes later.
A process that dies in the midst leaves an index that is not valid: it is dropped, and made again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import psycopg

from mainstem.definitions.model import Definition, Index
from mainstem.errors import MainstemError
from mainstem.views.rows import names, quoted, table

if TYPE_CHECKING:
    from mainstem.views.store import Connection

_LOG = logging.getLogger(__name__)
_PREFIX = "mainstem:"
_READABLE_BYTES = 40
_RETRY_SECONDS = 5.0

Found = dict[str, dict[str, bool]]
"""View -> name in PostgreSQL -> whether it is finished."""

_ALL = """
SELECT t.relname, i.relname, x.indisvalid FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = 'public' AND starts_with(i.relname, $1)
"""


def stored_name(index: Index) -> str:
    """The name in PostgreSQL; another one when the columns are others."""
    told = json.dumps([index.table, index.name.lower(), *map(str.lower, index.columns)])
    readable = f"{index.table}.{index.name}".encode()[:_READABLE_BYTES].decode(errors="ignore")
    return f"{_PREFIX}{readable}.{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def create(definition: Definition, index: Index, *, beside: bool = False) -> str:
    """The statement that makes an index; `beside`: while others write the table."""
    found = (definition.column(name) for name in index.columns)
    columns = names(column.name for column in found if column is not None)
    how = "CONCURRENTLY " if beside else ""
    name, target = quoted(stored_name(index)), table(definition.name)
    return f"CREATE INDEX {how}{name} ON {target} ({columns})"


def found_in(connection: Connection) -> Found:
    """All indexes that we have made, finished or not."""
    found: Found = {}
    for view, name, valid in connection.execute(_ALL, [_PREFIX]).fetchall():
        found.setdefault(view, {})[name] = valid
    return found


def drop(connection: Connection, name: str, *, beside: bool = False) -> None:
    """Remove an index; nothing happens when it is not there."""
    how = "CONCURRENTLY " if beside else ""
    connection.execute(f"DROP INDEX {how}IF EXISTS public.{quoted(name)}")


class IndexKeeper:
    """A thread that makes indexes what the definitions say, with a connection of its own.

    Methods may be called from any thread.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._wanted: dict[str, Definition] = {}
        self._problems: dict[str, str] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="views-indexes", daemon=True)

    def start(self) -> None:
        """Begin; there is nothing to do until `keep` says so."""
        self._thread.start()

    def stop(self) -> None:
        """End. An index that is being made is left to PostgreSQL, and to the next process."""
        self._stop.set()
        self._wake.set()

    def keep(self, views: Mapping[str, Definition], found: Found) -> None:
        """These views are ours to write: let them have their indexes. Returns at once."""
        wanted = {
            name: definition
            for name, definition in views.items()
            if self._missing(definition, found.get(name, {}))
        }
        self._wanted = wanted
        if wanted:
            self._wake.set()

    def give_up(self, definition: Definition, problem: str) -> None:
        """The indexes of this view cannot be: they are not tried again by this process."""
        for index in definition.indexes:
            self._problems[stored_name(index)] = problem

    def state(self, index: Index, found: Found) -> str:
        """`ready`, `building`, or why there is none."""
        name = stored_name(index)
        if found.get(index.table, {}).get(name):
            return "ready"
        problem = self._problems.get(name)
        return "building" if problem is None else f"failed: {problem}"

    def _missing(self, definition: Definition, found: Mapping[str, bool]) -> bool:
        """True when there is something to make or to remove."""
        wanted = {stored_name(i) for i in definition.indexes} - self._problems.keys()
        return wanted != {name for name, valid in found.items() if valid} or not all(found.values())

    # -- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                with self._connect() as connection:
                    for definition in list(self._wanted.values()):
                        if not self._stop.is_set():
                            self._make(connection, definition)
            except (MainstemError, psycopg.Error) as error:
                _LOG.warning("indexes wait: %s", error)
                self._stop.wait(_RETRY_SECONDS)

    def _make(self, connection: Connection, definition: Definition) -> None:
        found = found_in(connection).get(definition.name, {})
        wanted = {stored_name(index): index for index in definition.indexes}
        for name, valid in found.items():
            if name not in wanted or not valid:
                drop(connection, name, beside=True)
                _LOG.info("index %s of view %s dropped", name, definition.name)
        for name, index in wanted.items():
            if found.get(name) or name in self._problems:
                continue
            try:
                connection.execute(create(definition, index, beside=True))
            except psycopg.OperationalError as error:
                if not isinstance(error, psycopg.errors.ProgramLimitExceeded):
                    raise
                self._refused(connection, definition, index, error)
            except (psycopg.DataError, psycopg.ProgrammingError) as error:
                self._refused(connection, definition, index, error)
            else:
                _LOG.info("index %s of view %s made", index.name, definition.name)

    def _refused(
        self, connection: Connection, definition: Definition, index: Index, error: psycopg.Error
    ) -> None:
        """PostgreSQL cannot make it of these values; or the view is not there any more."""
        drop(connection, stored_name(index), beside=True)
        problem = error.diag.message_primary or type(error).__name__
        if not isinstance(error, psycopg.errors.UndefinedTable):
            self._problems[stored_name(index)] = problem
        _LOG.warning("index %s of view %s cannot be made: %s", index.name, definition.name, problem)
