"""A stream over many topics, from the first topic to the last, by every way in and out."""

from __future__ import annotations

import json
import signal

import pytest

from mainstem.log.admin import TopicSpec
from mainstem.log.producer import Outgoing


@pytest.fixture
def talk(shop):
    """A wildcard stream without a topic, and a count of it."""
    shop.do(
        "CREATE STREAM talk FROM TOPICS '{city}.{room}.talk' (player STRING, text STRING)",
        "CREATE TABLE talk_count AS SELECT city, room, count(*) AS n FROM talk GROUP BY city, room",
    )
    shop.wait_for_flow("talk_count")
    yield shop
    shop.do("DROP STREAM talk CASCADE")
    for topic in ("rome.blue.talk", "oslo.green.talk"):
        shop.admin.delete_topic(topic)


def say(shop, topic: str, text: str) -> None:
    shop.admin.ensure_topic(TopicSpec(topic, 1, 1))
    shop.produce(topic, Outgoing(None, json.dumps({"player": "ann", "text": text}).encode()))


def test_topics_join_a_running_product(talk):
    assert "now: none" in talk.sql("DESCRIBE talk").ok().err
    query = "SELECT city, text FROM talk EMIT CHANGES"
    with talk.running("sql", "-e", query, "-o", "jsonl") as push:
        talk.wait_for_subscriptions(1)
        talk.do("CREATE STREAM red (player STRING, text STRING) WITH (topic = 'nyc.red.talk')")
        talk.write("red", {"player": "ann", "text": "one"})
        assert json.loads(push.stdout.readline()) == {"city": "nyc", "text": "one"}
        say(talk, "rome.blue.talk", "two")
        assert json.loads(push.stdout.readline()) == {"city": "rome", "text": "two"}
        push.send_signal(signal.SIGINT)
        assert push.wait(120) == 130
    counted = [["nyc", "red", 1], ["rome", "blue", 1]]
    talk.wait_for_rows("SELECT city, room, n FROM talk_count", counted)
    assert sorted(talk.rows("SELECT city, room, text FROM talk")) == [
        ["nyc", "red", "one"], ["rome", "blue", "two"],
    ]  # fmt: skip
    assert "now: nyc.red.talk, rome.blue.talk" in talk.sql("DESCRIBE talk").ok().err
    assert "nyc.red.talk, rome.blue.talk" in talk.sql("SHOW STREAMS").ok().err

    consumed = talk.cli("consume", "talk", "-o", "jsonl").ok().jsonl
    assert sorted(r["topic"] for r in consumed) == ["nyc.red.talk", "rome.blue.talk"]
    with talk.running("consume", "talk", "-F", "-n", 3, "-o", "jsonl") as follow:
        first = [json.loads(follow.stdout.readline())["value"]["text"] for _ in range(2)]
        assert first == ["one", "two"]
        say(talk, "oslo.green.talk", "three")
        assert json.loads(follow.stdout.readline())["topic"] == "oslo.green.talk"

    talk.sql("INSERT INTO talk VALUES ('nyc', 'red', 'ann', 'hi')").failed("WRONG_KIND", 3)
    talk.cli("produce", "talk", input='{"text": "hi"}\n').failed("WRONG_KIND", 3)
    talk.do("DROP STREAM red")
    say(talk, "rome.blue.talk", "four")
    counted = [["nyc", "red", 1], ["rome", "blue", 2], ["oslo", "green", 1]]
    talk.wait_for_rows("SELECT city, room, n FROM talk_count", counted)
    assert talk.flow("talk_count")["restarts"] == 0
