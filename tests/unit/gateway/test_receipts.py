"""Receipts: told from each other, remembered for a day, and the same when read back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.gateway.fake_log import MemoryLedger, MemoryLog

from mainstem.errors import MainstemError
from mainstem.gateway.receipts import REMEMBERED_SECONDS, Asked, Once, Receipt, found, remembered
from mainstem.log.delivery import Place
from mainstem.log.ledger import Decide
from mainstem.log.producer import Outgoing

PLACES = st.lists(
    st.builds(Place, st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 2**60)), min_size=1
)


class Clock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def now(self) -> float:
        return self.time


def asked(key: str = "k", body: bytes = b"body", scope: str = "s") -> Asked:
    made = Asked.of(scope, key, body)
    assert made is not None
    return made


@given(PLACES)
def test_a_receipt_is_read_as_it_was_written(places: list[Place]) -> None:
    clock, request = Clock(), asked()
    entries = remembered(request, Receipt(places, mark="m"), clock)
    again = found(lambda keys: {key: entries[key] for key in keys}, request, clock)
    assert again == Receipt(places, repeated=True, mark="m")


def test_a_thousand_places_take_little_room() -> None:
    places = [Place("orders", n % 3, 10**9 + n // 3) for n in range(1_000)]
    [kept] = remembered(asked(), Receipt(places), Clock()).values()
    assert len(kept.value or b"") < 500


def test_written_once_for_a_day() -> None:
    log, clock = MemoryLog("orders"), Clock()
    once = Once(cast(Any, log), cast(Any, MemoryLedger(log)), clock)
    records = [Outgoing(b"k", b"1"), Outgoing(b"k", b"2")]
    first = once.write("orders", records, asked())
    assert once.write("orders", records, asked()) == Receipt(first.places, True, first.mark)
    assert once.write("orders", records, asked(scope="other")).repeated is False
    with pytest.raises(MainstemError) as refused:
        once.write("orders", records, asked(body=b"another"))
    assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
    clock.time += REMEMBERED_SECONDS + 1
    assert once.write("orders", records, asked(body=b"another")).repeated is False
    assert once.write("orders", records, None).repeated is False
    assert len(log.topics_["orders"][1]) == 8


def test_a_request_whose_commit_went_through_knows_itself() -> None:
    """The ledger decides again when it was fenced: its own entry is no earlier request."""
    log = MemoryLog("orders")

    class Fenced(MemoryLedger):
        def write(self, key: bytes, decide: Decide) -> list[Place] | None:
            super().write(key, decide)  # committed, but nobody says so
            return super().write(key, decide)

    once = Once(cast(Any, log), cast(Any, Fenced(log)), Clock())
    receipt = once.write("orders", [Outgoing(b"k", b"1")], asked())
    assert receipt.repeated is False
    assert receipt.places == [Place("orders", 1, 0)]


@pytest.mark.parametrize("key", ["", " ", "ü", "x" * 256, "a\nb"])
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(MainstemError) as refused:
        Asked.of("s", key, b"")
    assert refused.value.code == "BAD_REQUEST"
