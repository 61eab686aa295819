"""Rows as targets are given them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.targets.target import GONE, ID, OFFSET, PARTITION, ROW, TIME, TOPIC, Part

NOON = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


@pytest.fixture
def part() -> Callable[..., Part]:
    """Makes a part of a batch of the sink `out` over the topics `t` and `u`."""

    def make(**changes: Any) -> Part:
        given = {"recovering": False, "topics": {"t": "AbCdEfGhIj", "u": "other-id"}, **changes}
        return Part("out", "out.1", "all", 0, "e", "r", **given)

    return make


@pytest.fixture
def batch() -> Callable[..., pa.Table]:
    """Makes rows whose id is their offset; a negative one is the deletion at that offset."""

    def make(*offsets: int, topic: str = "t", at: datetime | None = NOON) -> pa.Table:
        places = [abs(offset) for offset in offsets]
        names = [None if o < 0 else f"n{o}" for o in offsets]
        rows = [None if n is None else f'{{"id":{n[1:]},"name":"{n}"}}' for n in names]
        return pa.table(
            {
                "id": pa.array(places, pa.int32()),
                "name": pa.array(names, pa.string()),
                ROW: pa.array(rows, pa.string()),
                TOPIC: [topic] * len(places),
                PARTITION: [0] * len(places),
                OFFSET: places,
                TIME: pa.array([at] * len(places), pa.timestamp("us", "UTC")),
                GONE: [o < 0 for o in offsets],
                ID: [f'{{"id":{o}}}' for o in places],
            }
        )

    return make
