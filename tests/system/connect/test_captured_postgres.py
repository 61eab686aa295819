"""From PostgreSQL's tables to ours, through the real Debezium: rows are equal, changes in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mainstem.errors import MainstemError
from mainstem.testing.capturing import LONG, Capturing
from mainstem.testing.carried import CarriedTable
from mainstem.testing.driver import Driver
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SOURCE = (
    "CREATE SOURCE store WITH (connector = 'postgres-cdc', url = '${env:SHOP_URL}',"
    " tables = 'things', heartbeat = '1 second', commits = 'true')"
    " TRANSFORM (drop(things.pin), mask(things.card, redact), mask(things.memo, redact));"
)
STITCHED = """
CREATE TABLE whole AS
  SELECT transaction, transform(array_sort(collect_list(thing)), t -> t.what) AS things,
    transform(array_sort(collect_list(extra)), e -> e.what) AS extras
  FROM (
    SELECT transaction, struct(_offset, concat(op, coalesce(after.id, before.id)) AS what) AS thing,
      NULL AS extra, NULL AS changes
    FROM store_things_changes WHERE op <> 'r'
    UNION ALL
    SELECT transaction, NULL, struct(_offset, concat(op, after.id) AS what), NULL
    FROM store_extras_changes WHERE op <> 'r'
    UNION ALL
    SELECT substring_index(payload.id, ':', 1), NULL, NULL, payload.event_count FROM store_commits
    WHERE payload.status = 'END' AND payload.event_count > 0
  ) GROUP BY transaction HAVING count(*) > max(changes);
CREATE STREAM wholes AS SELECT transaction FROM whole;
"""
UNSEEN = {"pin": "4711-pin", "card": "4111-card", "memo": "m" * 20_000}
"""What is dropped and redacted: it must not be in the log."""
# what each column holds in the source, as the log writes it
COLUMNS = {
    "id": "id",
    "card": "'***'",
    "memo": "'***'",
    "yes": "yes",
    "small": "small",
    "real": "real::text",
    "price": "price::text",
    "free": "free::text",
    "money": "money::numeric::text",
    "note": "note",
    "fixed": "fixed",
    "code": "code::text",
    "doc": "doc::text",
    "mood": "mood::text",
    "day": "day::text",
    "clock": "clock::text",
    "at": """to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US')""",
    "ms": """to_char(ms, 'YYYY-MM-DD"T"HH24:MI:SS.US')""",
    "since": """to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    "data": "translate(encode(data, 'base64'), E'\\n', '')",
    "tags": "tags",
    "days": "days::text[]",
    "shares": "shares::text[]",
    "numbers": "numbers",
    "codes": "codes::text[]",
}
MAKE = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE things (
  id bigint PRIMARY KEY, pin text, card varchar(20), memo text,
  yes boolean NOT NULL DEFAULT true, small smallint DEFAULT 5, real real,
  price numeric(12,2) NOT NULL, free numeric, money money, note text, fixed char(4), code uuid,
  doc jsonb, mood mood, day date, clock time, at timestamp, ms timestamp(3), since timestamptz,
  data bytea, tags text[], days date[], shares numeric(6,2)[],
  numbers int[], codes uuid[]);
ALTER TABLE things OWNER TO capturer;
ALTER TABLE things ALTER note SET STORAGE EXTERNAL, ALTER memo SET STORAGE EXTERNAL,
  ALTER free SET STORAGE EXTERNAL, ALTER doc SET STORAGE EXTERNAL, ALTER data SET STORAGE EXTERNAL,
  ALTER tags SET STORAGE EXTERNAL, ALTER days SET STORAGE EXTERNAL,
  ALTER numbers SET STORAGE EXTERNAL, ALTER codes SET STORAGE EXTERNAL;
"""
EXTRAS = """
CREATE TABLE extras (id bigint PRIMARY KEY, note text);
ALTER TABLE extras OWNER TO capturer;
INSERT INTO extras SELECT id, 'first' FROM generate_series(1, 20000) AS id
"""
LARGE = "x" * 20_000
"""PostgreSQL keeps it beside the row, and does not send it with an update that leaves it alone."""
CODE = "7f1e4b9e-6f3c-4c5d-9e58-0a4a3c1e2d3f"


@pytest.fixture
def things(capturing: Capturing) -> Iterator[psycopg.Connection[Any]]:
    """The table, with some rows that are there before anybody looks."""
    with psycopg.connect(capturing.shop.url(), autocommit=True) as connection:
        connection.execute(MAKE)
        connection.execute(EXTRAS)
        yield connection
        connection.execute("DROP TABLE things, extras; DROP TYPE mood")


class Workload:
    """Random changes of the table, and which of them are to be seen in its stream."""

    def __init__(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        self._connection = connection
        self._dice = dice
        self._ids: set[int] = set()
        self._made = 0
        self.changes: list[tuple[str, int | None]] = []
        self.commits: dict[str, list[str]] = {}
        """The changes of each transaction."""

    def run(self, steps: int) -> None:
        """So many transactions, some of which are taken back."""
        for _ in range(steps):
            ids, seen = set(self._ids), len(self.changes)
            with self._connection.transaction() as transaction:
                for _ in range(self._dice.randrange(1, 4)):
                    self._step()
                number = self.transaction()
                if self._dice.random() < 0.15:
                    self._ids, self.changes = ids, self.changes[:seen]
                    raise psycopg.Rollback(transaction)
                self.commits[number] = [f"{op}{id}" for op, id in self.changes[seen:]]

    def transaction(self) -> str:
        """The number of the one that it is in."""
        found = self._connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        assert found is not None
        return str(found[0])

    def insert(self) -> int:
        """A row more, and its id."""
        new = self._new()
        self._insert(new)
        return new

    def truncate(self) -> None:
        """Deletes all rows at once."""
        self._connection.execute("TRUNCATE things")
        self._ids.clear()
        self.changes.append(("t", None))

    def _step(self) -> None:
        dice, known = self._dice, sorted(self._ids)
        kind = dice.choice(["insert", "insert", "update", "toast", "toast", "delete", "rekey"])
        if kind == "insert" or not known:
            self.insert()
            return
        id = dice.choice(known)
        match kind:
            case "update":
                self._update(id, "price = price + 0.01, yes = NOT yes, small = NULL, free = 'NaN'")
            case "toast":  # the large value stays as it is, and is not sent
                self._update(id, "real = 0.5")
            case "delete":
                self._connection.execute("DELETE FROM things WHERE id = %s", (id,))
                self._ids.remove(id)
                self.changes.append(("d", id))
            case "rekey":
                new = self._new()
                self._connection.execute("UPDATE things SET id = %s WHERE id = %s", (new, id))
                self._ids = self._ids - {id} | {new}
                self.changes += [("d", id), ("c", new)]

    def _new(self) -> int:
        self._made += self._dice.randrange(1, 5)
        return self._made

    def _update(self, id: int, what: str) -> None:
        self._connection.execute(f"UPDATE things SET {what} WHERE id = %s".encode(), (id,))
        self.changes.append(("u", id))

    def _insert(self, id: int) -> None:
        dice = self._dice
        row = {
            "id": id,
            **{name: dice.choice([text, None]) for name, text in UNSEEN.items()},
            "price": dice.choice(["-9999999999.99", "0", "12.30"]),
            "free": dice.choice(
                ["1e-30", "12345678901234567890123456789012345678901234567890", "7" * 9_000, None]
            ),
            "money": dice.choice(["-12.34", None]),
            "note": dice.choice([LARGE + str(id), 'a "quote" \n ü', "", None]),
            "fixed": dice.choice(["ab", None]),
            "code": dice.choice([CODE, None]),
            "doc": dice.choice(['{"payload": {"a": [1, "},"]}}', f'["{LARGE}"]', None]),
            "mood": dice.choice(["good", None]),
            "day": dice.choice(["0001-01-01", "9999-12-31", None]),
            "clock": dice.choice(["24:00:00", "00:00:00", "12:34:56.789", None]),
            "at": dice.choice(["1900-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999", None]),
            "ms": dice.choice(["2026-01-01 10:00:00.123", None]),
            "since": dice.choice(["2026-06-01 12:00:00.5+02", "1800-01-01 00:00:00Z", None]),
            "data": dice.choice([b"\x00\xff", b"\xfe" * 9_000, b"", None]),
            "tags": dice.choice([["a", None, 'b"'], [LARGE, ""], [], None]),
            "days": dice.choice([["2026-01-01", None], ["2026-01-01"] * 900, None]),
            "shares": dice.choice([["1.5", "-2"], None]),
            "numbers": dice.choice([[1, -2], [7] * 900, None]),
            "codes": dice.choice([[CODE] * 300, None]),
        }
        places = ", ".join(f"%({name})s" for name in row)
        statement = f"INSERT INTO things ({', '.join(row)}) VALUES ({places})"
        statement = statement.replace("%(mood)s", "%(mood)s::mood").replace(
            "%(days)s", "%(days)s::date[]"
        )
        for name, kind in (("shares", "numeric"), ("codes", "uuid")):
            statement = statement.replace(f"%({name})s", f"%({name})s::{kind}[]")
        self._connection.execute(statement.encode(), row)
        self._ids.add(id)
        self.changes.append(("c", id))


def test_rows_and_changes_of_a_random_workload(
    capturing: Capturing, things: psycopg.Connection[Any], driver: Driver, seed: int
) -> None:
    workload = Workload(things, random.Random(seed))
    workload.run(20)
    driver.apply(SOURCE)
    table = CarriedTable(capturing, driver, "store", "store_things")
    table.carry()
    workload.run(20)  # some of it while the rows that are there are read
    table.await_row(workload.insert())
    assert_equal(driver, things, COLUMNS)

    before = len(table.seen())
    workload.changes.clear()
    workload.commits.clear()
    workload.run(20)
    workload.truncate()
    workload.run(10)
    table.await_all(workload.changes, before)
    assert_equal(driver, things, COLUMNS)

    things.execute("ALTER TABLE things ADD COLUMN more numeric(5,1)")
    workload.run(5)
    things.execute("UPDATE things SET more = 7.5")
    workload.changes += [("u", None)] * len(things.execute("SELECT FROM things").fetchall())
    table.await_all(workload.changes, before)
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "SOURCE_CHANGED"
    driver.apply(SOURCE)
    assert_equal(driver, things, {**COLUMNS, "more": "more::text"})
    driver.apply(SOURCE.replace("'things'", "'things, extras'"))
    extras = CarriedTable(capturing, driver, "store", "store_extras")
    extras.carry()
    things.execute("UPDATE extras SET note = 'changed' WHERE id % 2 = 0")
    extras.await_snapshot("public.extras")
    things.execute("INSERT INTO extras VALUES (0, 'last')")
    extras.await_row(0)
    driver.run()
    rows = {row["id"]: row["note"] for row in driver.rows("store_extras")}
    assert rows == dict(things.execute("SELECT id, note FROM extras").fetchall())

    before = len(extras.seen())
    capturing.keeper.care("store").snapshot(["public.extras"])
    eventually(lambda: len(extras.seen()) >= before + len(rows), LONG, what="all rows once more")
    assert_whole(capturing, driver, things, workload)
    log = b"".join(table.values())
    assert not [name for name, text in UNSEEN.items() if text[:100].encode() in log]


def assert_whole(
    capturing: Capturing, driver: Driver, things: psycopg.Connection[Any], workload: Workload
) -> None:
    """Each transaction is one event, once, with all its changes in their order."""
    with things.transaction():
        id = workload.insert()
        things.execute("UPDATE extras SET note = 'both' WHERE id IN (1, 2)")
        both = workload.transaction()
    topic = driver.entry("store_commits").definition.topic
    end = f'"status":"END","id":"{both}:'.encode()
    eventually(lambda: any(end in value for value in capturing.values(topic)), LONG, what="its end")
    driver.apply(STITCHED)
    driver.run()
    found = {row["transaction"]: (row["things"], row["extras"]) for row in driver.rows("whole")}
    assert found[both] == ([f"c{id}"], ["u1", "u2"])
    assert workload.commits
    for number, changes in workload.commits.items():
        assert found[number] == (changes, []), number
    events = [(row["op"], row["after"]["transaction"]) for row in driver.rows("wholes")]
    assert sorted(events) == sorted(("insert", number) for number in found)


def assert_equal(driver: Driver, things: psycopg.Connection[Any], columns: dict[str, str]) -> None:
    """The table is what the source's is, row by row."""
    driver.run()
    shown = ", ".join(f"{text} AS {name}" for name, text in columns.items())
    cursor = things.execute(f"SELECT {shown} FROM things".encode())
    names = [column.name for column in cursor.description or ()]
    wanted = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    found = {row["id"]: _texts(row) for row in driver.rows("store_things")}
    assert found.keys() == wanted.keys()
    for id, row in wanted.items():
        assert found[id] == row, id
    assert driver.quarantine() == []


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers with a point as the texts that PostgreSQL makes of them."""
    made = dict(row)
    for name in ("real", "price", "money", "more"):
        if made.get(name) is not None:
            made[name] = f"{made[name]:f}"
    if made["shares"] is not None:
        made["shares"] = [f"{share:.2f}" for share in made["shares"]]
    return made
