"""Records into the quarantine and back, and what is written when they are replayed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.log.producer import Outgoing
from mainstem.log.quarantine import Quarantined, quarantined, read_quarantined
from mainstem.log.settle import (
    REPLAY_HEADER,
    Settlement,
    State,
    _records,
    read_state,
    replay_of,
)
from mainstem.vocabulary import Record

ORIGIN = Record("orders", 2, 41, b"k", b"\xff bad", 1_700_000_000_000, (("trace", b"\x01"),))


def kept(origin: Record = ORIGIN, id: int = 7, cause: str = "not JSON") -> Quarantined:
    sent = quarantined(
        origin, stage="decode", reader="orders", code="RECORD_NOT_DECODED", cause=cause, at=0.0
    )
    return read_quarantined(Record("q", 0, id, sent.key, sent.value, 5, sent.headers))


def test_a_record_comes_back_whole() -> None:
    entry = kept()
    assert entry.origin == ORIGIN
    assert (entry.id, entry.reader, entry.stage) == (7, "orders", "decode")
    assert (entry.code, entry.cause) == ("RECORD_NOT_DECODED", "not JSON")
    assert entry.at.startswith("1970-01-01T00:00:00")
    assert entry.place == "orders/2/41"


def test_headers_that_would_not_fit_are_told_of() -> None:
    entry = kept(replace(ORIGIN, headers=(("large", b"x" * 10_000),)))
    assert entry.origin.headers == ()
    assert "headers" in entry.cause and "not kept" in entry.cause


def test_a_strange_record_of_the_topic_can_be_shown() -> None:
    entry = read_quarantined(Record("q", 0, 3, None, b"v", 9, (("offset", b"many"),)))
    assert (entry.id, entry.reader, entry.origin.offset) == (3, "?", -1)


def test_a_replayed_record_keeps_key_time_headers_and_partition() -> None:
    made = replay_of(kept(), b"k", b"{}", partitions=3)
    assert made.record == Outgoing(
        b"k",
        b"{}",
        partition=2,
        timestamp=ORIGIN.timestamp,
        headers=(("trace", b"\x01"), (REPLAY_HEADER, b"orders/2/41")),
    )
    assert made.changed and made.state is State.REPLAYED
    assert not replay_of(kept(), ORIGIN.key, ORIGIN.value, partitions=3).changed


@pytest.mark.parametrize(("key", "partitions"), [(b"other", 3), (b"k", 2)])
def test_the_key_chooses_when_the_partition_cannot_be_the_same(key: bytes, partitions: int) -> None:
    record = replay_of(kept(), key, b"{}", partitions).record
    assert record is not None and record.partition is None


def test_records_are_written_in_the_order_of_their_offsets_and_once() -> None:
    def entry(id: int, offset: int, reader: str) -> Settlement:
        made = replace(kept(replace(ORIGIN, offset=offset), id), reader=reader)
        return replay_of(made, b"k", b"%d" % offset, partitions=3)

    settlements = [entry(1, 9, "a"), entry(2, 3, "a"), entry(3, 9, "a_view"), entry(4, 5, "a")]
    written = [(topic, record.value) for topic, record in _records(settlements)]
    assert written == [("orders", b"3"), ("orders", b"5"), ("orders", b"9")]
    assert _records([Settlement(kept(), State.DISCARDED)]) == []


def test_only_states_are_read_as_states() -> None:
    def record(key: bytes | None, value: bytes | None) -> Record:
        return Record("s", 0, 0, key, value, 0)

    assert read_state(record(b"7", b'{"state": "replayed"}')) == (7, {"state": "replayed"})
    for key, value in (
        (b"x", b'{"state": "replayed"}'),
        (b"7", b'{"state": "lost"}'),
        (b"7", None),
        (None, b'{"state": "held"}'),
        (b"7", b"[]"),
    ):
        assert read_state(record(key, value)) is None
