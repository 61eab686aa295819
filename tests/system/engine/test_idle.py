"""Windows of a stream that has gone quiet close by the clock, also behind a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mainstem.engine.flow import Flow
from mainstem.testing.clock import ManualClock
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (at TIMESTAMP)
  WITH (event_time = 'at', watermark = '0 seconds', idle_timeout = '1 minute');
CREATE TABLE t AS
  SELECT window.start AS start, count(*) AS n FROM s GROUP BY window(at, '1 minute') EMIT FINAL;
"""
SECONDS = 120


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def flow(driver: Driver, clock: ManualClock, live: Callable[..., Flow]) -> Flow:
    driver.apply(SQL)
    return live("t", clock)


def test_windows_close_when_nothing_comes(driver: Driver, flow: Flow, clock: ManualClock) -> None:
    def read(event_time: str) -> bool:
        flow.tick()
        flow.measure()
        seen = flow.status.event_time
        return flow.status.lag_records == 0 and bool(seen) and event_time in str(seen)

    def closed(count: int) -> bool:
        flow.tick()
        flow.measure()
        return len(driver.rows("t")) >= count

    driver.send([Event("s", {"at": f"2026-01-01T09:00:{n}Z"}) for n in (10, 20)])
    flow.start()
    eventually(lambda: read("09:00:20"), SECONDS, what=f"the records are read; {flow.status}")
    assert driver.rows("t") == []
    # Spark has gone as far as the records take it, and has looked ahead
    moved = "2026-01-01T09:00:20"
    eventually(lambda: moved in str(flow.status.watermark), SECONDS, what="the watermark moves")
    clock.advance(61)  # the stream's time is 09:01:21
    eventually(lambda: closed(1), SECONDS, what=f"the window closes; {flow.status}")
    assert driver.rows("t") == [{"start": "2026-01-01T09:00:00.000000Z", "n": 2}]

    driver.send([Event("s", {"at": "2026-01-01T09:05:59Z"})])
    eventually(lambda: read("09:05:59"), SECONDS, what=f"the record is read; {flow.status}")
    flow.stop()
    flow.status.batch_id = None
    flow.start()
    eventually(lambda: flow.status.batch_id is not None, SECONDS, what="the last batch ran again")
    clock.advance(61)
    eventually(lambda: closed(2), SECONDS, what=f"the window closes, too; {flow.status}")
    rows = sorted(driver.rows("t"), key=lambda row: row["start"])
    assert rows[1] == {"start": "2026-01-01T09:05:00.000000Z", "n": 1}
    assert flow.status.restarts == 0
