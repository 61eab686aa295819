"""Which tables a source captures, by what `tables` says."""

from __future__ import annotations

import pytest

from mainstem.connect.chosen_tables import captured_column, check_table_name, chosen_tables
from mainstem.errors import MainstemError

KNOWN = {"public.orders": 1, "public.order_items": 2, "sales.orders": 3, "sales.people": 4}


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (["orders"], [1]),
        (["sales.orders", "orders"], [3, 1]),
        (["order*"], [1, 2]),
        (["*.orders", "sales.*"], [1, 3, 4]),
    ],
)
def test_names_and_patterns(written: list[str], wanted: list[int]) -> None:
    assert chosen_tables(KNOWN, written, "public", "there") == wanted


def test_one_that_is_not_there() -> None:
    seen: list[str] = []
    for written in ("oders", "x.*"):
        with pytest.raises(MainstemError) as caught:
            chosen_tables(KNOWN, [written], "public", "there", seen.append)
        assert (caught.value.code, caught.value.params["table"]) == (
            "SOURCE_TABLE_UNKNOWN",
            written,
        )
    assert seen == ["public.oders"], "nobody can say why a pattern matches nothing"


def test_what_cannot_be_captured() -> None:
    check_table_name("public", "order-items_2")
    with pytest.raises(MainstemError) as caught:
        check_table_name("public", "order items")
    assert caught.value.code == "INVALID_NAME"
    assert captured_column("t", "id", "bigint", "").type == "bigint"
    for name, kind in (("point", None), ("_offset", "bigint")):
        with pytest.raises(MainstemError) as caught:
            captured_column("t", name, kind, "has no type")
        assert caught.value.code == "SOURCE_COLUMN"
