"""What the gateway remembers of the quarantine: states, counts, and ids by what is asked."""

from __future__ import annotations

import pytest

from mainstem.gateway import quarantine_index
from mainstem.gateway.quarantine_index import Kind, QuarantineIndex, Selection
from mainstem.log.quarantine import Quarantined
from mainstem.log.settle import State
from mainstem.vocabulary import Record

HELD, REPLAYED, DISCARDED = State.HELD, State.REPLAYED, State.DISCARDED


def entry(id: int, reader: str = "orders", cause: str = "not JSON: char 1", stage: str = "decode"):
    origin = Record(reader, 0, id, b"k", b"v", 0)
    return Quarantined(id, origin, reader, stage, "RECORD_NOT_DECODED", cause, "")


@pytest.fixture
def index() -> QuarantineIndex:
    """Ids 10 to 15; 12 is the marker of a transaction."""
    made = QuarantineIndex(10)
    made.add(entry(10))
    made.add(entry(11, "clicks"))
    made.add(entry(13, cause="not JSON: char 27"))
    made.add(entry(14, cause='field "id" is not a bigint'))
    made.add(entry(15, "colours", stage="view"))
    return made


def newest(index: QuarantineIndex, state: State | None = HELD, **wanted: str) -> list[int]:
    return list(index.newest(Selection(**wanted), state, 0, index.end))


def test_newest_first_and_oldest_first(index: QuarantineIndex) -> None:
    assert newest(index) == [15, 14, 13, 11, 10]
    assert list(index.oldest(Selection(), HELD, 11, 15)) == [11, 13, 14]
    assert list(index.newest(Selection(), None, 0, 14)) == [13, 11, 10]
    assert list(index.oldest(Selection(), HELD, 16, 99)) == []


def test_what_is_asked_for(index: QuarantineIndex) -> None:
    assert newest(index, reader="ORDERS") == [14, 13, 10]
    assert newest(index, stage="view") == [15]
    assert newest(index, cause="record_not_decoded") == [15, 14, 13, 11, 10]
    assert newest(index, cause="NOT json: char 5", reader="orders") == [13, 10]
    assert newest(index, cause="nothing like it") == []


def test_states_and_counts(index: QuarantineIndex) -> None:
    index.settle(10, REPLAYED, 100)
    index.settle(13, DISCARDED, 101)
    assert newest(index) == [15, 14, 11]
    assert newest(index, REPLAYED) == [10]
    assert newest(index, None) == [15, 14, 13, 11, 10]
    assert index.state(10) == (REPLAYED, 100)
    assert index.state(11) == (HELD, -1)
    json = Kind("orders", "decode", "RECORD_NOT_DECODED", "not JSON: char #")
    assert index.counts()[json] == {HELD: 0, REPLAYED: 1, DISCARDED: 1}


def test_ids_that_are_no_records(index: QuarantineIndex) -> None:
    for id in (0, 9, 12, 16):
        assert index.state(id) is None
    index.settle(3, REPLAYED, 1)
    index.settle(12, REPLAYED, 1)
    assert index.state(12) is None
    assert sum(c[HELD] for c in index.counts().values()) == 5


def test_a_state_may_come_before_its_record(index: QuarantineIndex) -> None:
    index.settle(17, DISCARDED, 5)
    assert index.state(17) is None
    index.add(entry(17))
    assert index.state(17) == (DISCARDED, 5)
    index.add(entry(17))  # a record that is read again changes nothing
    assert newest(index, DISCARDED) == [17]


def test_causes_are_counted_together_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quarantine_index, "_MOST_KINDS", 2)
    index = QuarantineIndex(0)
    for id, cause in enumerate(("a", "b", "c", "d", "a")):
        index.add(entry(id, cause=cause))
    held = {kind.cause: count[HELD] for kind, count in index.counts().items()}
    assert held == {"a": 2, "b": 1, "(other causes)": 2}
    # what is counted together is looked at one by one when it is read
    assert newest(index, cause="c") == [3, 2]
    wanted = Selection(cause="c")
    assert [wanted.takes(entry(id, cause=cause)) for id, cause in ((2, "c"), (3, "d"))] == [
        True, False,
    ]  # fmt: skip


def test_many_records_are_searched_in_parts() -> None:
    index = QuarantineIndex(0)
    for id in range(2500):
        index.add(entry(id))
    assert newest(index) == list(range(2499, -1, -1))


def test_what_several_count_for_a_stream_is_added_up() -> None:
    index = QuarantineIndex(0)
    index.count_rules("good|good.1", {"few": 2, "check": 1})
    index.count_rules("good|good.2", {"few": 1})
    index.count_rules("good|good.2", {"few": 5})
    index.count_rules("goods", {"few": 9})
    assert index.broken("good") == {"few": 7, "check": 1}
    assert index.broken("other") == {}


def test_only_what_one_flow_has_counted() -> None:
    index = QuarantineIndex(0)
    index.count_rules("t|t.1", {"few": 2})
    index.count_rules("t|t.2", {"few": 1})
    index.count_rules("t|t.2|late", {"few": 4})
    assert index.broken("t", "t.2") == {"few": 5}
