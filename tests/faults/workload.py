"""Random changes of a table of PostgreSQL, with an account of what was committed, in its order.

The account is one half of the proof that no change is lost or doubled on its way. A commit whose
answer got lost is looked up: each transaction leaves its number in a table of its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import psycopg.types.json
from psycopg import sql

from mainstem.testing.waiting import eventually

TABLE = "things"
_MAKE = """
CREATE TABLE things (
  id bigint PRIMARY KEY, version bigint NOT NULL, price numeric(12,2), note text);
ALTER TABLE things ALTER note SET STORAGE EXTERNAL;
CREATE TABLE outbox (
  id bigint PRIMARY KEY, aggregatetype text, aggregateid text, type text, payload jsonb);
CREATE TABLE ledger (number bigint PRIMARY KEY);
"""
_LARGE = "x" * 3_000
"""PostgreSQL keeps it beside the row, and does not send it with an update that leaves it alone."""
_PAUSE_SECONDS = 0.01
_ABORTED = 0.1
_BACK_SECONDS = 120


class Change(NamedTuple):
    """A change as its stream has to tell it; `version` is another one for each."""

    op: str
    id: int | None = None
    version: int | None = None


class Event(NamedTuple):
    """An event of the outbox, as its topic has to tell it."""

    kind: str
    key: str
    id: int


Connected = psycopg.Connection[tuple[Any, ...]]
_Step = Callable[[Connected], None]


class Workload:
    """Changes the table, one transaction after the other; a server that is away is waited for."""

    def __init__(self, url: str, dice: random.Random, rows: int) -> None:
        """Makes the table, with some rows."""
        self._url = url
        self._dice = dice
        self._turn = threading.Lock()
        self._ids: set[int] = set(range(1, rows + 1))
        self._highest = rows
        self._version = rows
        self._number = 0
        self._more: list[str] = []
        self._connection = psycopg.connect(url)
        self._connection.execute(_MAKE)
        self._connection.execute(
            "INSERT INTO things SELECT n, n, n / 100.0, n || %s FROM generate_series(1, %s) n",
            [_LARGE, rows],
        )
        self._connection.commit()
        self.changes: list[Change] = [Change("c", n, n) for n in range(1, rows + 1)]
        """All that were committed."""
        self.events: list[Event] = []
        """All that were committed to the outbox."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Transactions, one after the other, while the block runs."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(_PAUSE_SECONDS):
                steps = [self._random() for _ in range(self._dice.randrange(1, 4))]
                self.transaction(*steps, aborted=self._dice.random() < _ABORTED)

        thread = threading.Thread(target=run, name="workload", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def truncate(self) -> None:
        """Deletes all rows at once, then adds some."""
        self.transaction(self._truncate, *[self._insert] * 20)

    def delete(self, count: int) -> None:
        """Deletes so many rows, the oldest."""

        def step(connection: Connected) -> None:
            gone = sorted(self._ids)[:count]
            with connection.cursor() as cursor:  # one by one: their order is known then
                cursor.executemany("DELETE FROM things WHERE id = %s", [(id,) for id in gone])
            self._ids.difference_update(gone)
            self.changes.extend(Change("d", id) for id in gone)

        self.transaction(step)

    def add_column(self) -> str:
        """Alters the table; rows that change from then on have a value in the new column."""
        name = f"more{len(self._more) + 1}"

        def step(connection: Connected) -> None:
            add = sql.SQL("ALTER TABLE things ADD COLUMN {} bigint").format(sql.Identifier(name))
            connection.execute(add)
            if name not in self._more:
                self._more.append(name)

        self.transaction(step, self._insert)
        return name

    def transaction(self, *steps: _Step, aborted: bool = False) -> None:
        """Does the steps in one transaction, or takes them back."""
        with self._turn:
            self._number += 1
            before = (set(self._ids), len(self.changes), list(self._more))
            told = len(self.events)
            try:
                for step in steps:
                    step(self._connection)
                self._connection.execute("INSERT INTO ledger VALUES (%s)", [self._number])
                if aborted:
                    self._connection.rollback()
                else:
                    self._connection.commit()
                committed = not aborted
            except psycopg.OperationalError:
                committed = self._reconnect()
            if not committed:
                self._ids, length, self._more = before
                del self.changes[length:], self.events[told:]

    def rows(self) -> dict[int, dict[str, Any]]:
        """The rows as they are in the source."""
        with self._turn, self._connection.cursor() as cursor:
            cursor.execute("SELECT * FROM things")
            names = [column.name for column in cursor.description or ()]
            found = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
            self._connection.commit()
        assert found.keys() == self._ids, "the account is wrong"
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def _reconnect(self) -> bool:
        """Whether the last transaction was committed."""
        self._connection.close()
        self._connection = eventually(self._connected, _BACK_SECONDS, what="the source is back")
        found = self._connection.execute("SELECT FROM ledger WHERE number = %s", [self._number])
        committed = found.fetchone() is not None
        self._connection.commit()
        return committed

    def _connected(self) -> Connected | None:
        try:
            return psycopg.connect(self._url)
        except psycopg.OperationalError:
            return None

    # -- steps

    def _random(self) -> _Step:
        steps = [self._insert, self._insert, self._update, self._update, self._rewrite]
        return self._dice.choice([*steps, self._delete, self._rekey, self._tell])

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _new_id(self) -> int:
        self._highest += self._dice.randrange(1, 4)
        return self._highest

    def _insert(self, connection: Connected) -> None:
        id, version = self._new_id(), self._next()
        row = {"id": id, "version": version, "price": id / 100, "note": f"{version}{_LARGE}"}
        self._execute(connection, "INSERT INTO things ({}) VALUES ({})", row)
        self._ids.add(id)
        self.changes.append(Change("c", id, version))

    def _update(self, connection: Connected) -> None:
        """Leaves the large value alone."""
        self._set(connection, {"price": self._dice.randrange(10_000) / 100})

    def _rewrite(self, connection: Connected) -> None:
        self._set(connection, {"note": f"{self._version}{_LARGE}"})

    def _set(self, connection: Connected, values: dict[str, Any]) -> None:
        if not self._ids:
            return self._insert(connection)
        id, version = self._any(), self._next()
        row = {"version": version, **values}
        self._execute(connection, "UPDATE things SET ({}) = ROW({}) WHERE id = %(old)s", row, id)
        self.changes.append(Change("u", id, version))
        return None

    def _rekey(self, connection: Connected) -> None:
        if not self._ids:
            return
        old, new, version = self._any(), self._new_id(), self._next()
        row = {"id": new, "version": version}
        self._execute(connection, "UPDATE things SET ({}) = ROW({}) WHERE id = %(old)s", row, old)
        self._ids ^= {old, new}
        self.changes += [Change("d", old), Change("c", new, version)]

    def _delete(self, connection: Connected) -> None:
        if not self._ids:
            return
        id = self._any()
        connection.execute("DELETE FROM things WHERE id = %s", [id])
        self._ids.remove(id)
        self.changes.append(Change("d", id))

    def _truncate(self, connection: Connected) -> None:
        connection.execute("TRUNCATE things")
        self._ids.clear()
        self.changes.append(Change("t"))

    def _tell(self, connection: Connected) -> None:
        """An event that is in the outbox only as long as the transaction: in the log it is."""
        id = self._next()
        event = Event(self._dice.choice(("order", "refund")), f"k{id % 5}", id)
        row = [id, event.kind, event.key, "made", psycopg.types.json.Jsonb({"n": id})]
        connection.execute("INSERT INTO outbox VALUES (%s, %s, %s, %s, %s)", row)
        connection.execute("DELETE FROM outbox WHERE id = %s", [id])
        self.events.append(event)

    def _any(self) -> int:
        return self._dice.choice(sorted(self._ids))

    def _execute(
        self, connection: Connected, text: str, row: dict[str, Any], old: int | None = None
    ) -> None:
        """The statement with the names of the columns and their values put in."""
        row = {**row, **dict.fromkeys(self._more, row["version"])}
        names = sql.SQL(", ").join(map(sql.Identifier, row))
        values = sql.SQL(", ").join(map(sql.Placeholder, row))
        connection.execute(sql.SQL(text).format(names, values), {**row, "old": old})
