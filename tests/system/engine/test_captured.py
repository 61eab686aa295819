"""Captured changes, written by hand as Debezium writes them: every type, and the rows they make."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from mainstem.engine.flow import Flow
from mainstem.errors import MainstemError
from mainstem.schemas.changes import UNAVAILABLE, unavailable
from mainstem.testing.changes import CapturedTable, given, told
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark
SECONDS = 120

ID = given("id", "bigint", "int64")
NOTE = given("note", "string", "string")
ITEMS = {"type": "string", "optional": True}
TYPES = [
    ID,
    given("yes", "boolean", "boolean"),
    given("small", "smallint", "int16"),
    given("number", "int", "int32"),
    given("real", "float", "float"),
    given("double", "double", "double"),
    given("price", "decimal(10,2)", "string", **told("numeric", 10, 2)),
    given("narrow", "decimal(12,4)", "string", **told("numeric", 6, 1)),
    given("free", "string", "string", **told("numeric", 131089, 0)),
    given("money", "decimal(19,2)", "string", **told("money", 2147483647, 0)),
    given("größe", "string", "string"),
    given("mood", "string", "string", "io.debezium.data.Enum", parameters={"allowed": "a,b"}),
    given("doc", "string", "string", "io.debezium.data.Json"),
    given("day", "date", "int32", "io.debezium.time.Date"),
    given("clock", "string", "int64", "io.debezium.time.MicroTime"),
    given("at", "timestamp_ntz", "int64", "io.debezium.time.MicroTimestamp"),
    given("since", "timestamp", "string", "io.debezium.time.ZonedTimestamp"),
    given("data", "binary", "bytes"),
    given("tags", "array<string>", "array", items=ITEMS),
    given(
        "days",
        "array<date>",
        "array",
        items={"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1},
    ),
    given("shares", "array<decimal(5,1)>", "array", items=ITEMS, **told("_numeric", 5, 1)),
]
ROW: dict[str, Any] = {
    "id": 9_007_199_254_740_993,
    "yes": True,
    "small": -32768,
    "number": 2_147_483_647,
    "real": 1.5,
    "double": 0.1,
    "price": "12345678.90",
    "narrow": "-0.5",
    "free": "123456789012345678901234567890123456789012345678.000000000000000000000001",
    "money": "-1.20",
    "größe": 'a "b" },"payload":{ ü\n',
    "mood": "b",
    "doc": '{"a": [1, 2]}',
    "day": 20_000,
    "clock": 45_296_500_000,
    "at": 1_790_000_000_123_456,
    "since": "2026-09-21T13:33:20.123456Z",
    "data": base64.b64encode(b"\x00\xffab").decode(),
    "tags": ["x", None, ""],
    "days": [0, None, -1],
    "shares": ["1.5", "-2"],
}
SEEN = {
    **ROW,
    "double": Decimal("0.1"),
    "price": Decimal("12345678.90"),
    "narrow": Decimal("-0.5"),
    "money": Decimal("-1.2"),
    "day": "2024-10-04",
    "clock": "12:34:56.5",
    "at": "2026-09-21T14:13:20.123456",
    "days": ["1970-01-01", None, "1969-12-31"],
    "shares": [1.5, -2.0],
}


LARGE = {
    "größe": "string",
    "free": "string",
    "doc": "string",
    "data": "binary",
    "tags": "array<string>",
    "days": "array<date>",
}
"""Columns whose values may be left out of a change."""


def test_every_type_and_what_is_told_of_a_change(driver: Driver) -> None:
    table = CapturedTable(driver, TYPES, "id", whole=True)
    table.apply(f"CREATE STREAM copy WITH (partitions = 1) AS SELECT * FROM {table.changes};")
    nothing = {"id": 2, "free": "NAN"}
    large = {**ROW, "id": 3}
    marked = {name: unavailable(kind)[-1] for name, kind in LARGE.items()}
    left = {**large, **marked, "größe": UNAVAILABLE, "tags": [UNAVAILABLE]}
    table.send(table.change("r", ROW), table.change("c", nothing), table.change("c", large))
    table.send(table.change("u", left), table.change("u", {"id": 4, **marked}))
    table.send(table.change("d", before=ROW), Event(table.changes, raw=None, key='{"id":1}'))
    bad: list[dict[str, Any]] = [
        {"id": 5, "price": "NaN"},
        {"id": 6, "day": 2_147_483_647},
        {"id": 7, "since": "infinity"},
    ]
    table.send(*(table.change("c", row) for row in bad), Event(table.changes, raw=b'{"schema":1}'))
    driver.run()

    def full(**row: Any) -> dict[str, Any]:
        return {**dict.fromkeys(SEEN), **row}

    wanted = [full(id=2, free="NaN"), {**SEEN, "id": 3}, full(id=4)]
    assert sorted(driver.rows(table.name), key=lambda row: row["id"]) == wanted
    copied = driver.rows("copy")
    assert [change["op"] for change in copied] == ["r", "c", "c", "u", "u", "d"]
    assert (copied[0]["after"], copied[-1]["before"]) == (SEEN, SEEN)
    assert (copied[0]["before"], copied[-1]["after"]) == (None, None)
    assert copied[3]["after"] == {**SEEN, "id": 3, **dict.fromkeys(LARGE)}
    assert {k: copied[0][k] for k in ("position", "transaction", "at")} == {
        "position": "5/A1",
        "transaction": "701",
        "at": "2026-09-21T14:13:21.000000Z",
    }
    assert len(driver.quarantine()) == len(bad) + 1


def test_without_spark_a_change_reads_the_same(driver: Driver) -> None:
    table = CapturedTable(driver, TYPES, "id", whole=True)
    table.apply()
    table.send(table.change("u", ROW, {"id": 1}))
    [change] = driver.rows(table.changes)
    assert change["after"] == SEEN
    assert change["before"] == {**dict.fromkeys(SEEN), "id": 1}
    assert change["at"] == "2026-09-21T14:13:21.000000Z"
    assert (change["op"], change["position"], change["transaction"]) == ("u", "5/A1", "701")


def test_rows_are_the_last_change_of_each_key(driver: Driver) -> None:
    """Random changes in random micro-batches: the rows are the source's.

    There are truncates among them, other keys, and large values that are not told again.
    """
    dice = random.Random(7)
    driver.pieces = dice
    table = CapturedTable(
        driver, [given("a", "int", "int32"), given("b", "string", "string"), NOTE], "a", "b"
    )
    table.apply()
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for _ in range(3):
        sent = []
        for number in range(60):
            place = (dice.randrange(6), dice.choice("xy"))
            key = {"a": place[0], "b": place[1]}
            if number in (20, 23):
                rows.clear()
                sent.append(table.change("t"))
            elif place in rows and dice.random() < 0.3:
                rows.pop(place)
                sent.append(table.change("d", before=key))
            elif rows and place not in rows and dice.random() < 0.6:
                old = rows.pop(dice.choice(sorted(rows)))
                rows[place] = {**old, **key}
                told = dice.choice([rows[place], {**key, "note": UNAVAILABLE}])
                sent += table.rekey({"a": old["a"], "b": old["b"]}, told)
            elif place in rows and dice.random() < 0.5:
                sent.append(table.change("u", {**key, "note": UNAVAILABLE}))
            else:
                op = "u" if place in rows else "c"
                rows[place] = {**key, "note": dice.choice([str(number), None])}
                sent.append(table.change(op, rows[place]))
        table.send(*sent)
        driver.run()
        found = {(row["a"], row["b"]): row for row in driver.rows(table.name)}
        assert found == rows


def test_a_value_that_was_left_out_in_a_running_flow(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    table = CapturedTable(driver, [ID, NOTE], "id")
    table.apply()
    flow = live(table.name)
    flow.start()

    def until(**wanted: str) -> None:
        def there() -> bool:
            flow.tick()
            return {f"r{row['id']}": row["note"] for row in driver.rows(table.name)} == wanted

        eventually(there, SECONDS, what=f"{wanted}: {flow.status}")

    table.send(*(table.change("c", {"id": i, "note": f"n{i}"}) for i in (1, 2)))
    until(r1="n1", r2="n2")
    table.send(table.change("c", {"id": 3, "note": "n3"}))
    until(r1="n1", r2="n2", r3="n3")
    gone, new = table.rekey({"id": 1}, {"id": 4, "note": UNAVAILABLE})
    table.send(table.change("u", {"id": 2, "note": UNAVAILABLE}), gone)
    table.send(new, *table.rekey({"id": 4}, {"id": 5, "note": UNAVAILABLE}))
    until(r2="n2", r3="n3", r5="n1")
    table.send(table.change("t"), table.change("c", {"id": 3, "note": "new"}))
    table.send(table.change("u", {"id": 3, "note": UNAVAILABLE}))
    until(r3="new")
    # a change from before a snapshot, which has read the row under its new key
    read = table.change("r", {"id": 9, "note": "read"}, snapshot=("incremental", 6))
    table.send(read, *table.rekey({"id": 8}, {"id": 9, "note": UNAVAILABLE}))
    until(r3="new", r9="read")
    assert flow.status.restarts == 0


def test_a_truncate_in_a_running_flow(driver: Driver, live: Callable[..., Flow]) -> None:
    table = CapturedTable(driver, [ID, NOTE], "id")
    table.apply()
    flow = live(table.name)
    flow.start()

    def until(*wanted: int) -> None:
        def there() -> bool:
            flow.tick()
            return {row["id"] for row in driver.rows(table.name)} == set(wanted)

        eventually(there, SECONDS, what=f"{wanted}: {flow.status}")

    table.send(*(table.change("c", {"id": i}) for i in (1, 2)))
    until(1, 2)
    table.send(table.change("c", {"id": 3}))
    until(1, 2, 3)
    table.send(table.change("c", {"id": 4}), table.change("t"), table.change("c", {"id": 2}))
    until(2)
    table.send(table.change("c", {"id": 5}))
    until(2, 5)
    assert flow.status.restarts == 0


def test_a_snapshot_that_breaks_off_is_read_again(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    """What was deleted between the two is in no change: only the second one counts."""
    table = CapturedTable(driver, [ID, NOTE], "id")
    table.apply()
    flow = live(table.name)
    flow.start()

    def snapshot(position: int, **marks: int) -> list[Event]:
        return [
            table.change("r", {"id": id}, snapshot=(mark, position)) for mark, id in marks.items()
        ]

    def until(*wanted: int) -> None:
        def there() -> bool:
            flow.tick()
            return {row["id"] for row in driver.rows(table.name)} == set(wanted)

        eventually(there, SECONDS, what=f"{wanted}: {flow.status}")

    table.send(*snapshot(1, first=1, true=2))
    until(1, 2)
    table.send(*snapshot(2, first=2, true=3), *snapshot(3, first=3, true=4))
    until(3, 4)
    table.send(*snapshot(4, last=5))
    until(5)
    table.send(table.change("c", {"id": 6}))
    until(5, 6)
    table.send(*snapshot(5, first=7))
    until(7)
    table.send(table.change("c", {"id": 8}))  # the table was empty when it was read again
    until(8)
    table.send(table.change("r", {"id": 9}, snapshot=("incremental", 6)))
    until(8, 9)
    assert flow.status.restarts == 0


def test_a_column_more_waits_for_the_catalog(driver: Driver) -> None:
    table = CapturedTable(driver, [ID, NOTE], "id")
    table.apply()
    table.send(table.change("c", {"id": 1, "note": "a"}))
    driver.run()
    old = list(table.columns)
    table.columns.append(given("more", "decimal(4,1)", "string", **told("numeric", 4, 1)))
    table.send(table.change("c", {"id": 2, "more": "7.5"}))
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "SOURCE_CHANGED"
    assert '"more"' in caught.value.message
    assert [row["id"] for row in driver.rows(table.name)] == [1]
    table.apply()
    table.send(table.change("u", {"id": 1, "note": "b"}, columns=old))
    driver.run()
    rows = {row["id"]: row for row in driver.rows(table.name)}
    assert rows[2] == {"id": 2, "note": None, "more": 7.5}
    assert (rows[1]["note"], rows[1]["more"]) == ("b", None)


def test_a_delete_without_a_key_is_not_passed_over(driver: Driver) -> None:
    table = CapturedTable(driver, [ID, NOTE], "id")
    table.apply()
    table.send(table.change("c", {"id": 1}), table.change("d", before={"id": None}))
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "SOURCE_CHANGED"
    assert "primary key" in caught.value.message
