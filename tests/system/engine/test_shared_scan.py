"""Flows that share a scan write what they would write alone, each record once, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mainstem.engine import flow as flow_module
from mainstem.engine.batch_log import BatchLog
from mainstem.engine.flow import Flow
from mainstem.engine.member import Member
from mainstem.engine.status import FlowState
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM s (id INT, name STRING, more STRUCT<a: INT, b: ARRAY<INT>>, at TIMESTAMP);"
FLOWS = {
    "plain": "CREATE STREAM plain AS SELECT * FROM s;",
    "kept": "CREATE STREAM kept AS SELECT id, upper(name) AS name FROM s WHERE id % 2 = 0;",
    "placed": "CREATE STREAM placed AS SELECT *, _offset AS o, _partition AS p, _key AS key,"
    " _headers AS heads FROM s;",
    "opened": "CREATE STREAM opened AS SELECT id, explode(more.b) AS b FROM s;",
    "deep": "CREATE STREAM deep AS WITH t AS (SELECT id, more.a + 1 AS a FROM s WHERE id > 3)"
    " SELECT id, named_struct('a', a, 'twice', a * 2) AS both FROM t WHERE a IS NOT NULL;",
    "latest": "CREATE TABLE latest WITH (key = 'name') AS SELECT name, id, at FROM s;",
}
SECONDS = 120


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow shares as soon as it has had a batch."""
    monkeypatch.setattr(flow_module, "_SHARE_AFTER_SECONDS", 0.0)


class Together:
    """Some flows in one engine."""

    def __init__(self, driver: Driver, live: Callable[..., Flow], names: list[str]) -> None:
        self.driver, self.sent = driver, 0
        self.flows = {name: live(name) for name in names}
        for flow in self.flows.values():
            flow.start()

    def tick(self) -> bool:
        for flow in self.flows.values():
            flow.tick()
            flow.measure()
        return True

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        self.driver.send(event(n) for n in numbers)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        eventually(lambda: self.tick() and condition(), SECONDS, what=what)

    def share(self, *names: str) -> None:
        flows = [self.flows[name] for name in names or self.flows]
        self.until(lambda: all(shares(flow) for flow in flows), "all flows share")

    def caught_up(self, *names: str) -> bool:
        flows = [self.flows[name] for name in names or self.flows]
        sent = self.driver.admin.end_offsets(flows[0].inputs[0].topic)
        positions = [flow.status.positions.get(flow.inputs[0].topic, {}) for flow in flows]
        here = {str(p): o for p, o in sent.items()}
        return all(at == here for at in positions) and all(f.status.lag_records == 0 for f in flows)


def event(n: int) -> Event:
    more = {"a": None if n % 5 == 0 else n, "b": list(range(n % 3))}
    value = {"id": n, "name": f"n{n % 4}", "more": more, "at": f"2026-01-01T00:00:{n % 60:02}Z"}
    return Event("s", value, key=f"k{n % 7}")


def same(driver: Driver, name: str) -> bool:
    """True when the object holds exactly what its query gives over all of its input."""
    return sorted(driver.pairs(name), key=repr) == sorted(driver.batch(name), key=repr)


def shares(flow: Flow) -> bool:
    return flow.status.shared and flow.running


def test_all_write_what_they_would_write_alone(driver: Driver, live: Callable[..., Flow]) -> None:
    driver.apply(STREAM + "".join(FLOWS.values()))
    together = Together(driver, live, [*FLOWS])
    together.send(5)
    together.share()
    together.send(40)
    driver.send([Event("s", raw=b"{not json", key="k1"), Event("s", raw=b'{"id": "x"}', key="k2")])
    together.send(40)
    together.until(together.caught_up, "all is read")
    for name, flow in together.flows.items():
        assert shares(flow)
        assert same(driver, name), name
        assert flow.status.state is FlowState.RUNNING
    together.until(lambda: together.flows["plain"].status.quarantined == 2, "bad records are kept")
    assert len(driver.quarantine()) == 2
    plain = together.flows["plain"]
    assert plain.status.rows_out_total == len(driver.rows("plain")) == 85
    stream = plain.inputs[0].topic
    eventually(
        lambda: driver.admin.group_offsets(plain.group, stream) == driver.admin.end_offsets(stream),
        SECONDS,
        what="the group stands at the end",
    )


def test_a_flow_leaves_and_comes_back_without_a_gap(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    driver.apply(STREAM + FLOWS["plain"] + FLOWS["kept"] + FLOWS["opened"])
    together = Together(driver, live, ["plain", "kept", "opened"])
    together.send(5)
    together.share()
    together.send(20)
    together.until(together.caught_up, "all is read")
    together.flows["kept"].stop()
    together.send(20)
    together.until(lambda: together.caught_up("plain", "opened"), "the others go on")
    assert len(driver.rows("plain")) == 45
    assert len(driver.rows("kept")) == 13
    together.flows["kept"] = live("kept")
    together.flows["kept"].start()
    together.share()
    together.send(20)
    together.until(together.caught_up, "all is read")
    for name in together.flows:
        assert same(driver, name), name


@pytest.mark.parametrize("step", ["begin", "write", "done"])
def test_a_batch_that_fails_is_run_by_the_flow_alone(
    driver: Driver, live: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    driver.apply(STREAM + FLOWS["plain"] + FLOWS["kept"])
    together = Together(driver, live, ["plain", "kept"])
    together.send(5)
    together.share()
    member = together.flows["kept"]._member
    assert member is not None

    def fails(*_: Any) -> None:
        raise OSError("the test wants it so")

    owner: Member | BatchLog = member if step == "write" else member.log
    monkeypatch.setattr(owner, step, fails)
    together.send(20)
    together.until(together.caught_up, "all is read")
    assert shares(together.flows["plain"])
    assert not shares(together.flows["kept"])
    assert together.flows["kept"].status.state is FlowState.RUNNING
    for name in together.flows:
        assert same(driver, name), name


def test_one_flow_fails_and_the_others_do_not_notice(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    inverse = "CREATE STREAM inverse AS SELECT id, 100 DIV (id - 30) AS part FROM s;"
    driver.apply(STREAM + FLOWS["plain"] + FLOWS["kept"] + inverse)
    together = Together(driver, live, ["plain", "kept", "inverse"])
    together.send(5)
    together.share()
    together.send(20)
    together.until(together.caught_up, "all is read")
    together.send(20)
    together.until(lambda: together.caught_up("plain", "kept"), "the others go on")
    failing = together.flows["inverse"]
    together.until(lambda: failing.status.state is FlowState.FAILED, "the flow says so")
    assert failing.status.error is not None
    assert "zero" in failing.status.error["detail"]
    assert shares(together.flows["plain"])
    assert shares(together.flows["kept"])
    for name in ("plain", "kept"):
        assert same(driver, name), name
    written = [row["id"] for row in driver.rows("inverse")]
    assert len(set(written)) == len(written) >= 25
