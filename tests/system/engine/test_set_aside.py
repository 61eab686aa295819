"""A record for which a Python function fails goes to the quarantine once; its flow goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mainstem.engine.flow import Flow
from mainstem.engine.status import FlowState
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

FUNCTIONS = """
from mainstem import function

@function
def inverse(n: int) -> float:
    return 1 / n
"""
SQL = """
CREATE STREAM s (id BIGINT, n INT);
CREATE STREAM x AS SELECT id, inverse(n) AS r FROM s;
"""
SECONDS = 120


def test_a_flow_goes_on_without_the_record(driver: Driver, live: Callable[..., Flow]) -> None:
    driver.apply(SQL, functions=FUNCTIONS)

    def until(flow: Flow, count: int) -> None:
        def there() -> bool:
            flow.tick()
            return len(driver.rows("x")) >= count

        eventually(there, SECONDS, what=f"{count} rows")

    driver.send([Event("s", {"id": i, "n": n}) for i, n in enumerate((2, 0, 4))])
    flow = live("x")
    flow.start()
    until(flow, 2)

    def told() -> bool:
        flow.tick()
        flow.measure()
        return (flow.status.state, flow.status.quarantined) == (FlowState.RUNNING, 1)

    eventually(told, SECONDS, what="one record is aside, and the flow runs")
    flow.stop()

    # another engine takes the flow up: what is aside stays aside
    driver.send([Event("s", {"id": 3, "n": 5})])
    flow = live("x")
    flow.start()
    until(flow, 3)
    flow.stop()
    assert sorted(row["id"] for row in driver.rows("x")) == [0, 2, 3]
    [kept] = driver.quarantine()
    facts = {name: (value or b"").decode() for name, value in kept.headers}
    assert (facts["stage"], facts["object"], facts["code"]) == ("function", "x", "FUNCTION_FAILED")
    assert facts["cause"] == 'function "inverse" failed: ZeroDivisionError: division by zero'
    assert kept.value == b'{"id": 1, "n": 0}'
