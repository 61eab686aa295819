"""Flows over topics that come and go while they run, and large batches of many topics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark import TaskContext

from mainstem.engine import ranges, writer
from mainstem.engine.flow import Flow
from mainstem.engine.status import FlowState
from mainstem.engine.topics import WildcardTopics
from mainstem.errors import MainstemError
from mainstem.log.admin import TopicSpec
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import group_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CHAT = "CREATE STREAM chat FROM TOPICS '{city}.chat' (n BIGINT);"
SAID = "CREATE STREAM said AS SELECT city, n FROM chat;"


@pytest.fixture
def flow(driver: Driver, live: Callable[..., Flow]) -> Flow:
    """The flow `said`, not yet started."""
    driver.apply(CHAT + SAID)
    return live("said")


def said(driver: Driver) -> list[tuple[str, int]]:
    return sorted((row["city"], row["n"]) for row in driver.rows("said"))


def wait_for(driver: Driver, flow: Flow, rows: list[tuple[str, int]], seconds: float = 120) -> None:
    def arrived() -> bool:
        flow.tick()
        return len(said(driver)) >= len(rows)

    eventually(arrived, seconds, what=f"{rows}; flow: {flow.status}")
    assert said(driver) == sorted(rows)


def test_topics_come_and_go_while_a_flow_runs(driver: Driver, flow: Flow) -> None:
    def send(city: str, n: int) -> None:
        driver.send([Event(topic=f"{city}.chat", row={"n": n})])

    flow.start()
    assert flow.status.state is FlowState.RUNNING, flow.status.error
    send("nyc", 1)
    wait_for(driver, flow, [("nyc", 1)])
    # Kafka's own clients would look for topics every five minutes
    send("rome", 2)
    wait_for(driver, flow, [("nyc", 1), ("rome", 2)])
    assert flow.status.restarts == 0

    driver.delete_topic("nyc.chat")
    send("rome", 3)
    rows = [("nyc", 1), ("rome", 2), ("rome", 3)]
    wait_for(driver, flow, rows)
    rome = driver.prefix + "rome.chat"
    eventually(lambda: set(flow.status.positions) == {rome}, what="the deleted topic is forgotten")
    send("nyc", 4)
    wait_for(driver, flow, [*rows, ("nyc", 4)])
    assert flow.status.restarts == 0
    eventually(lambda: flow.measure() or flow.status.lag_records == 0, what="no lag")  # type: ignore[func-returns-value]
    offsets = driver.admin.end_offsets(rome)
    group = group_of("said")
    eventually(
        lambda: driver.admin.group_offsets(group, rome) == offsets, what="the group's position"
    )


def test_the_only_topic_is_made_again(driver: Driver, flow: Flow) -> None:
    # by these keys each partition has two records before, and one of them all there is after
    keys = ("a", "a", "d", "d")
    nyc = [Event(topic="nyc.chat", row={"n": n}, key=key) for n, key in enumerate(keys)]
    flow.start()
    driver.send(nyc)
    rows = [("nyc", n) for n in range(4)]
    wait_for(driver, flow, rows)
    # without any topic Spark sees nothing new, so it does not notice that this one was away
    driver.delete_topic("nyc.chat")
    driver.send(nyc[:2])
    wait_for(driver, flow, [*rows, *rows[:2]])
    driver.send([Event(topic="nyc.chat", row={"n": 9})])
    wait_for(driver, flow, [*rows, *rows[:2], ("nyc", 9)])


def test_topics_are_deleted_and_made_again_while_a_flow_is_stopped(
    driver: Driver, flow: Flow
) -> None:
    cities = ("nyc", "rome", "oslo")
    driver.send(Event(topic=f"{c}.chat", row={"n": n}) for c in cities for n in range(3))
    flow.start()
    rows = [(c, n) for c in cities for n in range(3)]
    wait_for(driver, flow, rows)
    flow.stop()
    driver.delete_topic("nyc.chat")
    driver.delete_topic("rome.chat")
    driver.send([Event(topic="rome.chat", row={"n": 7}), Event(topic="oslo.chat", row={"n": 8})])
    flow.start()
    wait_for(driver, flow, [*rows, ("rome", 7), ("oslo", 8)])
    assert flow.status.restarts == 0


@pytest.mark.slow
def test_a_topic_is_deleted_in_the_middle_of_a_batch(
    driver: Driver, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch was planned with records that are gone when its tasks begin."""
    watched = WildcardTopics.watch

    def delete_then_watch(self: WildcardTopics, start: Any, end: Any) -> None:
        watched(self, start, end)
        monkeypatch.undo()
        driver.delete_topic("nyc.chat")

    driver.send([Event(topic="nyc.chat", row={"n": 1}), Event(topic="rome.chat", row={"n": 2})])
    monkeypatch.setattr(WildcardTopics, "watch", delete_then_watch)
    for wait in (*ranges.PATIENCE, "kafka.request.timeout.ms"):
        monkeypatch.setitem(ranges.PATIENCE, wait, "4000")
    flow.start()
    wait_for(driver, flow, [("rome", 2)], seconds=200)
    assert flow.status.restarts == 1
    driver.send([Event(topic="nyc.chat", row={"n": 3})])
    wait_for(driver, flow, [("rome", 2), ("nyc", 3)])


def test_records_that_age_out_unread_stop_the_flow(driver: Driver, flow: Flow) -> None:
    driver.send([Event(topic="nyc.chat", row={"n": 1}), Event(topic="rome.chat", row={"n": 1})])
    flow.start()
    wait_for(driver, flow, [("nyc", 1), ("rome", 1)])
    flow.stop()
    driver.send(Event(topic="nyc.chat", row={"n": n}) for n in range(10))
    driver.admin.truncate(driver.prefix + "nyc.chat")
    driver.send([Event(topic="nyc.chat", row={"n": 99})])
    flow.start()

    def failed() -> Any:
        flow.tick()
        return flow.status.error

    assert eventually(failed)["title"] == "FLOW_DATA_LOST"
    assert said(driver) == [("nyc", 1), ("rome", 1)]


def test_a_large_batch_of_many_topics_is_replayed_exactly_once(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    cities, each = ("nyc", "rome", "oslo"), 9_000
    assert len(cities) * each > writer.SMALL_BATCH
    driver.apply(CHAT + SAID)
    producer = Producer(driver.connection)
    for city in cities:
        topic = f"{driver.prefix}{city}.chat"
        driver.admin.ensure_topic(TopicSpec(topic, 2, 1))
        records = [Outgoing(str(n).encode(), json.dumps({"n": n}).encode()) for n in range(each)]
        producer.send(topic, records)
    producer.close()
    plain = writer.task_function

    def broken(*arguments: Any, **more: Any) -> Callable[[Any], Iterator[Any]]:
        names = arguments[2]
        task = plain(*arguments, **more)

        def run(batches: Any) -> Iterator[Any]:
            context = TaskContext.get()
            assert context is not None
            if "rome" in names[context.partitionId()] or names[context.partitionId()][-1] == "1":
                raise RuntimeError("this one breaks")
            yield from task(batches)

        return run

    monkeypatch.setattr(writer, "task_function", broken)
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert "this one breaks" in str(caught.value)
    monkeypatch.undo()
    driver.run()
    found = Counter((row["city"], row["n"]) for row in driver.rows("said"))
    assert found == Counter((city, n) for city in cities for n in range(each))
    for city in cities:
        driver.delete_topic(f"{city}.chat")
