"""A batch whose commit was lost runs again, and writes nothing twice, whatever the flow keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mainstem.engine import late, writer
from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event
from mainstem.vocabulary import COMMITS_TOPIC

pytestmark = pytest.mark.spark

TWO = """
CREATE STREAM a (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
CREATE STREAM b (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
"""
FLOWS = {
    "join": "CREATE STREAM t AS SELECT a.id, b.at FROM a JOIN b ON a.id = b.id;",
    "outer join": (
        "CREATE STREAM t AS SELECT a.id, b.at FROM a LEFT JOIN b"
        " ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE;"
    ),
    "union": "CREATE STREAM t AS SELECT id FROM a UNION ALL SELECT id FROM b"
    " UNION ALL SELECT -id FROM a;",
    "having": "CREATE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id HAVING id % 2 = 1;",
    "final": "CREATE STREAM t AS SELECT window.start, count(*) AS n FROM a"
    " GROUP BY window(at, '1 minute') EMIT FINAL;",
    "count window": "CREATE TABLE t AS SELECT id, count_window.start AS first, count(*) AS n FROM a"
    " GROUP BY id, count_window(2);",
    "distinct": "CREATE STREAM t AS SELECT DISTINCT id FROM a;",
    "enrichment": "CREATE TABLE c (id INT PRIMARY KEY, at TIMESTAMP);"
    " CREATE STREAM t AS SELECT a.id, c.at FROM a LEFT JOIN c ON a.id = c.id;",
}


@pytest.mark.parametrize("flow", FLOWS)
def test_a_replayed_batch_is_not_written_again(
    driver: Driver, flow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SMALL_BATCH", 0)  # a task for each partition of the input
    driver.apply(TWO + FLOWS[flow])
    for hour in range(9, 12):
        for stream in ("a", "b"):
            driver.send(
                Event(stream, {"id": n, "at": f"2026-01-01T{hour:02}:{n:02}:00Z"}, key=str(n))
                for n in range(20)
            )
        driver.run()
    before = driver.records(driver.entry("t").definition.topic)
    assert before
    replay_last(driver)
    assert driver.records(driver.entry("t").definition.topic) == before


def test_an_enrichment_is_written_partition_by_partition_in_order(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SMALL_BATCH", 0)
    driver.apply(TWO + FLOWS["enrichment"])
    driver.send(
        Event("a", {"id": n, "at": "2026-01-01T09:00:00Z"}, key=str(n % 9)) for n in range(200)
    )
    driver.run()
    entry, source = driver.entry("t"), driver.entry("a").definition.topic
    filled = {f"{source}-{r.partition}" for r in driver.records(source)}
    keys = (str(r.key, "utf-8") for r in driver.records(COMMITS_TOPIC) if r.key)
    tasks = {key.partition("|")[2] for key in keys if key.startswith(f"{entry.flow_id}|{source}")}
    assert len(filled) > 1
    assert tasks == filled
    written = driver.records(entry.definition.topic)
    assert len(written) == 200
    by_input: dict[int, list[int]] = {}
    for record in driver.records(source):
        by_input.setdefault(record.partition, []).append(json.loads(record.value or b"")["id"])
    ids = [json.loads(r.value or b"")["id"] for r in written if r.partition == 0]
    assert ids
    for inputs in by_input.values():
        assert [n for n in ids if n in inputs] == [n for n in inputs if n in ids]


def test_a_late_record_is_kept_once_whatever_fails(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.apply(TWO + FLOWS["final"])
    for hour in (9, 12):
        driver.send(Event("a", {"id": n, "at": f"2026-01-01T{hour:02}:00:{n}Z"}) for n in (11, 12))
        driver.run()
    driver.send(Event("a", {"id": n, "at": f"2026-01-01T09:00:{n}Z"}) for n in (13, 14, 15))

    def broken(*_: Any) -> Any:
        raise MainstemError("LOG_FAILED", act="a late record", problem="the test wants it so")

    with monkeypatch.context() as patch:
        patch.setattr(late, "write_task", broken)
        with pytest.raises(MainstemError):
            driver.run()
    assert driver.late("t") == []
    driver.run()
    kept = driver.late("t")
    assert len({(entry["partition"], entry["offset"]) for entry in kept}) == len(kept) == 3
    replay_last(driver)
    assert driver.late("t") == kept


def replay_last(driver: Driver) -> None:
    """Takes away the commit of the last batch, as a crash would have done, and runs again."""
    commits = driver.folder / driver.entry("t").flow_id / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    Path(commits / f".{last}.crc").unlink(missing_ok=True)
    driver.run()
    assert (commits / str(last)).exists()
