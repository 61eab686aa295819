"""Look-ups that are asked together: who gets what, over connections that only count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.views.freshness import Freshness
from mainstem.views.lookups import Lookups


class Readers:
    """Answers each statement when it is let; the row of a key has the key in capitals."""

    def __init__(self) -> None:
        self.statements: list[int] = []
        self.go = asyncio.Event()

    @asynccontextmanager
    async def single(self) -> AsyncIterator[Any]:
        yield self

    async def execute(self, sql: str, arrays: list[list[str]], prepare: bool) -> Readers:
        assert prepare and "unnest($1::text[])" in sql
        self.statements.append(len(arrays[0]))
        await self.go.wait()
        if "bad" in arrays[0]:
            raise MainstemError("QUERY_FAILED", problem="that is no key")
        found = [
            ('{"0":7}', str(n), f'"{key}"', f'"{key.upper()}"')
            for n, key in enumerate(arrays[0], 1)
            if key != "none"
        ]
        self.rows = found or [('{"0":7}', None, None, None)]
        return self

    async def fetchall(self) -> list[Any]:
        return self.rows


def users() -> Definition:
    statement = parse_one("CREATE TABLE users (id STRING PRIMARY KEY, name STRING)")
    assert isinstance(statement, Create)
    return statement.definition


async def asked(readers: Readers, *keys: str) -> list[Any]:
    lookups = Lookups(cast(Any, readers), 10, Freshness(lambda name: {0: 9}))
    definition = users()
    tasks = [asyncio.create_task(lookups.rows(definition, {"ID": key})) for key in keys]
    await asyncio.sleep(0)
    if "left" in keys:
        tasks[keys.index("left")].cancel()
    await asyncio.sleep(0)
    readers.go.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def rows(body: Any) -> Any:
    document = json.loads(body)
    assert document["freshness"]["tables"] == {"users": {"offsets": {"0": 7}, "lag_records": 2}}
    return document["rows"]


def test_who_asks_at_once_shares_a_statement() -> None:
    readers = Readers()
    keys = [f"k{n}" for n in range(300)] + ["none", "k1"]
    answers = asyncio.run(asked(readers, *keys))
    expected = [[] if key == "none" else [{"id": key, "name": key.upper()}] for key in keys]
    assert [rows(answer) for answer in answers] == expected
    assert sum(readers.statements) == len(keys)
    assert len(readers.statements) <= 4


def test_a_client_alone_waits_for_nobody() -> None:
    readers = Readers()
    (answer,) = asyncio.run(asked(readers, "a"))
    assert rows(answer) == [{"id": "a", "name": "A"}]
    assert readers.statements == [1]


def test_a_bad_value_is_the_error_of_who_gave_it() -> None:
    readers = Readers()
    first, bad, last = asyncio.run(asked(readers, "a", "bad", "b"))
    assert rows(first) == [{"id": "a", "name": "A"}]
    assert rows(last) == [{"id": "b", "name": "B"}]
    assert isinstance(bad, MainstemError)


def test_who_leaves_takes_nobody_along() -> None:
    readers = Readers()
    first, left, last = asyncio.run(asked(readers, "a", "left", "b"))
    assert isinstance(left, asyncio.CancelledError)
    assert (rows(first)[0]["name"], rows(last)[0]["name"]) == ("A", "B")


def test_unknown_columns() -> None:
    with pytest.raises(MainstemError) as caught:
        asyncio.run(
            Lookups(cast(Any, Readers()), 10, Freshness(lambda name: None)).rows(
                users(), {"nam": "x"}
            )
        )
    assert caught.value.code == "UNKNOWN_COLUMN"
