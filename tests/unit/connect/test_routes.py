"""To which topic, and as what, a row of a Kafka sink goes."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.connect.connectors.kafka import SPEC
from mainstem.connect.targets.routes import NoRouteError, Routes
from mainstem.connect.targets.target import Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = tuple(Column(name, "string") for name in ("id", "country", "payload"))
STREAM = Shape("orders", COLUMNS)
TABLE = Shape("orders", COLUMNS, ("id",), upserts=True, deletes=True)


def routes(shape: Shape = STREAM, **written: str) -> Routes:
    return Routes.of(SPEC.validate({"servers": "other:9092", **written}), shape)


def refusal(shape: Shape = STREAM, **options: Any) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        Routes.of(SPEC.validate(options), shape)
    return caught.value


def test_a_row_goes_to_the_topic_of_its_columns() -> None:
    made = routes(topic="by.{country}.{id}", keyed_by="id", value="payload", headers="id, country")
    out = made.record(None, None, '{"id":7,"country":"fr","payload":"{}"}', 5)
    assert (out.topic, out.key, out.value, out.timestamp) == ("by.fr.7", b"7", b"{}", 5)
    assert out.headers == (("id", b"7"), ("country", b"fr"))


def test_a_number_stays_as_it_is_written() -> None:
    out = routes(topic="t", keyed_by="id").record(None, None, '{"id":1.10,"country":"x"}', None)
    assert out.key == b"1.10"


@pytest.mark.parametrize(
    "row",
    ['{"country":null}', '{"id":1}', '{"country":"a b"}', '{"country":"' + "x" * 250 + '"}'],
)
def test_a_row_without_a_topic(row: str) -> None:
    with pytest.raises(NoRouteError):
        routes(topic="by.{country}").record(None, None, row, None)


def test_nobody_is_routed_to_topics_of_the_platform() -> None:
    with pytest.raises(NoRouteError):
        routes(topic="_mainstem.{country}").record(None, None, '{"country":"commits"}', None)


def test_what_is_refused() -> None:
    assert refusal(servers="s", topic="by.{contry}").code == "UNKNOWN_COLUMN"
    assert refusal(servers="s", value="pay").params["option"] == "value"
    assert refusal(TABLE, servers="s", topic="by.{country}").code == "INVALID_OPTION"
    assert refusal(topic="{country}").params["option"] == "topic"
    assert refusal().params["option"] == "topic"
    out = routes(TABLE, topic="by.{id}").record(None, '{"id":"a"}', None, None)
    assert (out.topic, out.value) == ("by.a", None)
