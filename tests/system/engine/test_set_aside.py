"""A record for which a Python function fails goes to the quarantine once; its flow goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainstem.config import SparkSettings
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.pacing import Pacer
from mainstem.engine.quarantine import Keeper
from mainstem.engine.status import FlowState
from mainstem.engine.tables import Tables
from mainstem.log.late import Ledger
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import SystemClock

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


def test_a_flow_goes_on_without_the_record(driver: Driver, tmp_path: Path) -> None:
    driver.apply(SQL, functions=FUNCTIONS)
    clock = SystemClock()
    checkpoints = Checkpoints(driver.spark, str(tmp_path / "live"))
    services = FlowServices(
        spark=driver.spark,
        connection=driver.connection,
        admin=driver.admin,
        pacer=Pacer(2),
        keeper=Keeper(driver.spark, driver.connection, driver.admin, clock),
        settings=SparkSettings(),
        checkpoints=checkpoints,
        tables=Tables(driver.spark, driver.connection, driver.admin, checkpoints),
        clock=clock,
        ledger=Ledger(driver.connection, driver.admin),
        in_background=lambda work: work(),
    )

    def until(flow: Flow, count: int) -> None:
        def there() -> bool:
            flow.tick()
            return len(driver.rows("x")) >= count

        eventually(there, SECONDS, what=f"{count} rows")

    driver.send([Event("s", {"id": i, "n": n}) for i, n in enumerate((2, 0, 4))])
    inputs = (driver.entry("s").definition,)
    flow = Flow(driver.entry("x"), inputs, services)
    flow.start()
    until(flow, 2)
    flow.measure()
    assert (flow.status.state, flow.status.quarantined) == (FlowState.RUNNING, 1)
    flow.stop()

    # another engine takes the flow up: what is aside stays aside
    driver.send([Event("s", {"id": 3, "n": 5})])
    flow = Flow(driver.entry("x"), inputs, services)
    flow.start()
    until(flow, 3)
    flow.stop()
    assert sorted(row["id"] for row in driver.rows("x")) == [0, 2, 3]
    [kept] = driver.quarantine()
    facts = {name: (value or b"").decode() for name, value in kept.headers}
    assert (facts["stage"], facts["object"], facts["code"]) == ("function", "x", "FUNCTION_FAILED")
    assert facts["cause"] == 'function "inverse" failed: ZeroDivisionError: division by zero'
    assert kept.value == b'{"id": 1, "n": 0}'
