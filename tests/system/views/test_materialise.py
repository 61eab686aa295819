"""Views on a real broker and a real PostgreSQL: rows are what the log says, whatever happens."""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from mainstem.definitions.model import Index
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

pytestmark = pytest.mark.kafka
Topic = Callable[..., str]
KEYLESS = {"cleanup.policy": "delete"}
"""A compacted topic takes no record without a key."""


def quarantined(lab: Any, topic: str, least: int) -> list[Record]:
    """What is in the quarantine of a topic, once there are so many.

    A commit shows to readers a moment after the writer was told of it.
    """
    lab.until(lambda: len(in_quarantine(lab, topic)) >= least)
    return in_quarantine(lab, topic)


def in_quarantine(lab: Any, topic: str) -> list[Record]:
    start = lab.admin.begin_offsets(QUARANTINE_TOPIC)
    end = lab.admin.end_offsets(QUARANTINE_TOPIC)
    return [
        record
        for batch in read_range(lab.kafka, QUARANTINE_TOPIC, start, end)
        for record in batch
        if dict(record.headers).get("topic") == topic.encode()
    ]


def test_upserts_and_tombstones(lab: Any, topic: Topic) -> None:
    visits = lab.derived("visits", topic(), {"page": "string", "n": "bigint"}, "page")
    views = lab.serve(visits)
    for n in range(3):
        lab.send(
            visits.definition.topic,
            *(({"page": p}, {"page": p, "n": n}) for p in ("/a", "/b", "/c")),
        )
    lab.send(visits.definition.topic, ({"page": "/b"}, None))
    lab.settle(views, visits)
    assert lab.postgres.rows('SELECT * FROM "visits" ORDER BY 1') == [("/a", 2), ("/c", 2)]
    lab.send(visits.definition.topic, ({"page": "/b"}, {"page": "/b", "n": 7}))
    lab.settle(views, visits)
    assert lab.postgres.rows("SELECT n FROM visits WHERE page = '/b'") == [(7,)]


def test_all_types(lab: Any, topic: Topic) -> None:
    columns = {
        "id": "bigint", "s": "string", "b": "boolean", "t": "tinyint", "i": "int", "f": "float",
        "d": "double", "x": "decimal(20,4)", "day": "date", "at": "timestamp",
        "local": "timestamp_ntz", "raw": "binary", "tags": "array<string>",
        "place": "struct<lat:double>", "more": "map<string,int>",
    }  # fmt: skip
    things = lab.derived("shop.things", topic(), columns, "id")
    views = lab.serve(things)
    value = {
        "id": 1, "s": "ü'\"\\%s", "b": True, "t": 1, "i": -5, "f": 1.5, "d": "NaN",
        "day": "2026-11-15", "at": "2026-11-15T09:00:00.123456Z", "local": "2026-11-15T09:00:00",
        "raw": base64.b64encode(b"\0\xff").decode(), "tags": ["a"], "place": {"lat": 1.5},
        "more": {"k": 2},
    }  # fmt: skip
    text = json.dumps(value)[:-1] + ', "x": 1234567890123456.7891}'
    lab.send(things.definition.topic, ({"id": 1}, text.encode()), ({"id": 2}, {"id": 2}))
    lab.settle(views, things)
    rows = lab.postgres.rows(
        "SELECT s, b, t, i, f, d::text, x, day::text, at::text, local::text, raw, tags, place,"
        ' more FROM "shop.things" ORDER BY id'
    )
    assert rows[0] == (
        "ü'\"\\%s", True, 1, -5, 1.5, "NaN", Decimal("1234567890123456.7891"), "2026-11-15",
        "2026-11-15 09:00:00.123456+00", "2026-11-15 09:00:00", b"\0\xff", ["a"], {"lat": 1.5},
        {"k": 2},
    )  # fmt: skip
    assert rows[1] == (None,) * 14


def test_null_group_is_one_row(lab: Any, topic: Topic) -> None:
    by = lab.derived("by_country", topic(), {"country": "string", "city": "string", "n": "int"},
                     "country", "city")  # fmt: skip
    views = lab.serve(by)
    key = {"country": None, "city": "x"}
    other = {"country": None, "city": None}
    for n in (1, 2):
        lab.send(by.definition.topic, (key, {**key, "n": n}), (other, {**other, "n": n}))
    lab.settle(views, by)
    assert lab.postgres.rows("SELECT count(*), sum(n) FROM by_country") == [(2, 4)]
    lab.send(by.definition.topic, (key, None))
    lab.settle(views, by)
    assert lab.postgres.rows("SELECT city, n FROM by_country") == [(None, 2)]


def test_table_without_key_has_one_row(lab: Any, topic: Topic) -> None:
    total = lab.derived("total", topic(), {"n": "bigint"})
    views = lab.serve(total)
    for n in range(5):
        lab.send(total.definition.topic, ({}, {"n": n}))
    lab.settle(views, total)
    assert lab.postgres.rows("SELECT n FROM total") == [(4,)]
    lab.send(total.definition.topic, ({}, None))
    lab.settle(views, total)
    assert lab.postgres.rows("SELECT n FROM total") == []


def test_declared_table_takes_its_key_from_the_key(lab: Any, topic: Topic) -> None:
    users = lab.declared("users", topic(**KEYLESS), {"id": "bigint", "name": "string"}, "id")
    views = lab.serve(users)
    lab.send(
        users.definition.topic,
        (b"1", {"name": "plain key"}),
        ({"id": 2}, {"name": "object key"}),
        (None, {"id": 3, "name": "key in the value only"}),
        (b"\xff\xfe", {"id": 4, "name": "binary key"}),
        (b"5", {"id": 5, "name": "to go"}),
        (b"5", None),
    )
    lab.settle(views, users)
    assert lab.postgres.rows("SELECT id, name FROM users ORDER BY 1") == [
        (1, "plain key"), (2, "object key"), (3, "key in the value only"), (4, "binary key"),
    ]  # fmt: skip


def test_reader_may_read_and_nothing_else(lab: Any, topic: Topic) -> None:
    import psycopg

    t = lab.derived("readable", topic(), {"k": "string"}, "k")
    lab.settle(lab.serve(t), t)
    with psycopg.connect(lab.postgres.reader_url, autocommit=True) as connection:
        assert connection.execute("SELECT * FROM readable").fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO readable VALUES ('x')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE _mainstem.offsets SET next_offset = 0")


def test_bad_records_are_set_aside_once_and_the_rest_goes_on(lab: Any, topic: Topic) -> None:
    columns = {"id": "bigint", "at": "timestamp", "raw": "binary"}
    t = lab.declared("strict", topic(1, **KEYLESS), columns, "id")
    views = lab.serve(t)
    bad = [
        (b"1", b"{not json"),
        (b"2", b"\xff\xfe"),
        (b"3", b'{"id": "three"}'),
        (b"4", b'{"id": 4, "at": "yesterday"}'),
        (b"5", b"[5]"),
        (None, b'{"at": "2026-11-15T00:00:00Z"}'),
        (b"7", b'{"id": 99999999999999999999}'),
        (b"8", b'{"id": 8, "raw": "not base64!"}'),
        (b"9", b'{"id": 9, "at": "2026-11-15T00:00:00Z\\u0000"}'),
        (None, None),
        (b"{broken", None),
    ]
    good = [(str(i).encode(), {"id": i}) for i in range(100, 110)]
    mixed = [*good[:5], *bad[:6], *good[5:], *bad[6:]]
    lab.send(t.definition.topic, *mixed)
    lab.settle(views, t)
    assert lab.postgres.rows("SELECT count(*), min(id), max(id) FROM strict") == [(10, 100, 109)]
    kept = quarantined(lab, t.definition.topic, len(bad))
    assert sorted((r.key or b"", r.value or b"") for r in kept) == sorted(
        (k or b"", v or b"") for k, v in bad
    )
    headers = [dict(r.headers) for r in kept]
    assert all(h["stage"] == b"view" and h["code"] == b"INVALID_RECORD" for h in headers)
    assert all(h["object"] == b"strict" and h["cause"] for h in headers)
    assert views.progress()[0].quarantined == len(bad)
    # reading everything again, as a rebuild does, keeps none of them twice
    again = replace(t, generation=2)
    views.reconcile(lab.catalog(again))
    lab.until(lambda: lab.postgres.rows("SELECT generation FROM _mainstem.views") == [(2,)])
    lab.settle(views, again)
    assert len(quarantined(lab, t.definition.topic, len(bad))) == len(bad)
    assert lab.postgres.rows("SELECT count(*) FROM strict") == [(10,)]


def test_overwritten_bad_record_is_still_set_aside(lab: Any, topic: Topic) -> None:
    t = lab.derived("overwritten", topic(1), {"k": "string", "n": "int"}, "k")
    views = lab.serve()
    lab.send(
        t.definition.topic,
        ({"k": "a"}, {"k": "a", "n": 1}),
        ({"k": "a"}, {"k": "a", "n": "x"}),
        ({"k": "b"}, {"k": "b", "n": "x"}),
        ({"k": "b"}, {"k": "b", "n": 2}),
    )
    views.reconcile(lab.catalog(t))
    lab.settle(views, t)
    assert lab.postgres.rows("SELECT * FROM overwritten ORDER BY 1") == [("a", 1), ("b", 2)]
    assert len(quarantined(lab, t.definition.topic, 2)) == 2


def test_thousands_of_bad_records_do_not_hold_it_up(lab: Any, topic: Topic) -> None:
    t = lab.derived("flooded", topic(1), {"k": "string", "n": "int"}, "k")
    lab.send(
        t.definition.topic,
        *(({"k": str(i)}, {"k": str(i), "n": i if i % 2 else "x"}) for i in range(4000)),
    )
    views = lab.serve(t)
    began = time.monotonic()
    lab.settle(views, t)
    assert time.monotonic() - began < 60
    assert lab.postgres.rows("SELECT count(*) FROM flooded") == [(2000,)]
    assert len(quarantined(lab, t.definition.topic, 2000)) == 2000


def test_drop_and_create_again(lab: Any, topic: Topic) -> None:
    first = lab.derived("again", topic(), {"k": "string"}, "k")
    views = lab.serve(first)
    lab.send(first.definition.topic, ({"k": "a"}, {"k": "a"}))
    lab.settle(views, first)
    views.reconcile(lab.catalog())
    lab.until(lambda: lab.postgres.rows("SELECT to_regclass('again') IS NULL") == [(True,)])
    assert lab.postgres.rows("SELECT * FROM _mainstem.offsets WHERE view = 'again'") == []
    second = lab.derived("again", topic(), {"k": "string", "n": "int"}, "k")
    views.reconcile(lab.catalog(second))
    lab.settle(views, second)
    assert lab.postgres.rows("SELECT k, n FROM again") == []


def test_emptied_topic_empties_the_view(lab: Any, topic: Topic) -> None:
    t = lab.derived("emptied", topic(1), {"k": "string"}, "k")
    views = lab.serve(t)
    lab.send(t.definition.topic, ({"k": "old"}, {"k": "old"}))
    lab.settle(views, t)
    lab.admin.truncate(t.definition.topic)
    lab.send(t.definition.topic, ({"k": "new"}, {"k": "new"}))
    lab.until(lambda: lab.postgres.rows("SELECT k FROM emptied") == [("new",)])


def test_topic_is_read_again_for_a_new_column(lab: Any, topic: Topic) -> None:
    before = lab.declared("late", topic(), {"k": "string"}, "k")
    views = lab.serve(before)
    lab.send(before.definition.topic, ({"k": "a"}, {"k": "a", "n": 5}))
    lab.settle(views, before)
    after = lab.declared("late", before.definition.topic, {"k": "string", "n": "int"}, "k")
    views.reconcile(lab.catalog(after))
    lab.until(
        lambda: (
            lab.postgres.rows(
                "SELECT count(*) FROM information_schema.columns WHERE table_name = 'late'"
            )
            == [(2,)]
        )
    )
    lab.until(lambda: lab.postgres.rows("SELECT k, n FROM late") == [("a", 5)])


def test_a_column_that_was_gained_is_added_and_its_values_are_read_again(
    lab: Any, topic: Topic
) -> None:
    old = lab.derived("gains", topic(), {"k": "string", "n": "int"}, "k")
    name = old.definition.topic
    views = lab.serve(old)
    lab.send(name, ({"k": "a"}, {"k": "a", "n": 1}), ({"k": "b"}, {"k": "b", "n": 1}))
    lab.settle(views, old)
    since = dict(lab.admin.end_offsets(name))
    # the view reads on before it knows of the column, and must not have missed anything
    lab.send(name, ({"k": "b"}, {"k": "b", "n": 2, "x": "new"}), ({"k": "c"}, {"k": "c", "n": 3}))
    lab.settle(views, old)
    (built,) = lab.postgres.rows("SELECT built_at FROM _mainstem.views WHERE name = 'gains'")
    wide = lab.derived("gains", name, {"k": "string", "n": "int", "x": "string"}, "k")
    wide = replace(wide, grown={"x": since})
    views.reconcile(lab.catalog(wide))
    rows = "SELECT k, n, to_jsonb(g) ->> 'x' FROM gains g ORDER BY k"
    expected = [("a", 1, None), ("b", 2, "new"), ("c", 3, None)]
    lab.until(lambda: lab.postgres.rows(rows) == expected)
    lab.settle(views, wide)
    assert lab.postgres.rows("SELECT built_at FROM _mainstem.views WHERE name = 'gains'") == [built]
    lab.send(name, ({"k": "a"}, {"k": "a", "n": 4, "x": "y"}))
    lab.settle(views, wide)
    assert lab.postgres.rows(rows)[0] == ("a", 4, "y")


def test_foreign_table_is_left_alone(lab: Any, topic: Topic) -> None:
    import psycopg

    with psycopg.connect(lab.postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious AS SELECT 42 AS n")
        try:
            taken = lab.derived("precious", topic(), {"k": "string"}, "k")
            fine = lab.derived("fine", topic(), {"k": "string"}, "k")
            views = lab.serve(taken, fine)
            lab.until(lambda: "precious" in views.problems())
            assert views.problems()["precious"].code == "VIEW_NAME_TAKEN"
            lab.settle(views, fine)
            assert lab.postgres.rows("SELECT n FROM precious") == [(42,)]
        finally:
            connection.execute("DROP TABLE precious")


def test_uncommitted_records_are_not_served(lab: Any, topic: Topic) -> None:
    t = lab.derived("committed", topic(1), {"k": "string"}, "k")
    views = lab.serve(t)
    producer = TransactionalProducer(lab.kafka, f"views-test-{t.definition.topic}")
    with pytest.raises(RuntimeError), producer.transaction() as transaction:
        transaction.send(t.definition.topic, [Outgoing(b'{"k":"x"}', b'{"k":"x"}')])
        raise RuntimeError("changed its mind")
    with producer.transaction() as transaction:
        transaction.send(t.definition.topic, [Outgoing(b'{"k":"y"}', b'{"k":"y"}')])
    producer.close()
    lab.settle(views, t)
    # a commit shows to readers a moment after the writer was told of it
    lab.until(lambda: lab.postgres.rows("SELECT k FROM committed"))
    assert lab.postgres.rows("SELECT k FROM committed") == [("y",)]
    lab.until(lambda: views.progress()[0].lag_records == 0)


def test_postgres_goes_away_and_comes_back(lab: Any, topic: Topic) -> None:
    t = lab.derived("patient", topic(), {"k": "string", "n": "int"}, "k")
    views = lab.serve(t)
    lab.send(t.definition.topic, *(({"k": str(i)}, {"k": str(i), "n": i}) for i in range(100)))
    lab.settle(views, t)
    lab.postgres.stop("immediate")
    try:
        lab.send(t.definition.topic, *(({"k": str(i)}, {"k": str(i), "n": -i}) for i in range(200)))
        lab.until(lambda: not views.writing)
    finally:
        lab.postgres.start()
    lab.settle(views, t)
    assert lab.postgres.rows("SELECT count(*), sum(n) FROM patient") == [(200, -19900)]


def test_writers_share_the_views_and_take_over(lab: Any, topic: Topic) -> None:
    tables = [lab.derived(f"shared_{n}", topic(), {"k": "string"}, "k") for n in range(4)]
    first, second = lab.serve(*tables), lab.serve(*tables)
    lab.until(lambda: (len(first.written), len(second.written)) == (2, 2))
    assert first.written.isdisjoint(second.written)
    for table in tables:
        lab.send(table.definition.topic, ({"k": "a"}, {"k": "a"}))
    for views in (first, second):  # each knows of all of them
        lab.settle(views, *tables)
        assert [progress.name for progress in views.progress()] == [t.name for t in tables]
    first.stop()
    lab.until(lambda: len(second.written) == 4)
    for table in tables:
        lab.send(table.definition.topic, ({"k": "b"}, {"k": "b"}))
    lab.settle(second, *tables)
    for table in tables:
        assert lab.postgres.rows(f"SELECT k FROM {table.name} ORDER BY k") == [("a",), ("b",)]


def indexed(entry: Any, *columns: str) -> Any:
    """The table with an index over these columns."""
    definition = entry.definition
    index = Index(f"by_{columns[0]}", definition.name, columns, definition.location)
    return replace(entry, definition=replace(definition, indexes=(index,)))


def test_indexes_come_and_go_and_are_rebuilt(lab: Any, topic: Topic) -> None:
    plain = lab.derived("found", topic(), {"k": "string", "n": "int", "t": "string"}, "k")
    views = lab.serve(plain)
    lab.send(plain.definition.topic, ({"k": "a"}, {"k": "a", "n": 1, "t": "x"}))
    lab.settle(views, plain)

    def over() -> list[list[str]]:
        # from the catalog alone: its functions fail for an index that goes at this moment
        found = lab.postgres.rows(
            "SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i"
            " JOIN pg_class t ON t.oid = i.indrelid"
            " JOIN pg_attribute a ON a.attrelid = i.indexrelid"
            " WHERE t.relname = 'found' AND NOT i.indisunique GROUP BY i.indexrelid"
        )
        return sorted(columns for (columns,) in found)

    for wanted, expected in (
        (indexed(plain, "n", "t"), [["n", "t"]]),
        (replace(indexed(plain, "n"), generation=2), [["n"]]),  # built anew with it
        (indexed(replace(plain, generation=2), "t"), [["t"]]),
    ):
        views.reconcile(lab.catalog(wanted))
        lab.until(lambda wanted=wanted, expected=expected: over() == expected)
        lab.until(lambda: set(views.index_states().values()) == {"ready"})
    # a value that no index can hold costs the index, not the row
    long = "".join(random.Random(7).choices(string.ascii_letters, k=20_000))
    lab.send(plain.definition.topic, ({"k": "b"}, {"k": "b", "n": 2, "t": long}))
    lab.settle(views, plain)
    assert lab.postgres.rows("SELECT count(*), max(length(t)) FROM found") == [(2, 20_000)]
    assert views.progress()[0].quarantined == 0
    assert over() == []
    lab.until(lambda: str(*views.index_states().values()).startswith("failed: "))


CHILD = """
import json, sys
from mainstem.catalog.entry import Catalog, Entry
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry
from mainstem.views.materialise import Materialiser
servers, url, reader, entry = sys.argv[1:]
entry = Entry.from_json(entry.encode())
connection = Connection(servers)
codec = Codec(KnownSchemas(MemoryRegistry()))
views = Materialiser(connection, Admin(connection), url, reader, codec)
views.start()
views.reconcile(Catalog({entry.name.lower(): entry}))
sys.stdin.read()
"""


def child(lab: Any, entry: Any, crash: str | None) -> subprocess.Popen[bytes]:
    environment = dict(os.environ) | ({"MAINSTEM_CRASH": crash} if crash else {})
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, lab.kafka.servers, lab.postgres.url,
         lab.postgres.reader_url, entry.to_json().decode()],
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_killed_writer_is_followed_by_another(lab: Any, topic: Topic) -> None:
    t = lab.derived("handed_over", topic(2), {"k": "string", "n": "bigint"}, "k")
    process = child(lab, t, "view-offsets:*:3")
    lab.until(lambda: lab.postgres.rows("SELECT to_regclass('handed_over')") != [(None,)])
    views = lab.serve(t)
    numbers = itertools.count()

    def dead() -> bool:
        n = next(numbers)  # as long as it lives: several of them may be one batch
        lab.send(t.definition.topic, ({"k": f"k{n % 20}"}, {"k": f"k{n % 20}", "n": n}))
        return process.poll() is not None

    lab.until(dead)
    assert process.returncode == -9
    process.communicate()
    lab.until(lambda: views.written == {"handed_over"})
    lab.settle(views, t)
    rows = lab.postgres.rows("SELECT k, n FROM handed_over")
    end = next(numbers)
    assert dict(rows) == {f"k{n % 20}": n for n in range(max(0, end - 20), end)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["view-poll", "view-write", "view-set-aside", "view-offsets", "view-commit"]
)
def test_kill_at_each_step(lab: Any, topic: Topic, point: str) -> None:
    name = point.replace("-", "_")
    t = lab.derived(name, topic(2), {"k": "string", "n": "bigint"}, "k")
    chance = random.Random(point)
    expected: dict[str, int] = {}
    bad = 0

    def send(rounds: int) -> None:
        nonlocal bad
        for _ in range(rounds):
            records: list[tuple[Any, Any]] = []
            for _ in range(50):
                k, n = f"k{chance.randrange(40)}", chance.randrange(1000)
                if chance.random() < 0.2:
                    records.append(({"k": k}, None))
                    expected.pop(k, None)
                else:
                    records.append(({"k": k}, {"k": k, "n": n}))
                    expected[k] = n
            records.append(({"k": "bad"}, b"{broken"))
            bad += 1
            lab.send(t.definition.topic, *records)

    send(2)
    # not every round has a bad record, so that point is met in the first one that has
    for round_ in ("*", "*") if point == "view-set-aside" else ("1", "2"):
        process = child(lab, t, f"{point}:*:{round_}")
        while process.poll() is None:
            send(1)
            time.sleep(0.05)
        assert process.returncode == -9
        process.communicate()
    send(2)
    views = lab.serve(t)
    lab.settle(views, t)
    assert dict(lab.postgres.rows(f"SELECT k, n FROM {name}")) == expected
    kept = quarantined(lab, t.definition.topic, bad)
    assert len({(r.headers, r.key) for r in kept}) == len(kept) == bad
