"""Receipts: what was written, as text and back."""

from __future__ import annotations

import pytest

from mainstem.receipts import merge_receipts, read_receipt, write_receipt


def test_there_and_back() -> None:
    receipt = {"shop.orders": {0: 41, 12: 7}, "odd;na:me": {1: 2}}
    assert read_receipt(write_receipt(receipt)) == receipt
    assert write_receipt({"shop.orders": {2: 7, 0: 41}}) == "shop.orders:0=41,2=7"


def test_several_receipts_are_one() -> None:
    merged = merge_receipts([{"a": {0: 1, 1: 9}}, {"b": {0: 5}}, {"a": {0: 3, 1: 2}}])
    assert merged == {"a": {0: 3, 1: 9}, "b": {0: 5}}
    assert read_receipt("a:0=1; a:0=3") == {"a": {0: 3}}


@pytest.mark.parametrize(
    "text",
    ["orders", "orders:", "orders:0", "orders:0=", "orders:x=1", "orders:0=1,", "a:0=1;b", "a:0=-1",
     "a:0=" + "9" * 30],
)  # fmt: skip
def test_what_is_no_receipt(text: str) -> None:
    with pytest.raises(ValueError):
        read_receipt(text)
