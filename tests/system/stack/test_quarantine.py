"""Bad records from outside: listed, shown, mended, replayed to a row, each exactly once."""

from __future__ import annotations

import json
import sys

import pytest

from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually


@pytest.fixture
def parcels(shop):
    """A stream that is summed up, with one good and some bad records."""
    shop.do(
        "CREATE STREAM parcels (id BIGINT, weight INT) WITH (key = 'id')",
        "CREATE TABLE parcel_count AS SELECT id, count(*) AS n, sum(weight) AS weight"
        " FROM parcels GROUP BY id",
    )
    values = [
        b'{"id": 1, "weight": 10}',
        b'{"id": 2, "weight": "20"}',
        b'{"id": 3, "weight": "30"}',
        b"not json",
        b"\xff\xfe",
    ]
    headers = (("trace", b"\xff"),)
    records = [Outgoing(b"%d" % n, v, headers=headers) for n, v in enumerate(values, 1)]
    shop.produce("parcels", *records)
    shop.wait_for_rows("SELECT * FROM parcel_count", [[1, 1, 10]])
    eventually(lambda: len(held(shop)) == 4)
    yield shop
    shop.cli("quarantine", "discard", "--stream", "parcels", "--yes").ok()
    shop.do("DROP STREAM parcels CASCADE")


def held(shop) -> dict[str, int]:
    """The beginning of each held value, and its id."""
    listed = shop.cli("quarantine", "list", "--stream", "parcels", "-o", "jsonl").ok().jsonl
    return {record["value"]: record["id"] for record in listed}


def test_from_bad_record_to_row(parcels, tmp_path):
    shop, ids = parcels, held(parcels)
    # what there is, and why
    counts = shop.cli("quarantine", "list", "--stream", "parcels", "--summary", "-o", "json").json
    assert sum(count["held"] for count in counts) == 4
    weight = next(count for count in counts if '"weight"' in count["cause"])
    assert weight["held"] == 2
    newest = shop.cli("quarantine", "list", "--stream", "parcels", "--since", "1h", "-n", "1")
    assert str(max(ids.values())) in newest.ok().out
    shown = shop.cli("quarantine", "show", ids["\ufffd\ufffd"]).ok().out
    assert "ff fe" in shown and "RECORD_NOT_DECODED" in shown
    # as they are, they would be refused again
    dry = shop.cli("quarantine", "replay", "--stream", "parcels", "--dry-run", "-o", "jsonl")
    dry.failed("REPLAY_REFUSED")
    assert {record["outcome"] for record in dry.jsonl} == {"refused"}
    assert all(record["problem"] for record in dry.jsonl)
    # many, by a query
    sql = "SELECT regexp_replace(value, '\"([0-9]+)\"', '$1') AS value FROM quarantine"
    mend = ("quarantine", "replay", "--cause", '"weight" is not', "--sql", sql)
    assert "2 would be replayed" in shop.cli(*mend, "--dry-run").ok().err
    assert len(held(shop)) == 4
    assert "2 replayed" in shop.cli(*mend).ok().err
    rows = [[1, 1, 10], [2, 1, 20], [3, 1, 30]]
    shop.wait_for_rows("SELECT * FROM parcel_count", rows)
    # one, in an editor
    script = tmp_path / "edit.py"
    script.write_text('import sys; open(sys.argv[1], "w").write(\'{"id": 4, "weight": 40}\\n\')')
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VISUAL", f"{sys.executable} {script}")
        shop.cli("quarantine", "replay", ids["not json"], "--edit").ok()
    shop.wait_for_rows("SELECT * FROM parcel_count", [*rows, [4, 1, 40]])
    # a second time does nothing
    again = shop.cli("quarantine", "replay", ids["not json"], "--value", '{"id": 4}')
    assert "0 replayed, 0 refused, 1 skipped" in again.ok().err
    shown = shop.cli("quarantine", "show", ids["not json"], "-o", "json").json
    assert shown["state"] == "replayed" and shown["settled"]["changed"]
    # the last one is given up
    last = ids["\ufffd\ufffd"]
    shop.cli("quarantine", "discard", last).failed("CONFIRMATION_NEEDED")
    shop.cli("quarantine", "discard", last, "--yes").ok()
    status = shop.http.get("/v1/status").json()["quarantine"]
    assert "parcels" not in status["objects"]
    assert status["replayed"] >= 3 and status["discarded"] >= 1
    # what was written again has its key and its time, and says where it was
    originals = {(r.partition, r.offset): r for r in shop.records("parcels")}
    replays = [r for r in shop.records("parcels") if len(r.headers) > 1]
    assert sorted(json.loads(r.value)["id"] for r in replays) == [2, 3, 4]
    for record in replays:
        [trace, (name, place)] = record.headers
        topic, partition, offset = place.decode().split("/")
        original = originals[int(partition), int(offset)]
        assert (name, topic) == ("mainstem-replay-of", "parcels")
        assert (record.key, record.timestamp) == (original.key, original.timestamp)
        assert [trace] == list(original.headers)
        assert record.partition == original.partition and record.offset > original.offset
    shop.wait_for_rows("SELECT * FROM parcel_count", [*rows, [4, 1, 40]])


def test_what_is_forced_comes_back_under_a_new_id(parcels):
    before = held(parcels)
    old = before["not json"]
    parcels.cli("quarantine", "replay", old, "--force").ok()
    eventually(lambda: held(parcels).get("not json", old) > old)
    assert len(held(parcels)) == len(before)


def test_refusals(parcels):
    parcels.cli("quarantine", "show", 999_999).failed("UNKNOWN_QUARANTINED")
    parcels.cli("quarantine", "replay").failed("BAD_REQUEST")
    code = "SELECT java_method('java.lang.System', 'exit', 1) AS value FROM quarantine"
    parcels.cli("quarantine", "replay", "--all", "--sql", code).failed("FUNCTION_NOT_ALLOWED", 3)
    wrong = "SELECT nothing AS value FROM quarantine"
    parcels.cli("quarantine", "replay", "--stream", "parcels", "--sql", wrong).failed(
        "UNKNOWN_COLUMN", 3
    )
    assert len(held(parcels)) == 4


REFUNDS = (
    "CREATE OR REPLACE STREAM refunds (id BIGINT NOT NULL, mail STRING PII,"
    " price INT CHECK (price > 0), EXPECT few (price < 100) ON VIOLATION drop) WITH (key = 'id')"
)


def test_what_breaks_a_rule_is_counted_and_comes_back_when_the_rule_was_wrong(shop):
    shop.do(
        REFUNDS,
        "CREATE TABLE refund_sums AS SELECT id, mail, sum(price) AS total"
        " FROM refunds GROUP BY id, mail",
    )
    prices = {1: 5, 2: -3, 3: 500}
    values = [
        b'{"id": %d, "mail": "m%d@x.org", "price": %d}' % (n, n, p) for n, p in prices.items()
    ]
    shop.produce("refunds", *(Outgoing(b"k", value) for value in values))
    shop.wait_for_rows("SELECT * FROM refund_sums", [[1, "m1@x.org", 5]])

    def counts() -> dict[str, int]:
        rules = shop.http.get("/v1/status").json()["rules"]
        return {rule["name"]: rule["records"] for rule in rules if rule["object"] == "refunds"}

    eventually(lambda: counts() == {"id_not_null": 0, "price_check": 1, "few": 1})
    assert "rule price_check (price > 0) was broken by 1 record" in shop.cli("status").ok().err
    # the counts and the records come on ways of their own
    asked = ("quarantine", "list", "--stream", "refunds", "-o", "jsonl")
    [listed] = eventually(lambda: shop.cli(*asked).ok().jsonl)
    assert (listed["stage"], listed["value"]) == ("rule", '{"id":2,"mail":"***","price":-3}')
    assert 'the rule "price_check" (price > 0)' in listed["cause"]
    described = shop.sql("DESCRIBE refund_sums", "-o", "json").ok().json
    assert [r["column"] for r in described if r["pii"]] == ["mail"]
    shop.sql("INSERT INTO refunds VALUES (4, 'm', -4)").failed("RULE_BROKEN")
    # the rule was wrong: it changes, nothing is computed again, and the record comes back
    shop.do(REFUNDS.replace("price > 0", "price > -10"))
    replayed = shop.cli("quarantine", "replay", "--stream", "refunds", "--cause", "price_check")
    assert "1 replayed" in replayed.ok().err
    shop.wait_for_rows("SELECT * FROM refund_sums", [[1, "m1@x.org", 5], [2, "m2@x.org", -3]])
    assert counts() == {"id_not_null": 0, "price_check": 1, "few": 1}
    shop.do("DROP STREAM refunds CASCADE")
