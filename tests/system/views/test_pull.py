"""Pull queries on a real PostgreSQL: values, limits, time-outs, refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import pytest

from mainstem.errors import MainstemError
from mainstem.views.pull import Ask, Pull
from mainstem.views.readers import Readers
from mainstem.views.store import ViewStore, connect

T = TypeVar("T")
COLUMNS = {
    "k": "string", "n": "bigint", "x": "decimal(30,10)", "d": "double", "b": "boolean",
    "day": "date", "at": "timestamp", "local": "timestamp_ntz", "raw": "binary",
    "j": "map<string,int>",
}  # fmt: skip


def with_pull(postgres: Any, work: Callable[[Pull], Awaitable[T]], **limits: Any) -> T:
    async def run() -> T:
        readers = Readers(postgres.reader_url, limits.get("seconds", 10.0))
        await readers.open()
        try:
            return await work(Pull(readers, limits.get("max_rows", 100), lambda name: {0: 9}))
        finally:
            await readers.close()

    return asyncio.run(run())


@pytest.fixture
def pulled(lab: Any) -> Any:
    """A view with one row, made without the log."""
    entry = lab.derived("pulled", "none", COLUMNS, "k")
    with connect(lab.postgres.url) as connection:
        store = ViewStore(connection, "reader")
        store.prepare()
        store.build(entry, {0: 4})
        connection.execute(
            "INSERT INTO pulled VALUES ('ä\"', 9007199254740993, 12345678901234567.5, 'NaN', true,"
            " '2026-11-15', '2026-11-15 10:00:00.5+01', '2026-11-15 10:00:00', '\\x00ff',"
            " '{\"a\": 1}')"
        )
        yield entry.definition
        store.drop("pulled")


def test_values_as_json(lab: Any, pulled: Any) -> None:
    sql = 'SELECT *, array[1, NULL] AS list, 1.50::numeric AS small FROM "pulled"'
    answer = with_pull(lab.postgres, lambda pull: pull.query(Ask(sql, (pulled,))))
    document = json.loads(answer.to_json())
    assert document["rows"] == [
        ['ä"', 9007199254740993, "12345678901234567.5000000000", "NaN", True, "2026-11-15",
         "2026-11-15T09:00:00.5Z", "2026-11-15T10:00:00", "AP8=", {"a": 1}, [1, None], 1.5]
    ]  # fmt: skip
    types = {c["name"]: c["type"] for c in document["columns"]}
    assert types["x"] == "decimal(30,10)"
    assert types["at"] == "timestamp"
    assert types["list"] == "array<int>"
    assert document["freshness"]["tables"] == {"pulled": {"offsets": {"0": 4}, "lag_records": 5}}


def test_look_up(lab: Any, pulled: Any) -> None:
    body = with_pull(lab.postgres, lambda pull: pull.lookup(pulled, {"k": 'ä"'}))
    found = json.loads(body)
    assert found["rows"][0]["n"] == 9007199254740993
    assert found["freshness"]["tables"]["pulled"]["offsets"] == {"0": 4}
    body = with_pull(lab.postgres, lambda pull: pull.lookup(pulled, {"k": "nobody"}))
    assert json.loads(body)["rows"] == []
    assert json.loads(body)["freshness"]["tables"]["pulled"]["offsets"] == {"0": 4}


def test_rows_are_limited(lab: Any, pulled: Any) -> None:
    sql = "SELECT * FROM generate_series(1, 50) AS g(n)"
    answer = with_pull(lab.postgres, lambda pull: pull.query(Ask(sql)), max_rows=20)
    assert (len(answer.rows), answer.truncated) == (20, True)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT pg_sleep(5)", "QUERY_TOO_LONG"),
        ('SELECT * FROM "absent"', "VIEW_NOT_READY"),
        ("SELECT 1/0 AS x", "QUERY_FAILED"),
        ("SELECT 1) AS a; DROP TABLE pulled; SELECT (1", "QUERY_FAILED"),
        ("DELETE FROM pulled RETURNING *", "QUERY_FAILED"),
        ("WITH d AS (DELETE FROM pulled RETURNING *) SELECT * FROM d", "QUERY_FAILED"),
    ],
)
def test_refusals(lab: Any, pulled: Any, sql: str, code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        seconds = 0.5 if code == "QUERY_TOO_LONG" else 10.0
        with_pull(lab.postgres, lambda pull: pull.query(Ask(sql)), seconds=seconds)
    assert caught.value.code == code
    with psycopg.connect(lab.postgres.url) as connection:
        assert connection.execute("SELECT count(*) FROM pulled").fetchone() == (1,)


def test_unknown_and_misfit_columns(lab: Any, pulled: Any) -> None:
    for equal, code in (({"nn": "1"}, "UNKNOWN_COLUMN"), ({"n": "x"}, "QUERY_FAILED")):
        with pytest.raises(MainstemError) as caught:
            with_pull(lab.postgres, lambda pull, equal=equal: pull.lookup(pulled, equal))
        assert caught.value.code == code


def test_look_ups_that_come_at_once_are_asked_at_once(lab: Any) -> None:
    entry = lab.declared("many", "none", {"a": "bigint", "b": "string", "v": "double"}, "a", "b")

    async def all_of_them(pull: Pull) -> list[Any]:
        keys = [{"b": f"b{n}", "a": str(n)} for n in range(500)]
        keys += [{"b": "x", "a": "no number"}, {"b": "none", "a": "1"}, {"b": "b7", "a": "7"}]
        asks = (pull.lookup(entry.definition, key) for key in keys)
        return await asyncio.gather(*asks, return_exceptions=True)

    with connect(lab.postgres.url) as connection:
        store = ViewStore(connection, "reader")
        store.prepare()
        store.build(entry, {0: 4})
        connection.execute(
            "INSERT INTO many SELECT n, 'b' || n, n / 2.0 FROM generate_series(0, 499) n"
        )
        connection.execute("SELECT pg_stat_reset()")
        *found, wrong, none, again = with_pull(lab.postgres, all_of_them)
        store.drop("many")
    for n, body in enumerate([*found]):
        assert json.loads(body)["rows"] == [{"a": n, "b": f"b{n}", "v": n / 2}]
    assert isinstance(wrong, MainstemError)
    assert wrong.code == "QUERY_FAILED"
    assert json.loads(none)["rows"] == []
    assert json.loads(again)["rows"] == [{"a": 7, "b": "b7", "v": 3.5}]
    assert json.loads(again)["freshness"]["tables"]["many"]["offsets"] == {"0": 4}


def test_a_long_answer_is_streamed(lab: Any, pulled: Any) -> None:
    async def lines(pull: Pull, sql: str, limit: int | None = None) -> list[Any]:
        pieces = await pull.stream(Ask(sql, (pulled,), None, limit))
        text = b"".join([piece async for piece in pieces])
        return [json.loads(line) for line in text.splitlines()]

    series = "SELECT n, 'row ' || n AS t FROM generate_series(1, 5000) AS g(n)"
    head, *rows, end = with_pull(lab.postgres, lambda pull: lines(pull, series), max_rows=20)
    assert [c["name"] for c in head["columns"]] == ["n", "t"]
    assert head["freshness"]["tables"]["pulled"]["offsets"] == {"0": 4}
    assert rows == [[n, f"row {n}"] for n in range(1, 5001)]
    assert end == {"end": True, "rows": 5000, "truncated": False}
    _, *rows, end = with_pull(lab.postgres, lambda pull: lines(pull, series, 4000))
    assert (len(rows), end) == (4000, {"end": True, "rows": 4000, "truncated": True})
    late = "SELECT 1 / (4500 - n) AS x FROM generate_series(1, 5000) AS g(n)"
    *_, last = with_pull(lab.postgres, lambda pull: lines(pull, late))
    assert last["error"]["title"] == "QUERY_FAILED"
    with pytest.raises(MainstemError) as caught:
        with_pull(lab.postgres, lambda pull: lines(pull, "SELECT 1 / 0 AS x"))
    assert caught.value.code == "QUERY_FAILED"


def test_what_is_cancelled_ends_in_postgres(lab: Any, pulled: Any) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(9)%'"
    sleeping = running + " AND state = 'active' AND pid <> pg_backend_pid()"

    async def leave(pull: Pull) -> None:
        task = asyncio.create_task(pull.query(Ask("SELECT pg_sleep(9)")))
        while lab.postgres.rows(sleeping) == [(0,)]:  # the test's own time-out ends it
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert lab.postgres.rows(sleeping) == [(0,)]

    with_pull(lab.postgres, leave)


def test_a_table_that_is_read_whole_asks_for_an_index(lab: Any) -> None:
    columns = {"k": "bigint", "country": "string", "note": "string"}
    entry = lab.declared("wide", "none", columns, "k")
    ask = Ask("SELECT k FROM wide WHERE country = 'c7'", (entry.definition,))
    with connect(lab.postgres.url) as connection:
        store = ViewStore(connection, "reader")
        store.prepare()
        store.build(entry, {0: 4})
        connection.execute(
            "INSERT INTO wide SELECT n, 'c' || n % 1000, repeat('x', 50)"
            " FROM generate_series(1, 50000) n"
        )
        connection.execute("ANALYZE wide")
        plan, hints = with_pull(lab.postgres, lambda pull: pull.explain(ask))
        assert "Seq Scan" in plan
        assert [hint["sql"] for hint in hints] == ["CREATE INDEX ON wide (country)"]
        by_key = Ask("SELECT k FROM wide WHERE k = 7", (entry.definition,))
        assert with_pull(lab.postgres, lambda pull: pull.explain(by_key))[1] == ()
        most = Ask("SELECT k FROM wide WHERE k > 7", (entry.definition,))
        assert with_pull(lab.postgres, lambda pull: pull.explain(most))[1] == ()
        store.drop("wide")


def test_postgres_away() -> None:
    class Nowhere:
        reader_url = "postgresql://reader@127.0.0.1:1/postgres"

    async def ping(pull: Pull) -> None:
        await pull._readers.ping()

    with pytest.raises(MainstemError) as caught:
        with_pull(Nowhere(), ping)
    assert caught.value.code == "VIEW_STORE_UNREACHABLE"
