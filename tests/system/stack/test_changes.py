"""Definitions that change while everything runs: plan, apply, rebuild, drop, pause."""

from __future__ import annotations

import threading

import pytest

from mainstem.definitions.project import read_files
from mainstem.testing.waiting import eventually

READINGS = """
CREATE STREAM readings (sensor STRING, value DOUBLE) WITH (key = 'sensor');
CREATE TABLE sums AS SELECT sensor, sum(value) AS total FROM readings GROUP BY sensor;
CREATE STREAM high AS SELECT sensor, value FROM readings WHERE value > 100;
"""


def files(shop, **more: str) -> list[dict[str, str]]:
    """The project's files and some more, as the gateway takes them."""
    given = [{"path": path, "text": text} for path, text in read_files(shop.folder)]
    return given + [{"path": f"pipeline/{n}.sql", "text": text} for n, text in more.items()]


def starts(shop, flow: str) -> int:
    """How often the engine has started a flow."""
    return (shop.up.state / "logs" / "engine.log").read_text().count(f"flow {flow}: running")


@pytest.fixture
def readings(shop):
    """A file of definitions that a test may change, with three records in."""
    with shop.edited("pipeline/readings.sql", lambda _: READINGS):
        shop.cli("apply", "--yes").ok()
        shop.write(
            "readings",
            {"sensor": "a", "value": 1.0},
            {"sensor": "b", "value": 2.0},
            {"sensor": "a", "value": 200.0},
        )
        shop.wait_for_rows("SELECT * FROM sums", [["a", 201.0], ["b", 2.0]])
        eventually(lambda: shop.flow("sums")["rows_in_total"] == 3)
        eventually(lambda: shop.flow("high")["rows_in_total"] == 3)
        yield shop.folder / "pipeline" / "readings.sql"


def test_a_reformatted_definition_is_no_change(shop, readings):
    text = readings.read_text().replace("SELECT", "\n  select -- really\n   ")
    readings.write_text("/* all about sensors */\n" + text)
    assert shop.cli("plan").ok().out == "No changes.\n"
    assert shop.cli("plan", "--detailed-exitcode").ok().out == "No changes.\n"
    assert shop.cli("apply").ok().out == "No changes.\n"


def test_an_edit_is_live_within_seconds_and_leaves_the_others_alone(shop, readings):
    before = {name: (shop.flow(name), starts(shop, name)) for name in ("sums", "big_orders")}
    readings.write_text(
        readings.read_text()
        + "CREATE TABLE peaks AS SELECT sensor, max(value) AS top FROM readings GROUP BY sensor;"
    )
    planned = shop.cli("plan", "--detailed-exitcode")
    assert planned.code == 2
    assert "peaks" in planned.out and "sums" not in planned.out
    assert shop.cli("plan").code == 0
    shop.cli("apply").ok()
    shop.wait_for_rows("SELECT * FROM peaks", [["a", 200.0], ["b", 2.0]])
    shop.write("readings", {"sensor": "b", "value": 5.0})
    shop.wait_for_rows("SELECT * FROM sums", [["a", 201.0], ["b", 7.0]])
    for name, (status, started) in before.items():
        now = shop.flow(name)
        assert starts(shop, name) == started
        assert now["restarts"] == 0 and now["generation"] == status["generation"]
        assert now["rows_in_total"] >= status["rows_in_total"]
    eventually(lambda: shop.flow("sums")["rows_in_total"] == 4)
    assert shop.flow("sums")["batch_id"] > before["sums"][0]["batch_id"]


def test_a_new_object_leaves_the_others_alone(shop):
    started = starts(shop, "big_orders")
    shop.do("CREATE STREAM unrelated (a STRING)")
    try:
        assert shop.cli("plan").ok().out == "No changes.\n"
        assert starts(shop, "big_orders") == started
    finally:
        shop.do("DROP STREAM unrelated")
        shop.cli("apply").ok()


def test_a_changed_aggregate_is_rebuilt_and_leaves_nothing_old(shop, readings):
    readings.write_text(
        READINGS.replace(
            "SELECT sensor, sum(value) AS total FROM readings GROUP BY sensor",
            "SELECT sensor, count(*) AS n FROM readings WHERE value > 1.5 GROUP BY sensor",
        )
    )
    assert "rebuild" in shop.cli("plan").ok().out
    refused = shop.cli("apply").failed("CONFIRMATION_NEEDED")
    assert "rebuild sums" in refused.err
    assert shop.rows("SELECT total FROM sums WHERE sensor = 'b'") == [[2.0]]
    generation = shop.flow("sums")["generation"]
    shop.cli("apply", "--yes").ok()
    shop.wait_for_rows("SELECT * FROM sums", [["a", 1], ["b", 1]])
    assert shop.flow("sums")["generation"] == generation + 1
    assert {tuple(v) for v in shop.values("sums")} == {("sensor", "n")}
    shop.write("readings", {"sensor": "c", "value": 9.0}, {"sensor": "c", "value": 1.0})
    shop.wait_for_rows("SELECT * FROM sums", [["a", 1], ["b", 1], ["c", 1]])


def test_drop_names_what_depends_on_it(shop, readings):
    refused = shop.sql("DROP STREAM readings").failed("HAS_DEPENDENTS", 3)
    assert "high, sums" in refused.err or "sums, high" in refused.err
    shop.cli("drop", "readings", "--yes").failed("HAS_DEPENDENTS", 3)
    assert "would drop readings" in shop.cli("drop", "readings", "--dry-run").ok().err
    shop.sql("DROP TABLE readings").failed("WRONG_KIND", 3)
    shop.cli("drop", "readings", "--cascade", "--yes").ok()
    shop.sql("SELECT * FROM sums").failed("UNKNOWN_RELATION", 3)
    topics = {topic.name for topic in shop.admin.topics()}
    assert not topics & {"readings", "sums", "high"}
    shop.cli("apply").ok()  # the project still has them
    shop.wait_for_rows("SELECT * FROM sums", [])
    shop.write("readings", {"sensor": "n", "value": 1.0})
    shop.wait_for_rows("SELECT * FROM sums", [["n", 1.0]])


def test_pause_keeps_the_place_and_resume_catches_up(shop, readings):
    eventually(lambda: [v["value"] for v in shop.values("high")] == [200.0])
    assert "paused" in shop.cli("pause", "high").ok().err
    shop.wait_for_flow("high", "paused")
    shop.write("readings", {"sensor": "a", "value": 300.0}, {"sensor": "a", "value": 400.0})
    shop.wait_for_rows("SELECT * FROM sums", [["a", 901.0], ["b", 2.0]])
    assert shop.flow("high")["state"] == "paused"
    assert [v["value"] for v in shop.values("high")] == [200.0]
    shop.sql("RESUME high").ok()
    shop.wait_for_flow("high", "running")
    shop.write("readings", {"sensor": "a", "value": 500.0})

    eventually(lambda: len(shop.values("high")) >= 4)
    assert [v["value"] for v in shop.values("high")] == [200.0, 300.0, 400.0, 500.0]
    shop.cli("pause", "readings").failed("NO_FLOW", 3)
    shop.cli("pause", "hihg").failed("UNKNOWN_RELATION", 3)


def test_a_plan_that_others_have_overtaken_is_refused(shop):
    given = files(shop, late="CREATE STREAM late (a STRING);")
    plan = shop.http.post("/v1/plan", json={"files": given}).json()
    assert plan["changes"] == 1
    shop.do("CREATE STREAM quicker (a STRING)")
    try:
        body = {"files": given, "digest": plan["digest"], "revision": plan["revision"]}
        problem = shop.refused("STALE_PLAN", "POST", "/v1/apply", json=body)
        assert problem["status"] == 409
        body["digest"] = "0" * len(plan["digest"])
        shop.refused("STALE_PLAN", "POST", "/v1/apply", json=body)
        shop.sql("DESCRIBE late").failed("UNKNOWN_RELATION", 3)
    finally:
        shop.do("DROP STREAM quicker")


def test_of_two_applies_at_once_one_wins_and_the_other_changes_nothing(shop):
    bodies = []
    for name in ("port", "starboard"):
        given = files(shop, **{name: f"CREATE STREAM {name} (a STRING);"})
        plan = shop.http.post("/v1/plan", json={"files": given}).json()
        bodies.append({"files": given, "digest": plan["digest"], "revision": plan["revision"]})
    together = threading.Barrier(2)
    answers: dict[str, int] = {}

    def apply(name: str, body: dict[str, object]) -> None:
        together.wait()
        answers[name] = shop.http.post("/v1/apply", json=body).status_code

    threads = [
        threading.Thread(target=apply, args=pair)
        for pair in zip(("port", "starboard"), bodies, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert sorted(answers.values()) == [200, 409]
        winner = next(name for name, status in answers.items() if status == 200)
        streams = {row[0] for row in shop.rows("SHOW STREAMS")}
        assert streams & {"port", "starboard"} == {winner}
    finally:
        shop.do("DROP STREAM IF EXISTS port", "DROP STREAM IF EXISTS starboard")


def test_a_mistake_in_one_file_applies_nothing(shop):
    text = "CREATE STREAM fine (a STRING);\nCREATE STREAM wrong AS SELECT a, upper(b) FROM fine;"
    with shop.edited("pipeline/mistake.sql", lambda _: text):
        failed = shop.cli("apply").failed("UNKNOWN_COLUMN", 3)
        assert "pipeline/mistake.sql:2:40" in failed.err
        shop.sql("DESCRIBE fine").failed("UNKNOWN_RELATION", 3)


def test_two_definitions_of_one_name(shop):
    text = "CREATE STREAM twice (a STRING);\nCREATE TABLE Twice (a STRING PRIMARY KEY);"
    with shop.edited("pipeline/twice.sql", lambda _: text):
        failed = shop.cli("plan").failed("DUPLICATE_NAME", 3)
        assert "pipeline/twice.sql:2:1" in failed.err and "pipeline/twice.sql:1:1" in failed.err
