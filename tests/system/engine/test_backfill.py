"""A table is computed anew from history, or a stream gets its older part, while the live flow goes
on; crashes change nothing.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from mainstem.catalog.backfill import begun, topic_beside, turned
from mainstem.catalog.entry import BackfillState, CatalogRecord, Entry
from mainstem.engine import hand_over, take_over
from mainstem.engine.flow import FlowServices
from mainstem.engine.runner import Runner
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k STRING, n INT) WITH (key = 'k', partitions = 2);
CREATE TABLE t WITH (start = 'latest') AS SELECT k, count(*) AS n FROM s GROUP BY k;
"""
STREAM_SQL = """
CREATE STREAM s (k STRING, n INT) WITH (key = 'k', partitions = 2);
CREATE STREAM t WITH (start = 'latest') AS SELECT k, n FROM s;
"""
SECONDS = 180
STEPS = ("backfill-held", "backfill-switched", "take-over-written")


class Engine:
    """The engine's loop over the catalog of a driver, which crashes where it is told to."""

    def __init__(self, driver: Driver, services: FlowServices) -> None:
        self.driver = driver
        self._services = services
        self.status: dict[str, Any] = {}
        self.crash_at = ""
        self._stop = threading.Event()

    def write(self, changes: Mapping[str, dict[str, Any] | None], wait: bool) -> None:
        """The status topic."""
        self.status.update(changes)

    def write_catalog(self, changes: Mapping[str, CatalogRecord | None], revision: int) -> None:
        assert revision == self.driver.catalog.revision
        for entry in changes.values():
            assert isinstance(entry, Entry)
            catalog = self.driver.catalog.with_entry(entry)
            self.driver.catalog = replace(catalog, revision=revision + 1)

    def crash_point(self, name: str, flow: str, batch: int) -> None:
        if name == self.crash_at:
            self.crash_at = ""
            self._stop.set()
            message = f"the test ends the engine at {name}"
            raise RuntimeError(message)

    @contextmanager
    def running(self) -> Iterator[threading.Thread]:
        self._stop.clear()
        runner = Runner(
            self._services,
            lambda: self.driver.catalog,
            self,  # type: ignore[arg-type]
            self.write_catalog,
        )
        thread = threading.Thread(target=runner.run, args=(self._stop,), daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            self._stop.set()
            thread.join(SECONDS)


@pytest.fixture
def engine(
    driver: Driver, services: FlowServices, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    engine = Engine(driver, services)
    for module in (hand_over, take_over):
        monkeypatch.setattr(module, "crash_point", engine.crash_point)
    yield engine


@pytest.fixture
def sent(driver: Driver) -> Callable[..., Counter[str]]:
    """Writes records, and counts all that were written by key."""
    count: Counter[str] = Counter()

    def send(number: int, *, live: bool = True) -> Counter[str]:
        keys = [f"{'live' if live and n % 3 == 0 else 'k'}{n % 5}" for n in range(number)]
        driver.send([Event("s", {"k": key, "n": 1}, key=key) for key in keys])
        count.update(keys)
        return count

    return send


def test_a_crash_at_any_step_loses_and_doubles_nothing(
    driver: Driver, engine: Engine, sent: Callable[..., Counter[str]]
) -> None:
    driver.apply(SQL)
    sent(400, live=False)
    with engine.running():
        eventually(lambda: state(engine) == "running", SECONDS, what="the live flow runs")
        eventually(lambda: sent(1) and driver.rows("t"), SECONDS, what="it has begun")
    generation = driver.entry("t").generation
    begin(driver, rate=300)
    for step in STEPS:
        engine.crash_at = step
        with engine.running() as thread:
            sent(30)
            thread.join(SECONDS)
            assert not thread.is_alive(), f"{step} was not reached: {engine.status}"
    before = sent(20)
    with engine.running():
        eventually(lambda: rows(driver) == before, SECONDS, what=f"all is counted: {before}")
        after = sent(50)
        eventually(lambda: rows(driver) == after, SECONDS, what="the flow goes on")
        eventually(lambda: state(engine) == "running", SECONDS, what="and says so")
    entry = driver.entry("t")
    assert (entry.generation, entry.served_generation) == (generation + 1, generation)
    assert driver.admin.topic(topic_beside(entry.definition.topic, entry.generation)) is None


def test_a_cancelled_backfill_leaves_the_table_and_no_trace(
    driver: Driver, engine: Engine, sent: Callable[..., Counter[str]]
) -> None:
    driver.apply(SQL)
    sent(400, live=False)
    with engine.running():
        eventually(lambda: sent(1) and driver.rows("t"), SECONDS, what="the live flow has begun")
        eventually(lambda: has_read_all(driver, engine), SECONDS, what="it has read all")
        before = rows(driver)
        begin(driver, rate=20)
        topic = topic_beside(driver.entry("t").definition.topic, driver.entry("t").generation + 1)
        done = "records_done"
        eventually(lambda: (told(engine) or {}).get(done, 0) > 0, SECONDS, what="it reads")
        assert rows(driver) == before
        driver.catalog = driver.catalog.with_entry(
            turned(driver.entry("t"), BackfillState.CANCELLED)
        )
        eventually(lambda: driver.admin.topic(topic) is None, SECONDS, what="its topic is gone")
        assert rows(driver) == before
        expected = before + Counter({"k0": 1})
        driver.send([Event("s", {"k": "k0", "n": 1}, key="k0")])
        eventually(lambda: rows(driver) == expected, SECONDS, what="the live flow goes on")


def test_a_stream_gets_each_older_record_once(
    driver: Driver, engine: Engine, sent: Callable[..., Counter[str]]
) -> None:
    driver.apply(STREAM_SQL)
    sent(300, live=False)
    with engine.running():
        eventually(lambda: sent(1) and driver.rows("t"), SECONDS, what="the live flow has begun")
        began = eventually(
            lambda: (engine.status.get("t") or {}).get("began"), SECONDS, what="and says where"
        )
    [(topic, end)] = began.items()
    assert sum(end.values()) >= 300
    # first the newer half of it, then all: only what is missing is added
    half = {p: offset // 2 for p, offset in end.items()}
    for start, until in ((half, end), (dict.fromkeys(end, 0), half)):
        older = driver.entry("t")
        texts = (json.dumps({topic: at}) for at in (start, until))
        begin(driver, rate=100, **dict(zip(("start", "end"), texts, strict=True)))
        for step in STEPS[:2]:
            engine.crash_at = step
            with engine.running() as thread:
                sent(30)
                thread.join(SECONDS)
                assert not thread.is_alive(), f"{step} was not reached: {engine.status}"
        entry = driver.entry("t")
        assert entry.backfill is not None and not entry.backfill.active
        assert entry.generation == older.generation
    expected = sent(20)
    with engine.running():
        eventually(lambda: times(driver) == expected, SECONDS, what=f"all, and once: {expected}")
        more = sent(50)
        eventually(lambda: times(driver) == more, SECONDS, what="the live flow goes on")


def begin(driver: Driver, rate: int, **place: str) -> None:
    entry = driver.entry("t")
    inputs = [driver.entry("s").definition]
    catalog = driver.catalog.with_entry(begun(entry, inputs, rate=rate, **place))
    driver.catalog = replace(catalog, revision=catalog.revision + 1)


def rows(driver: Driver) -> Counter[str]:
    return Counter({row["k"]: row["n"] for row in driver.rows("t")})


def times(driver: Driver) -> Counter[str]:
    return Counter(row["k"] for row in driver.rows("t"))


def has_read_all(driver: Driver, engine: Engine) -> bool:
    topic = driver.entry("s").definition.topic
    at = (engine.status.get("t") or {}).get("positions", {}).get(topic, {})
    return {int(p): o for p, o in at.items()} == driver.admin.end_offsets(topic)


def state(engine: Engine) -> str | None:
    return (engine.status.get("t") or {}).get("state")


def told(engine: Engine) -> dict[str, Any] | None:
    return (engine.status.get("t") or {}).get("backfill")
