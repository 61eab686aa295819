"""From MariaDB's tables to ours, through the real Debezium: rows are equal, changes in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from mainstem.connect.captures import capture_of
from mainstem.connect.mysql_connection import Server
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.errors import MainstemError
from mainstem.testing.capturing import SECRET, Capturing
from mainstem.testing.carried import CarriedTable, Change
from mainstem.testing.driver import Driver
from mainstem.testing.source_mariadb import SourceMariaDb

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SOURCE = (
    "CREATE SOURCE market WITH (connector = 'mariadb-cdc', url = '${env:MARKET_URL}',"
    " tables = 'things', heartbeat = '1 second')"
    " TRANSFORM (drop(things.pin), mask(things.card, redact));"
)
UNSEEN = {"pin": "4711-pin", "card": "4111-card"}
"""What is dropped and redacted: it must not be in the log."""
# of each column: its type, values, and what it holds in the source, as the log writes it
NULL = "NULL"
ISO = "date_format({}, '%Y-%m-%dT%H:%i:%s.%f')"
TYPES: dict[str, tuple[str, list[str], str]] = {
    "flag": ("tinyint(1) NOT NULL DEFAULT 1", ["0", "1", "5"], "flag"),
    "byte": ("tinyint unsigned", ["255", NULL], "byte"),
    "small": ("smallint unsigned", ["65535", NULL], "small"),
    "medium": ("mediumint", ["-8388608", NULL], "medium"),
    "whole": ("int unsigned", ["4294967295", NULL], "whole"),
    "large": ("bigint unsigned", ["18446744073709551615", "0", NULL], "cast(large AS char)"),
    "price": ("decimal(12,2) NOT NULL", ["-9999999999.99", "0", "12.30"], "cast(price AS char)"),
    "wide": (
        "decimal(60,30)",
        ["123456789012345678901234567890.123456789012345678901234567890", NULL],
        "cast(wide AS char)",
    ),
    "ratio": ("double", ["0.1", "-1.5", NULL], "ratio"),
    "bit1": ("bit(1)", ["b'1'", "b'0'", NULL], "bit1 + 0"),
    "bits": ("bit(9)", ["b'101010101'", "b'1'", NULL], "lpad(bin(bits), 9, '0')"),
    "many": ("bit(64)", ["~0", "1", NULL], "lpad(bin(many), 64, '0')"),
    "built": ("year", ["2026", "1901", "2155", NULL], "built + 0"),
    "day": ("date", ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", NULL], "nullif(day, 0)"),
    "at": ("datetime", ["'1000-01-01 00:00:00'", "0", NULL], ISO.format("nullif(at, 0)")),
    "fine": ("datetime(6)", ["'9999-12-31 23:59:59.999999'", NULL], ISO.format("fine")),
    "since": (
        "timestamp NULL",
        ["'2026-06-01 12:00:00'", "'1970-01-01 00:00:01'", "0", NULL],
        f"concat({ISO.format('nullif(since, 0)')}, 'Z')",
    ),
    "exact": ("timestamp(6) NULL", ["'2038-01-19 03:14:07.000001'", NULL],
              f"concat({ISO.format('exact')}, 'Z')"),
    "span": ("time", ["'-838:59:59'", "'838:59:59'", "'00:00:00'", NULL], "cast(span AS char)"),
    "clock": ("time(6)", ["'-00:00:00.500001'", "'12:34:56.789012'", NULL], "cast(clock AS char)"),
    "mood": ("enum('good','so, so')", ["'so, so'", "'good'", NULL], "mood"),
    "tags": ("set('x','y','z')", ["'x,z'", "''", NULL], "tags"),
    "doc": ("json", ["'{\"payload\": {\"a\": [1, \"},\"]}}'", NULL], "doc"),
    "note": ("longtext", ["repeat('x', 20000)", "'a \"quote\" \\n ü 😀'", "''", NULL], "note"),
    "name": ("varchar(20) CHARACTER SET latin1", ["'ü'", NULL], "convert(name USING utf8mb4)"),
    "code": ("uuid", ["'7f1e4b9e-6f3c-4c5d-9e58-0a4a3c1e2d3f'", NULL], "cast(code AS char)"),
    "data": ("varbinary(20)", ["x'00ff'", "''", NULL], "to_base64(data)"),
    "twice": ("bigint AS (id * 2) VIRTUAL", [], "twice"),
}  # fmt: skip


@pytest.fixture
def things(capturing: Capturing, market: SourceMariaDb) -> Iterator[Server]:
    """A connection that is not strict with dates, and the table, with no row yet."""
    capturing.environment["MARKET_URL"] = market.url("capturer", SECRET)
    columns = ", ".join(f"{name} {type_}" for name, (type_, _, _) in TYPES.items())
    with market.connection() as server:
        server.rows("USE shop")
        server.rows("SET sql_mode = ''")
        server.rows(
            "CREATE TABLE things (id bigint PRIMARY KEY, pin varchar(9), card varchar(20),"
            f" {columns})"
        )
        server.rows("CREATE TABLE extras (id bigint PRIMARY KEY, note text)")
        server.rows("INSERT INTO extras SELECT seq, 'first' FROM seq_1_to_20000")
        yield server
        server.rows("DROP TABLE things, extras")


class Workload:
    """Random changes of the table, and which of them are to be seen in its stream."""

    def __init__(self, server: Server, dice: random.Random) -> None:
        self._server = server
        self._dice = dice
        self._ids: set[int] = set()
        self._made = 0
        self.changes: list[Change] = []

    def run(self, steps: int) -> None:
        """So many transactions, some of which are taken back."""
        for _ in range(steps):
            ids, seen = set(self._ids), len(self.changes)
            self._server.rows("BEGIN")
            for _ in range(self._dice.randrange(1, 4)):
                self._step()
            if self._dice.random() < 0.15:
                self._ids, self.changes = ids, self.changes[:seen]
                self._server.rows("ROLLBACK")
            else:
                self._server.rows("COMMIT")

    def insert(self) -> int:
        """A row more, and its id."""
        new = self._new()
        row = {name: self._dice.choice(values) for name, (_, values, _) in TYPES.items() if values}
        row |= {name: self._dice.choice([f"'{text}'", NULL]) for name, text in UNSEEN.items()}
        names, values = ", ".join(("id", *row)), ", ".join((str(new), *row.values()))
        self._server.rows(f"INSERT INTO things ({names}) VALUES ({values})")
        self._ids.add(new)
        self.changes.append(("c", new))
        return new

    def truncate(self) -> None:
        """Deletes all rows at once."""
        self._server.rows("TRUNCATE things")
        self._ids.clear()
        self.changes.append(("t", None))

    def _step(self) -> None:
        dice, known = self._dice, sorted(self._ids)
        kind = dice.choice(["insert", "insert", "update", "delete", "rekey"])
        if kind == "insert" or not known:
            self.insert()
            return
        id = dice.choice(known)
        match kind:
            case "update":
                change = "price = price + 0.01, flag = 1 - flag, byte = NULL, large = large - 1"
                self._server.rows(
                    f"UPDATE things SET {change} WHERE id = {id} AND coalesce(large, 1) > 0"
                    " AND price < 1000"
                )
                found = self._server.rows("SELECT row_count() AS changed")
                self.changes += [("u", id)] * int(found[0]["changed"])
            case "delete":
                self._server.rows(f"DELETE FROM things WHERE id = {id}")
                self._ids.remove(id)
                self.changes.append(("d", id))
            case "rekey":
                new = self._new()
                self._server.rows(f"UPDATE things SET id = {new} WHERE id = {id}")
                self._ids = self._ids - {id} | {new}
                self.changes += [("d", id), ("c", new)]

    def _new(self) -> int:
        self._made += self._dice.randrange(1, 5)
        return self._made


def test_rows_and_changes_of_a_random_workload(
    capturing: Capturing, things: Server, driver: Driver, seed: int
) -> None:
    workload = Workload(things, random.Random(seed))
    workload.run(20)
    driver.apply(SOURCE)
    table = CarriedTable(capturing, driver, "market", "market_things")
    table.carry()
    workload.run(20)  # some of it while the rows that are there are read
    table.await_row(workload.insert())
    assert_equal(driver, things, TYPES)

    before = len(table.seen())
    workload.changes.clear()
    workload.run(20)
    workload.truncate()
    workload.run(10)
    table.await_all(workload.changes, before)
    assert_equal(driver, things, TYPES)

    things.rows("ALTER TABLE things ADD COLUMN more decimal(5,1), ADD COLUMN sure BOOLEAN")
    workload.run(5)
    things.rows("UPDATE things SET more = 7.5, sure = true")
    [count] = things.rows("SELECT count(*) AS n FROM things")
    workload.changes += [("u", None)] * int(count["n"])
    table.await_all(workload.changes, before)
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "SOURCE_CHANGED"
    driver.apply(SOURCE)
    more = {"more": ("", [], "cast(more AS char)"), "sure": ("", [], "sure")}
    assert_equal(driver, things, {**TYPES, **more})
    log = b"".join(table.values())
    assert not [name for name, text in UNSEEN.items() if text.encode() in log]
    assert capturing.shown("market")["position"].startswith("binlog.")

    driver.apply(SOURCE.replace("'things'", "'things, extras'"))
    extras = CarriedTable(capturing, driver, "market", "market_extras")
    extras.carry()
    things.rows("UPDATE extras SET note = 'changed' WHERE id % 2 = 0")
    extras.await_snapshot("shop.extras")
    things.rows("INSERT INTO extras VALUES (0, 'last')")
    extras.await_row(0)
    driver.run()
    wanted = {row["id"]: row["note"] for row in things.rows("SELECT * FROM extras")}
    assert {row["id"]: row["note"] for row in driver.rows("market_extras")} == wanted
    workload.changes.clear()
    before = len(table.seen())
    workload.run(3)
    table.await_all(workload.changes, before)
    assert_equal(driver, things, {**TYPES, **more})


def assert_equal(
    driver: Driver, things: Server, columns: dict[str, tuple[str, list[str], str]]
) -> None:
    """The table is what the source's is, row by row."""
    driver.run()
    shown = ", ".join(f"{text} AS `{name}`" for name, (_, _, text) in columns.items())
    masked = "'***' AS card"
    rows = things.rows(f"SELECT id, {masked}, {shown} FROM things")
    wanted = {row["id"]: {name: _text(value) for name, value in row.items()} for row in rows}
    found = {
        row["id"]: {name: _text(value) for name, value in row.items()}
        for row in driver.rows("market_things")
    }
    assert found.keys() == wanted.keys()
    for id, row in wanted.items():
        assert found[id] == row, id
    assert driver.quarantine() == []


def _text(value: Any) -> Any:
    """As one of both sides writes it: numbers and dates as texts, times without needless digits."""
    if value is None or isinstance(value, bool):
        return None if value is None else str(int(value))
    if isinstance(value, float):
        return repr(value)
    return f"{value:f}" if hasattr(value, "as_tuple") else str(value)


def test_rows_are_asked_for(market: SourceMariaDb, driver: Driver) -> None:
    """The same database without its log: by `jdbc-poll`, with MariaDB's own driver."""
    secret = driver.folder / "secrets" / "password"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    secrets = Secrets(driver.folder, {})
    driver.connectors = PlannedConnectors(
        secrets, capture_of, lambda *_: None, ask_engine=driver.look
    )
    market.run(
        "CREATE TABLE polled (id bigint unsigned PRIMARY KEY, price decimal(12,2), note text,"
        " changed datetime(6), since timestamp NULL)",
        "INSERT INTO polled SELECT seq, seq / 4, concat('ü ', seq),"
        " '2026-11-16 10:00:00.000001' + INTERVAL seq DIV 3 SECOND, '2026-11-16 10:00:00'"
        " FROM seq_1_to_7",
    )
    try:
        driver.apply(
            "CREATE SOURCE polling WITH (connector = 'jdbc-poll', partitions = 1,"
            f" url = 'jdbc:mariadb://127.0.0.1:{market.port}/shop', user = 'capturer',"
            " password = '${file:secrets/password}', \"table\" = 'polled', batch_rows = 4,"
            " incrementing = 'id', timestamp = 'changed', delay = '0 seconds');"
        )
        driver.run()
        driver.run()
        market.run(
            "UPDATE polled SET note = NULL, changed = '2026-11-16 11:00:00' WHERE id = 2",
            "INSERT INTO polled VALUES (18446744073709551615, NULL, '', '2026-11-16 12:00', NULL)",
        )
        driver.run()
        rows = driver.rows("polling_events")
    finally:
        market.run("DROP TABLE polled")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 6, 7, 2, 18446744073709551615]
    assert (rows[0]["price"], rows[0]["note"]) == (Decimal("0.25"), "ü 1")
    assert (rows[7]["note"], rows[8]["note"]) == (None, "")
    assert [row["changed"][:26] for row in (rows[0], rows[7])] == [
        "2026-11-16T10:00:00.000001",
        "2026-11-16T11:00:00.000000",
    ]
    assert rows[0]["since"] == "2026-11-16T10:00:00.000000Z"
