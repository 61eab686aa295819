"""Topics of a wildcard stream that are gone, made again, or cut off at their beginning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.definitions.parse import parse_one
from mainstem.engine.offset_log import lost_topics
from mainstem.engine.topics import WildcardTopics, wildcard_topics
from mainstem.errors import MainstemError


def at(**topics: int) -> dict[str, dict[int, int]]:
    return {f"{name}.chat": {0: offset} for name, offset in topics.items()}


def topics(**begins: int) -> WildcardTopics:
    """The topics of a flow over `*.chat`, in a log where they begin like this."""
    there = at(**begins)
    admin: Any = SimpleNamespace(
        all_begin_offsets=lambda asked: {t: there[t] for t in asked if t in there}
    )
    definition = parse_one("CREATE STREAM w FROM TOPICS '*.chat' (a INT)").definition  # type: ignore[union-attr]
    made = wildcard_topics("f", [definition], admin)
    assert made is not None
    return made


def test_other_inputs_are_left_to_spark() -> None:
    definition = parse_one("CREATE STREAM s (a INT)").definition  # type: ignore[union-attr]
    assert wildcard_topics("f", [definition], SimpleNamespace()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begins", "start", "end"),
    [
        (at(a=0), at(a=3), at(a=5)),
        (at(a=0, b=7), at(a=3), at(a=5, b=9)),  # b is new, so it is read from where it begins
        (at(a=0), at(a=3, b=9), at(a=5)),  # b was deleted before
        (at(), at(a=3), at(a=5)),  # deleted a moment ago
        (at(a=5), at(a=5), at(a=5)),  # aged out after it was read
        (at(a=0), at(a=3), at(a=0)),  # made again, and empty
        (at(a=0), {"other": {0: 9}}, {"other": {0: 1}}),
    ],
)
def test_a_batch_that_loses_nothing(begins: Any, start: Any, end: Any) -> None:
    names = {name.removesuffix(".chat"): offsets[0] for name, offsets in begins.items()}
    topics(**names).watch(start, end)


@pytest.mark.parametrize(
    ("begins", "start", "end", "code"),
    [
        ({"a": 4}, at(a=3), at(a=5), "FLOW_DATA_LOST"),
        ({"a": 5}, at(a=3), at(a=5), "FLOW_DATA_LOST"),
        ({"a": 0, "b": 0}, at(a=3, b=9), at(a=5, b=2), "FLOW_TOPIC_REMADE"),
    ],
)
def test_a_batch_that_would_lose_records(begins: Any, start: Any, end: Any, code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        topics(**begins).watch(start, end)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("end", "loses"),
    [
        ({0: 2, 1: 0}, True),  # nothing new to see in one partition, nothing at all in the other
        ({0: 3, 1: 0}, True),
        ({0: 1, 1: 1}, True),
        ({0: 0, 1: 0}, False),
        ({0: 4, 1: 2}, False),
    ],
)
def test_a_topic_made_again_is_seen_in_any_of_its_partitions(
    end: dict[int, int], loses: bool
) -> None:
    found = topics(a=0)
    found._admin.all_begin_offsets = lambda asked: {t: {0: 0, 1: 0} for t in asked}  # type: ignore[method-assign]
    start = {"a.chat": {0: 2, 1: 2}}
    if not loses:
        return found.watch(start, {"a.chat": end})
    with pytest.raises(MainstemError, match="again"):
        found.watch(start, {"a.chat": end})
    return None


@pytest.mark.parametrize(
    ("done", "begun", "ends", "from_done", "from_begun"),
    [
        (at(a=5), at(a=9), at(a=12), "", ""),
        (at(a=5), at(), at(a=5), "", ""),
        (at(a=5), at(), at(), "", ""),  # gone: Spark itself leaves it
        (at(a=5, b=1), at(a=9, b=4), at(b=4), "", "a"),  # gone in the middle of a batch
        (at(b=1), at(a=9, b=4), at(b=4), "", "a"),
        (at(a=5), at(), at(a=2), "a", ""),  # made again while nothing ran
        (at(a=5), at(a=2), at(a=3), "a", ""),  # made again, and the batch has its beginning
        (at(a=5), at(a=2), at(a=9), "a", ""),
        (at(a=5), at(a=9), at(a=2), "a", "a"),  # made again in the middle of a batch
        (at(a=5), at(a=9), at(a=7), "a", "a"),
        (at(), at(a=9), at(a=7), "", "a"),
    ],
)
def test_what_a_start_takes_out_of_the_checkpoint(
    done: Any, begun: Any, ends: Any, from_done: str, from_begun: str
) -> None:
    lost = lost_topics(done, begun, ends)
    assert lost.done == {f"{name}.chat" for name in from_done.split()}
    assert lost.begun == {f"{name}.chat" for name in from_begun.split()}
