"""Rows of a sink into a table of a DuckDB file, exactly once: `stepwise` says in which steps.

The positions are in the table `_mainstem_sinks` of the same file. A file has one writer at a time:
the tasks of a batch, and other sinks, wait for each other.
"""

# ruff: noqa: S608 - every name in these statements goes through `quoted`

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.lake_schema import check_columns, missing_from, schema_of
from mainstem.connect.targets.object_store import check_folder, check_path
from mainstem.connect.targets.stepwise import Position, RowError, Stepwise
from mainstem.connect.targets.target import GONE, Form, Shape, refused, unreachable

GUARANTEE = "exactly once: rows and offsets change in one transaction of DuckDB"
KEYED = True

_GUARD = "_mainstem_sinks"
_STAGE = "_mainstem_stage"
_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.05
_IS_LOCKED = "lock"


def form(options: Mapping[str, Any]) -> Form:
    """Columns with their types."""
    return Form.COLUMNS


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the file can be made, or its table takes the rows; not while somebody writes it."""
    check_path("file", options["file"])
    what, file = _what(options), Path(options["file"])
    wanted = schema_of(shape, "none", what)
    if not file.exists():
        check_folder(what, file.parent)
        return
    with _told(what):
        try:
            connection = _library().connect(str(file), read_only=True)
        except _library().IOException as error:
            if _IS_LOCKED in str(error):
                return  # by one of our sinks, or somebody's shell
            raise
        with connection:
            there = _columns(connection, options["table"] or shape.name)
    if there is not None:
        check_columns(there, wanted, what)


def open_target(options: Mapping[str, Any], shape: Shape) -> DuckDBTarget:
    """The target for one task."""
    return DuckDBTarget(options, shape)


class DuckDBTarget(Stepwise):
    """One part of a batch: a transaction for each piece."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        super().__init__(shape)
        self._file = str(options["file"])
        self._what = _what(options)
        self._table = str(options["table"] or shape.name)
        self._merge = _statement(self._table, shape)
        self._connection: Any = None

    def look_up(self, position: Position) -> None:
        """Connects the first time, and makes what is missing."""
        with _told(self._what):
            if self._connection is None:
                Path(self._file).parent.mkdir(parents=True, exist_ok=True)
                self._connection = _connect(self._file)
                self._prepare()
            found = self._connection.execute(
                f"SELECT next_offset, refused FROM {_GUARD} WHERE target = ? AND sink = ?"
                " AND topic_id = ? AND partition = ?",
                self._key(position),
            ).fetchall()
        for next_offset, refused_rows in found:
            position.next = next_offset
            position.refused = [(offset, cause) for offset, cause in json.loads(refused_rows)]

    def step(self, rows: pa.Table, position: Position) -> None:
        """One transaction."""
        library = _library()
        names = [column.name for column in self._shape.columns]
        # before the transaction, for one that has failed does not even let go of a view
        with _told(self._what), _registered(self._connection, rows.select([*names, GONE])):
            try:
                with self._transaction() as connection:
                    if rows.num_rows:
                        connection.execute(self._merge)
                    noted = [position.topic, position.next, json.dumps(position.refused)]
                    connection.execute(
                        f"INSERT OR REPLACE INTO {_GUARD} VALUES (?, ?, ?, ?, ?, ?, ?, now())",
                        [*self._key(position), *noted],
                    )
            except (
                library.ConstraintException,
                library.ConversionException,
                library.OutOfRangeException,
            ) as error:
                raise RowError(_short(error)) from None

    def close(self) -> None:
        """Lets others have the file."""
        if self._connection is not None:
            self._connection.close()

    def _prepare(self) -> None:
        connection, table = self._connection, quoted(self._table)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {_GUARD} (target VARCHAR, sink VARCHAR, topic_id VARCHAR,"
            " partition INTEGER, topic VARCHAR, next_offset BIGINT, refused VARCHAR,"
            " updated_at TIMESTAMPTZ, PRIMARY KEY (target, sink, topic_id, partition))"
        )
        wanted = schema_of(self._shape, "none", self._what)
        there = _columns(connection, self._table)
        if there is None:
            with _registered(connection, wanted.empty_table()), self._transaction():
                connection.execute(f"CREATE TABLE {table} AS FROM {_STAGE}")
                # what an earlier table of that name had is not in this one
                connection.execute(f"DELETE FROM {_GUARD} WHERE target = ?", [self._table])
            return
        for field in missing_from(there, wanted):
            with _registered(connection, pa.schema([field]).empty_table()):
                [[_, kind, *_]] = connection.execute(f"DESCRIBE {_STAGE}").fetchall()
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(field.name)} {kind}")

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        self._connection.execute("BEGIN")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(_library().TransactionException):  # a COMMIT that failed has ended it
                self._connection.execute("ROLLBACK")
            raise

    def _key(self, position: Position) -> list[Any]:
        assert self._part is not None
        return [self._table, self._part.sink, position.topic_id, position.partition]


def _statement(table: str, shape: Shape) -> str:
    """What brings staged rows into the table."""
    names = [column.name for column in shape.columns]
    columns = ", ".join(map(quoted, names))
    if not shape.upserts:
        return f"INSERT INTO {quoted(table)} ({columns}) SELECT {columns} FROM {_STAGE}"
    same = " AND ".join(f"t.{quoted(k)} IS NOT DISTINCT FROM s.{quoted(k)}" for k in shape.key)
    key = {name.lower() for name in shape.key}
    changes = [f"{quoted(n)} = s.{quoted(n)}" for n in names if n.lower() not in key]
    changed = f"UPDATE SET {', '.join(changes)}" if changes else "DO NOTHING"
    values = ", ".join(f"s.{quoted(name)}" for name in names)
    return (
        f"MERGE INTO {quoted(table)} t USING {_STAGE} s ON ({same or 'true'})"
        f" WHEN MATCHED AND s.{GONE} THEN DELETE WHEN MATCHED THEN {changed}"
        f" WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({columns}) VALUES ({values})"
    )


def quoted(name: str) -> str:
    """A name as one quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _registered(connection: Any, rows: pa.Table) -> Iterator[None]:
    connection.register(_STAGE, rows)
    try:
        yield
    finally:
        connection.unregister(_STAGE)


def _columns(connection: Any, table: str) -> pa.Schema | None:
    """The columns of a table; None when it is not there."""
    rows = connection.execute(
        "SELECT column_name, is_nullable = 'YES' OR column_default IS NOT NULL"
        " FROM information_schema.columns WHERE table_name = ? AND table_schema = 'main'",
        [table],
    ).fetchall()
    if not rows:
        return None
    optional = dict(rows)
    schema = connection.sql(f"SELECT * FROM {quoted(table)} LIMIT 0").to_arrow_table().schema
    return pa.schema([field.with_nullable(optional[field.name]) for field in schema])


def _connect(file: str) -> Any:
    """The file, when nobody else has it any more."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return _library().connect(file)
        except _library().IOException as error:
            if _IS_LOCKED not in str(error) or time.monotonic() > until:
                raise
        time.sleep(_PAUSE_SECONDS)


def _what(options: Mapping[str, Any]) -> str:
    return f"DuckDB file {options['file']}"


def _library() -> Any:
    try:
        import duckdb
    except ImportError:
        problem = "the package duckdb is not installed"
        raise refused("DuckDB", problem, "Run: pip install 'mainstem[duckdb]'") from None
    return duckdb


@contextmanager
def _told(what: str) -> Iterator[None]:
    """DuckDB's errors as ours."""
    library = _library()
    try:
        yield
    except library.IOException as error:
        if _IS_LOCKED in str(error):
            raise unreachable(what, "another process has it open") from None
        raise refused(what, _short(error)) from None
    except library.Error as error:
        raise refused(what, _short(error)) from None
    except OSError as error:
        raise refused(what, error.strerror or str(error)) from None


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
