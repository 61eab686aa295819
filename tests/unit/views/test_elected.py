"""Who writes which view, over locks in memory that work as PostgreSQL's do."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mainstem.views import elected
from mainstem.views.elected import MEMBERS, Elected, key_of

VIEWS = {f"v{n}" for n in range(5)}


class Answer:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchone(self) -> Any:
        return self._rows[0]

    def fetchall(self) -> Any:
        return self._rows


class Server:
    """Advisory locks: those that are shared, and those of one session."""

    def __init__(self) -> None:
        self.members: set[int] = set()
        self.locks: dict[int, int] = {}

    def session(self, number: int) -> Elected:
        found = Elected(cast(Any, Session(self, number)))
        assert found.join()
        return found

    def end(self, number: int) -> None:
        self.members.discard(number)
        self.locks = {key: holder for key, holder in self.locks.items() if holder != number}


class Session:
    def __init__(self, server: Server, number: int) -> None:
        self.server, self.number = server, number

    def execute(self, sql: str, parameters: Any = ()) -> Answer:
        locks = self.server.locks
        if "pg_locks" in sql:
            return Answer([(MEMBERS, len(self.server.members)), *((key, 1) for key in locks)])
        (key,) = parameters
        if "shared" in sql:
            self.server.members.add(self.number)
            return Answer([(True,)])
        if "unlock" in sql:
            return Answer([(locks.pop(key, None) is not None,)])
        return Answer([(locks.setdefault(key, self.number) == self.number,)])


@pytest.fixture
def server() -> Server:
    return Server()


def test_one_alone_writes_all(server: Server) -> None:
    assert server.session(1).choose(VIEWS) == VIEWS


def test_who_comes_gets_a_part_and_who_goes_leaves_it(server: Server) -> None:
    first = server.session(1)
    assert first.choose(VIEWS) == VIEWS
    second = server.session(2)
    assert second.choose(VIEWS) == frozenset()
    kept = first.choose(VIEWS)
    taken = second.choose(VIEWS)
    assert (len(kept), len(taken)) == (3, 2)
    assert kept | taken == VIEWS
    third = server.session(3)
    for _ in range(2):
        parts = [one.choose(VIEWS) for one in (first, second, third)]
    assert sorted(map(len, parts)) == [1, 2, 2]
    assert frozenset().union(*parts) == VIEWS
    server.end(1)
    assert second.choose(VIEWS) | third.choose(VIEWS) == VIEWS


def test_what_another_should_write_and_does_not_is_taken_and_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(elected.time, "monotonic", lambda: now)
    first = server.session(1)
    server.session(2)  # it hangs
    assert len(first.choose(VIEWS)) == 3
    now += 2
    assert len(first.choose(VIEWS)) == 3
    now += 2
    assert first.choose(VIEWS) == VIEWS
    now += 30
    assert first.choose(VIEWS) == VIEWS
    now += 40
    assert len(first.choose(VIEWS)) == 3


def test_a_view_that_is_gone_is_left(server: Server) -> None:
    one = server.session(1)
    one.choose(VIEWS)
    assert one.choose(VIEWS - {"v0"}) == VIEWS - {"v0"}
    assert key_of("v0") not in server.locks
