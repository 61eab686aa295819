"""The target of PostgreSQL sinks by itself: what is in the table, whatever comes again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import conninfo_to_dict

from mainstem.connect.targets import postgres, postgres_beside
from mainstem.connect.targets.target import GONE, OFFSET, PARTITION, TOPIC, Part, Poison, Shape
from mainstem.errors import MainstemError
from mainstem.local.stack import Stack
from mainstem.vocabulary import Column

COLUMNS = (Column("id", "int"), Column("name", "string"), Column("tags", "array<string>"))
ADDED = Shape("orders", COLUMNS)
UPSERTED = Shape("orders", COLUMNS, ("id",), upserts=True)
TABLE = Shape("orders", COLUMNS, ("id",), upserts=True, deletes=True)
GROUPS = Shape("orders", COLUMNS, ("id",), upserts=True, deletes=True, nullable_key=True)
ONE_ROW = Shape("orders", COLUMNS, (), upserts=True, deletes=True)


class Database:
    """A schema of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schema = f"sink_{uuid.uuid4().hex[:8]}"
        self.options = {"url": url, "password": None, "table": f"{self.schema}.orders", "key": None}
        self.run(f"CREATE SCHEMA {self.schema}")

    def run(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, given)
            return cursor.fetchall() if cursor.description else []

    def rows(self, columns: str = "id, name") -> list[tuple[Any, ...]]:
        return self.run(f"SELECT {columns} FROM {self.schema}.orders ORDER BY id, name")

    def take(
        self, shape: Shape, *batches: pa.Table, finish: bool = True, topic_id: str = "one"
    ) -> Sequence[Poison]:
        target = postgres.open_target(self.options, shape)
        poison: list[Poison] = []
        try:
            target.open(Part("out", "out.1", "all", 0, "e", "r", True, {"t": topic_id}))
            for rows in batches:
                poison += target.write(rows)
            if finish:
                poison += target.finish()
        finally:
            target.close()
        return poison

    def refusal(self, shape: Shape, **options: Any) -> MainstemError:
        with pytest.raises(MainstemError) as caught:
            postgres.check({**self.options, **options}, shape)
        return caught.value


def batch(*rows: tuple[int, int | None, str | None], partition: int = 0) -> pa.Table:
    """Rows of offset, id and name; without a name the row is gone."""
    gone = [name is None for _, _, name in rows]
    return pa.table(
        {
            "id": pa.array([id_ for _, id_, _ in rows], pa.int32()),
            "name": pa.array([name for _, _, name in rows], pa.string()),
            "tags": pa.array([None if g else '["a", "b"]' for g in gone], pa.string()),
            TOPIC: ["t"] * len(rows),
            PARTITION: [partition] * len(rows),
            OFFSET: [offset for offset, _, _ in rows],
            GONE: gone,
        }
    )


@pytest.fixture
def database(servers: Stack) -> Iterator[Database]:
    made = Database(servers.endpoints.postgres_url.get_secret_value())
    yield made
    made.run(f"DROP SCHEMA {made.schema} CASCADE")


def test_rows_are_added_once(database: Database) -> None:
    first, second = batch((0, 1, "a"), (1, 1, "a\n\"'\\")), batch((5, 2, ""), partition=1)
    for _ in range(2):
        assert database.take(ADDED, first, second) == []
        assert database.rows() == [(1, "a"), (1, "a\n\"'\\"), (2, "")]
    assert database.rows("tags")[0] == (["a", "b"],)
    database.take(ADDED, batch((1, 9, "before"), (2, 3, "new")), topic_id="one")
    assert [row[0] for row in database.rows()] == [1, 1, 2, 3]
    database.take(ADDED, first, topic_id="made anew")
    assert [row[0] for row in database.rows()] == [1, 1, 1, 1, 2, 3]


def test_rows_of_a_key_are_those_of_the_highest_offset(database: Database) -> None:
    database.take(UPSERTED, batch((0, 1, "a"), (1, 1, "b"), (2, 2, "c")))
    database.take(UPSERTED, batch((3, 1, "d")))
    database.take(UPSERTED, batch((0, 1, "a"), (1, 1, "b"), (2, 2, "c")))
    assert database.rows() == [(1, "d"), (2, "c")]


@pytest.mark.parametrize("shape", [TABLE, GROUPS])
def test_deletes(database: Database, shape: Shape) -> None:
    database.take(shape, batch((0, 1, "a"), (1, 2, "b"), (2, 3, "c")))
    rows = batch((3, 1, None), (4, 2, None), (5, 2, "again"), (6, 3, "more"), (7, 3, None))
    database.take(shape, rows)
    assert database.rows() == [(2, "again")]


def test_null_is_a_group(database: Database) -> None:
    database.take(GROUPS, batch((0, None, "a"), (1, None, "b"), (2, 1, "c")))
    assert database.rows() == [(1, "c"), (None, "b")]
    database.take(GROUPS, batch((3, None, None)))
    assert database.rows() == [(1, "c")]


def test_a_table_of_one_row(database: Database) -> None:
    database.take(ONE_ROW, batch((0, 1, "a"), (1, 2, "b")))
    database.take(ONE_ROW, batch((2, 3, "c")))
    assert database.rows() == [(3, "c")]
    database.take(ONE_ROW, batch((3, None, None)))
    assert database.rows() == []


def test_an_unfinished_part_leaves_nothing(database: Database) -> None:
    database.take(ADDED, batch((0, 1, "a")), finish=False)
    assert database.rows() == []


def test_rows_that_are_not_taken_are_told_again_and_the_others_are_there(
    database: Database,
) -> None:
    table = f"CREATE TABLE {database.schema}.orders (id int PRIMARY KEY, name text NOT NULL,"
    database.run(f"{table} CHECK (name <> 'bad'))")
    rows = batch((0, 1, "good"), (1, 1, "bad"), (2, 2, "nul\0"), (3, 3, "fine"), (4, 4, "bad"))
    for _ in range(2):
        poison = database.take(UPSERTED, rows)
        assert [p.offset for p in poison] == [1, 2, 4]
        assert "violates check constraint" in poison[0].cause
        assert database.rows() == [(1, "good"), (3, "fine")]


def test_columns_are_added_and_a_dropped_table_begins_anew(database: Database) -> None:
    narrow = Shape("orders", COLUMNS[:2])
    database.take(narrow, batch((0, 1, "a")))
    database.take(ADDED, batch((1, 2, "b")))
    assert database.rows("tags") == [(None,), (["a", "b"],)]
    database.run(f"DROP TABLE {database.schema}.orders")
    database.take(ADDED, batch((0, 1, "a")))
    assert database.rows() == [(1, "a")]


def test_what_would_keep_it_from_writing_is_told_before(database: Database) -> None:
    postgres.check(database.options, TABLE)
    assert database.run("SELECT to_regclass(%s)", f"{database.schema}.orders") == [(None,)]

    gone = database.refusal(TABLE, url="postgresql://u@127.0.0.1:1/x")
    assert gone.code == "CONNECTOR_UNREACHABLE"
    assert database.refusal(TABLE, table="nowhere.orders").code == "TARGET_MISMATCH"
    assert database.refusal(TABLE, table="x" * 64).code == "TARGET_MISMATCH"

    database.run(f"CREATE TABLE {database.schema}.orders (id int, name boolean, more int NOT NULL)")
    kept = Shape("orders", (*COLUMNS[:1], Column("name", "double"), Column("more", "int")))
    assert 'column "name" is a boolean' in database.refusal(kept).message
    assert '"more" is NOT NULL' in database.refusal(ADDED).message
    whole = Shape("orders", (*COLUMNS, Column("more", "int")), ("id",), upserts=True)
    assert "CREATE UNIQUE INDEX" in database.refusal(whole).hint
    database.run(f"CREATE UNIQUE INDEX ON {database.schema}.orders (id)")
    postgres.check(database.options, whole)


def test_missing_privileges_are_told_with_the_grant(database: Database, servers: Stack) -> None:
    url = servers.endpoints.postgres_reader_url.get_secret_value()
    role, table = str(conninfo_to_dict(url)["user"]), f"{database.schema}.orders"
    database.run(f"GRANT USAGE ON SCHEMA {database.schema} TO {role}")
    assert database.refusal(TABLE, url=url).hint == (
        f'GRANT CREATE ON SCHEMA "{database.schema}" TO "{role}";'
    )
    database.run(f"GRANT CREATE ON SCHEMA {database.schema} TO {role}")
    database.run(f"CREATE TABLE {table} (id int PRIMARY KEY, name text, tags jsonb)")
    database.run(f"GRANT SELECT ON {table} TO {role}")
    assert database.refusal(TABLE, url=url).hint == (
        f'GRANT INSERT, UPDATE, DELETE ON {table} TO "{role}";'
    )
    database.run(f"GRANT INSERT, UPDATE, DELETE ON {table} TO {role}")
    postgres.check({**database.options, "url": url}, TABLE)
    wrong = database.refusal(TABLE, url=url, password="mistaken")
    assert wrong.code == "TARGET_REFUSED"
    assert "mistaken" not in wrong.message


def test_a_table_that_is_built_anew_takes_the_name(database: Database) -> None:
    database.take(TABLE, batch((0, 1, "a"), (1, 2, "b"), (2, 2, None)))
    schema, old = database.schema, database.options
    database.run(f"CREATE INDEX ON {schema}.orders (name)")
    database.run(f"GRANT SELECT ON {schema}.orders TO PUBLIC")
    new = {**old, **postgres_beside.place(old, "orders", 2)}
    postgres_beside.check(old, TABLE, "out")
    for _ in range(2):
        postgres_beside.prepare(old, new, TABLE)
    database.options = new
    database.take(TABLE, batch((0, 1, "z")))
    assert database.rows() == [(1, "a")]
    for _ in range(2):
        postgres_beside.switch(old, new, TABLE, "out", 2)
    database.options = old
    assert database.rows() == [(1, "z")]
    database.take(TABLE, batch((0, 1, "again"), (1, 2, "y")))  # what it has, it knows
    assert database.rows() == [(1, "z"), (2, "y")]
    [[indexes, open_]] = database.run(
        "SELECT count(DISTINCT indexrelid), bool_or(a.grantee = 0) FROM pg_index i, pg_class c,"
        " aclexplode(relacl) a WHERE i.indrelid = c.oid AND c.oid = %s::regclass",
        f"{schema}.orders",
    )
    assert (indexes, open_) == (2, True)
    tables = database.run("SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)
    assert {name for [name] in tables} == {"orders", "_mainstem_sinks"}
    postgres_beside.discard(new, TABLE)
    database.run(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.orders")
    with pytest.raises(MainstemError, match="views read it"):
        postgres_beside.check(old, TABLE, "out")
