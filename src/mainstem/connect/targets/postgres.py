"""Rows of a sink into a table of PostgreSQL, exactly once.

Which records are in the table is kept beside it, in `_mainstem_sinks`: one row for each sink and
partition, with the next offset. What happens to a part of a batch, all in one transaction:

1. The row of each partition is locked. Records before its offset are in the table, and are left
   out: a part that comes again, or late, changes nothing.
2. The rows are copied to a temporary table, and from there inserted, upserted, deleted; of the rows
   of one key only the last. What PostgreSQL does not take is found by halves.
3. The offsets are moved, and with them the rows are noted that PostgreSQL did not take: if the
   engine crashes before they are in the quarantine, the part comes again, and they are told then.
4. Commit. Crash before: nothing has happened. Behind: the part is known.
"""

# ruff: noqa: S608 - every name in these statements goes through `quoted`

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from mainstem.connect.targets.postgres_table import (
    GUARD,
    Relation,
    check_table,
    prepare,
    quoted,
    relation_of,
)
from mainstem.connect.targets.target import (
    GONE,
    OFFSET,
    Form,
    Part,
    Poison,
    Shape,
    by_partition,
    poison_at,
    refused,
    unreachable,
)
from mainstem.errors import MainstemError

GUARANTEE = "exactly once: rows and offsets change in one transaction of PostgreSQL"
KEYED = True

_CONNECT_SECONDS = 10
_SESSION = (
    "-c TimeZone=UTC -c DateStyle=ISO -c client_min_messages=warning"
    " -c lock_timeout=30s -c statement_timeout=300s"
)
_DATA_ERRORS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.RaiseException,  # a trigger's
)
"""What PostgreSQL raises because of a row, not because of itself."""
_NUMBER = "_mainstem_n"
_STAGE = "_mainstem_stage"
_CSV = pacsv.WriteOptions(include_header=False)

Connection = psycopg.Connection[tuple[Any, ...]]


def form(options: Mapping[str, Any]) -> Form:
    """Columns; what PostgreSQL keeps as jsonb as text."""
    return Form.FLAT


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the database can be reached, and its table can take the rows."""
    with told(options), connect(options) as connection:
        check_table(connection, relation_of(options["table"], shape), shape)


def open_target(options: Mapping[str, Any], shape: Shape) -> PostgresTarget:
    """The target for one task."""
    return PostgresTarget(options, shape)


class PostgresTarget:
    """One part of a batch: one connection, one transaction."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._relation = relation_of(options["table"], shape)
        self._connection: Connection | None = None
        self._part: Part | None = None
        self._guards: dict[tuple[str, int], _Guard] = {}
        self._merge = _statements(self._relation, shape)

    def open(self, part: Part) -> None:
        """Connects; the first time after a start, makes what is missing."""
        self._part = part
        with told(self._options):
            self._connection = connection = connect(self._options)
            if part.recovering:
                prepare(connection, self._relation, self._shape)
            names = ", ".join(quoted(column.name) for column in self._shape.columns)
            connection.execute(
                f"CREATE TEMPORARY TABLE {_STAGE} ON COMMIT DROP AS SELECT 0 AS {_NUMBER},"
                f" false AS {GONE}, {names} FROM {self._relation} WITH NO DATA"
            )

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Brings the rows that are new into the table."""
        assert self._connection is not None
        with told(self._options):
            rows, known = self._new(rows)
            new = self._by_halves(self._connection, rows)
        for one in new:
            self._guards[one.topic, one.partition].poison.append(one)
        return [*known, *new]

    def finish(self) -> Sequence[Poison]:
        """Moves the offsets, and commits."""
        assert self._connection is not None
        assert self._part is not None
        with told(self._options):
            for (topic, partition), guard in self._guards.items():
                if guard.next == guard.floor:
                    continue
                noted = json.dumps([[one.offset, one.cause] for one in guard.poison])
                self._connection.execute(
                    f"UPDATE {self._relation.beside(GUARD)} SET next_offset = %s, refused = %s,"
                    " updated_at = now()"
                    " WHERE target = %s AND sink = %s AND topic_id = %s AND partition = %s",
                    [guard.next, noted, *self._guard_key(topic, partition)],
                )
            self._connection.commit()
        return []

    def close(self) -> None:
        """Ends the connection, and with it a transaction that is not finished."""
        if self._connection is not None:
            self._connection.close()

    def _new(self, rows: pa.Table) -> tuple[pa.Table, list[Poison]]:
        """The rows that are not in the table yet, and of the others those that it did not take."""
        told: list[Poison] = []
        parts = []
        for topic, partition, mine in by_partition(rows):
            guard = self._guard(topic, partition)
            offsets = mine[OFFSET]
            if pc.min(offsets).as_py() < guard.floor:
                seen = set(offsets.to_pylist())
                told += [
                    Poison(topic, partition, offset, cause)
                    for offset, cause in guard.refused
                    if offset in seen
                ]
            guard.next = max(guard.next, pc.max(offsets).as_py() + 1)
            parts.append(mine.filter(pc.greater_equal(offsets, guard.floor)))
        return pa.concat_tables(parts), told

    def _guard(self, topic: str, partition: int) -> _Guard:
        """What is known of a partition; locked until the transaction ends."""
        known = self._guards.get((topic, partition))
        if known is not None:
            return known
        assert self._connection is not None
        table, key = self._relation.beside(GUARD), self._guard_key(topic, partition)
        self._connection.execute(
            f"INSERT INTO {table} (target, sink, topic_id, partition, topic)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [*key, topic],
        )
        row = self._connection.execute(
            f"SELECT next_offset, refused FROM {table} WHERE target = %s AND sink = %s"
            " AND topic_id = %s AND partition = %s FOR UPDATE",
            key,
        ).fetchone()
        assert row is not None
        guard = _Guard(row[0], [(offset, cause) for offset, cause in row[1]])
        self._guards[topic, partition] = guard
        return guard

    def _guard_key(self, topic: str, partition: int) -> list[Any]:
        assert self._part is not None
        part = self._part
        return [self._relation.table, part.sink, part.topics[topic], partition]

    def _by_halves(self, connection: Connection, rows: pa.Table) -> list[Poison]:
        """Writes the rows; those that cannot be written come back."""
        if not rows.num_rows:
            return []
        try:
            with connection.transaction():
                self._write(connection, rows)
        except _DATA_ERRORS as error:
            if rows.num_rows == 1:
                return [poison_at(rows, 0, _message(error))]
        else:
            return []
        half = rows.num_rows // 2
        return [
            *self._by_halves(connection, rows.slice(0, half)),
            *self._by_halves(connection, rows.slice(half)),
        ]

    def _write(self, connection: Connection, rows: pa.Table) -> None:
        names = [column.name for column in self._shape.columns]
        numbers = pa.array(range(rows.num_rows), pa.int32())
        columns = [numbers, rows[GONE], *(_text(rows[name]) for name in names)]
        text = io.BytesIO()
        pacsv.write_csv(pa.table(columns, names=[_NUMBER, GONE, *names]), text, _CSV)
        connection.execute(f"TRUNCATE {_STAGE}")
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {_STAGE} FROM STDIN (FORMAT CSV)") as copy,
        ):
            copy.write(text.getbuffer())
        for statement in self._merge:
            connection.execute(statement)


class _Guard:
    """One partition: from which offset on records are new, and what was refused before it."""

    def __init__(self, floor: int, refused: list[tuple[int, str]]) -> None:
        self.floor = self.next = floor
        self.refused = refused
        self.poison: list[Poison] = []


def _statements(relation: Relation, shape: Shape) -> list[str]:
    """What brings staged rows into the table."""
    names = [column.name for column in shape.columns]
    columns = ", ".join(map(quoted, names))
    if not shape.upserts:
        return [f"INSERT INTO {relation} ({columns}) SELECT {columns} FROM {_STAGE}"]
    key = ", ".join(map(quoted, shape.key))
    last = f"SELECT * FROM {_STAGE} ORDER BY {_NUMBER} DESC LIMIT 1"
    if key:
        last = f"SELECT DISTINCT ON ({key}) * FROM {_STAGE} ORDER BY {key}, {_NUMBER} DESC"
    lower = {name.lower() for name in shape.key}
    changes = ", ".join(
        f"{quoted(n)} = EXCLUDED.{quoted(n)}" for n in names if n.lower() not in lower
    )
    statements = [
        f"INSERT INTO {relation} ({columns}) SELECT {columns} FROM ({last}) l WHERE NOT {GONE}"
        f" ON CONFLICT ({key or '(1)'}) DO {'UPDATE SET ' + changes if changes else 'NOTHING'}"
    ]
    if not shape.deletes:
        return statements
    for nulls in (False, True) if shape.nullable_key and key else (False,):
        # no index serves IS NOT DISTINCT FROM: only keys with a NULL in them are looked for so
        same = "IS NOT DISTINCT FROM" if nulls else "="
        on = [f"t.{quoted(k)} {same} l.{quoted(k)}" for k in shape.key]
        some_null = " OR ".join(f"l.{quoted(k)} IS NULL" for k in shape.key)
        conditions = [f"l.{GONE}", *on, *([f"({some_null})"] if nulls else [])]
        statements.append(
            f"DELETE FROM {relation} t USING ({last}) l WHERE {' AND '.join(conditions)}"
        )
    return statements


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as COPY reads it."""
    if pa.types.is_binary(column.type):
        return pa.chunked_array(
            [
                pa.array([None if b is None else "\\x" + b.hex() for b in chunk.to_pylist()])
                for chunk in column.chunks
            ],
            pa.string(),
        )
    return column


def connect(options: Mapping[str, Any]) -> Connection:
    """A connection with the settings that values are written in."""
    more = {} if options["password"] is None else {"password": options["password"]}
    return psycopg.connect(
        options["url"],
        connect_timeout=_CONNECT_SECONDS,
        options=_SESSION,
        application_name="mainstem sink",
        keepalives_idle=10,
        tcp_user_timeout=60_000,
        **more,
    )


@contextmanager
def told(options: Mapping[str, Any]) -> Iterator[None]:
    """PostgreSQL's errors as ours."""
    what = "PostgreSQL"
    try:
        yield
    except MainstemError:
        raise
    except psycopg.errors.InsufficientPrivilege as error:
        advice = "Grant the sink's user what it needs: docs/connectors.md says what."
        raise refused(what, _message(error), advice) from None
    except psycopg.errors.InvalidAuthorizationSpecification as error:
        raise refused(what, _message(error), "Correct user or password.") from None
    except psycopg.OperationalError as error:
        if "authentication failed" in str(error) or "no password supplied" in str(error):
            raise refused(what, _message(error), "Correct user or password.") from None
        raise unreachable(what, _message(error)) from None
    except psycopg.Error as error:
        raise refused(what, _message(error)) from None


def _message(error: psycopg.Error) -> str:
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
