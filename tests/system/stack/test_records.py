"""Records that are too large, malformed or without a key: refused or kept, never lost."""

from __future__ import annotations

import json

import pytest

from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

TEN_MEGABYTES = "x" * 10_000_000


@pytest.fixture(scope="module")
def letters(shop):
    """A stream that one flow filters and another one counts."""
    shop.do(
        "CREATE STREAM letters (id BIGINT, text STRING)",
        "CREATE STREAM short_letters AS SELECT id FROM letters WHERE length(text) < 100",
        "CREATE TABLE letter_count AS SELECT count(*) AS n FROM letters",
    )
    shop.write("letters", {"id": 1, "text": "first"})
    shop.wait_for_rows("SELECT * FROM letter_count", [[1]])
    yield shop
    shop.do("DROP STREAM letters CASCADE")


def kept(shop, topic: str) -> list[Record]:
    """What the quarantine holds of a topic."""
    return [r for r in shop.records(QUARANTINE_TOPIC) if headers(r)["topic"] == topic]


def headers(record: Record) -> dict[str, str]:
    return {name: (value or b"").decode("utf-8", "replace") for name, value in record.headers}


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def test_a_record_of_10_mb_is_refused_at_every_door(letters, tmp_path):
    value = {"id": 2, "text": TEN_MEGABYTES}
    problem = letters.refused(
        "RECORD_TOO_LARGE",
        "POST",
        "/v1/streams/letters/records",
        json={"records": [{"value": {"id": 3, "text": "before it"}}, {"value": value}]},
    )
    assert problem["status"] == 413
    (tmp_path / "big.json").write_text(json.dumps(value) + "\n")
    letters.cli("produce", "letters", "-f", tmp_path / "big.json").failed("RECORD_TOO_LARGE")
    raw = letters.cli("produce", "letters", "--raw", "-f", tmp_path / "big.json")
    raw.failed("RECORD_TOO_LARGE")
    (tmp_path / "huge.sql").write_text(f"INSERT INTO letters VALUES (2, '{TEN_MEGABYTES}')")
    letters.cli("sql", "-f", tmp_path / "huge.sql").failed("SQL_SYNTAX", 3)
    large = {"sql": "INSERT INTO letters VALUES (2, repeat('x', 10000000))"}
    letters.refused("RECORD_TOO_LARGE", "POST", "/v1/sql", json=large)
    letters.do("INSERT INTO letters VALUES (2, repeat('x', 900000))")
    letters.wait_for_rows("SELECT * FROM letter_count", [[2]])


def test_a_request_of_40_mb_is_refused(letters):
    body = b'{"records": [{"value": {"id": 1, "text": "%s"}}]}' % (b"x" * 40_000_000)
    letters.refused("BODY_TOO_LARGE", "POST", "/v1/streams/letters/records", content=body)


def test_records_that_do_not_fit_are_refused_all_together(letters, tmp_path):
    before = letters.rows("SELECT * FROM letter_count")
    for wrong, where in (
        ({"id": "many", "text": "a"}, "id"),
        ({"id": 1, "txet": "a"}, "txet"),
        ("not an object", ""),
    ):
        records = [{"value": {"id": 1, "text": "good"}}, {"value": wrong}]
        problem = letters.refused(
            "INVALID_RECORD", "POST", "/v1/streams/letters/records", json={"records": records}
        )
        assert "record 1 " in problem["detail"] and where in problem["detail"]
    lines = '{"id": 1, "text": "good"}\n{"id": 1.5, "text": "a"}\n'
    failed = letters.cli("produce", "letters", input=lines).failed("BAD_LINE")
    assert "<stdin>, line 2: " in failed.err
    failed = letters.cli("produce", "letters", input='{"id": 1}\n{"id":\n').failed("BAD_LINE")
    assert "line 2: " in failed.err
    assert letters.rows("SELECT * FROM letter_count") == before
    letters.refused("WRONG_KIND", "POST", "/v1/streams/letter_count/records", json={"records": []})


def test_malformed_records_on_the_topic_are_kept_whole_once_and_counted(letters):
    [[count]], earlier = letters.rows("SELECT * FROM letter_count"), len(kept(letters, "letters"))
    bad = [b"not json", b'{"id": "many", "text": "x"}', b"[1, 2]", b"\xff\xfe\x00", b""]
    good = [b'{"id": 7, "text": "good"}', b'{"id": 8}', b"{}"]
    letters.produce("letters", *(Outgoing(b"k%d" % i, value) for i, value in enumerate(bad)))
    letters.produce("letters", *(Outgoing(None, value) for value in good))
    letters.wait_for_rows("SELECT * FROM letter_count", [[count + len(good)]])
    eventually(lambda: len(kept(letters, "letters")) >= earlier + len(bad))
    places = {(r.partition, r.offset): r for r in letters.records("letters")}
    found = kept(letters, "letters")[earlier:]
    assert sorted(r.value for r in found) == sorted(bad)
    for record in found:
        facts = headers(record)
        original = places[int(facts["partition"]), int(facts["offset"])]
        assert (record.key, record.value) == (original.key, original.value)
        assert facts["timestamp"] == str(original.timestamp)
        assert facts["code"] == "RECORD_NOT_DECODED" and facts["cause"]
    # both flows have read them, and each counts them, but they are kept once
    eventually(lambda: letters.flow("letter_count")["quarantined"] >= len(bad))
    eventually(lambda: letters.flow("short_letters")["quarantined"] >= len(bad))

    def held() -> int:
        objects: dict[str, int] = letters.http.get("/v1/status").json()["quarantine"]["objects"]
        return objects.get("letters", 0)

    eventually(lambda: held() >= earlier + len(bad), what="the gateway knows them, too")
    assert held() == earlier + len(bad)
    assert "held in quarantine" in letters.cli("status").ok().err
    assert {letters.flow(n)["state"] for n in ("letter_count", "short_letters")} == {"running"}
    letters.write("letters", {"id": 9, "text": "after it"})
    letters.wait_for_rows("SELECT * FROM letter_count", [[count + len(good) + 1]])
    assert len(kept(letters, "letters")) == earlier + len(bad)


def test_a_stream_made_anew_keeps_its_bad_records_too(shop):
    for round in (1, 2):
        shop.do(
            "CREATE STREAM notes (id BIGINT)",
            "CREATE TABLE note_count AS SELECT count(*) AS n FROM notes",
        )
        shop.produce("notes", Outgoing(b"k", b'{"id": 1}'), Outgoing(b"k", b"bad %d" % round))
        shop.wait_for_rows("SELECT * FROM note_count", [[1]])
        eventually(lambda last=b"bad %d" % round: last in values(kept(shop, "notes")))
        shop.do("DROP STREAM notes CASCADE")


def test_bad_records_of_a_table_topic_go_to_the_quarantine_and_the_rest_is_served(shop):
    shop.do("CREATE TABLE colours (name STRING PRIMARY KEY, code INT)")
    earlier = len(kept(shop, "colours"))
    try:
        shop.produce(
            "colours",
            Outgoing(b'{"name":"red"}', b'{"name":"red","code":1}'),
            Outgoing(b'{"name":"blue"}', b"not json"),
            Outgoing(b"green", b'{"name":"green","code":3}'),
            Outgoing(b'{"name":"grey"}', b'{"name":"grey","code":4}'),
            Outgoing(b'{"name":"grey"}', None),
            Outgoing(b'{"name":"pink"}', b'{"name":"pink","code":"rose"}'),
        )
        shop.wait_for_rows("SELECT name, code FROM colours", [["red", 1], ["green", 3]])
        eventually(lambda: len(kept(shop, "colours")) >= earlier + 2)
        found = kept(shop, "colours")[earlier:]
        assert {r.key for r in found} == {b'{"name":"pink"}', b'{"name":"blue"}'}
        assert {headers(r)["object"] for r in found} == {"colours"}

        def view() -> dict[str, object]:
            views = shop.http.get("/v1/status").json()["views"]
            return next(v for v in views if v["name"] == "colours")

        eventually(lambda: view()["quarantined"] == 2)
        assert view()["error"] is None
        # Kafka itself refuses a record without a key in a compacted topic
        line = '{"name":"lost","code":2}\n'
        shop.cli("produce", "colours", "--raw", input=line).failed("LOG_FAILED")
    finally:
        shop.do("DROP TABLE colours")


def test_rows_of_a_table_come_and_go(shop):
    shop.do("CREATE TABLE stock (item STRING PRIMARY KEY, n INT)")
    try:
        shop.write("stock", {"item": "pen", "n": 1}, {"item": "cup", "n": 2})
        shop.write("stock", {"item": "pen", "n": 5})
        shop.wait_for_rows("SELECT * FROM stock", [["pen", 5], ["cup", 2]])
        gone = {"records": [{"key": {"item": "pen"}, "value": None}]}
        assert shop.http.post("/v1/streams/stock/records", json=gone).status_code == 200
        shop.wait_for_rows("SELECT * FROM stock", [["cup", 2]])
        keyless = {"records": [{"value": None}]}
        shop.refused("INVALID_RECORD", "POST", "/v1/streams/stock/records", json=keyless)
        keyless = {"records": [{"value": {"n": 1}}]}
        shop.refused("INVALID_RECORD", "POST", "/v1/streams/stock/records", json=keyless)
    finally:
        shop.do("DROP TABLE stock")
