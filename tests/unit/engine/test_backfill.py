"""How a rate becomes the size of batches and the time between them."""

from __future__ import annotations

import pytest

from mainstem.engine.backfill import pace


@pytest.mark.parametrize(
    ("rate", "streams", "partitions", "expected"),
    [
        (None, 1, 4, (10_000, "0 seconds")),
        (5_000, 1, 4, (5_000, "1000 milliseconds")),
        (5_000, 2, 8, (2_500, "1000 milliseconds")),
        (50_000, 1, 4, (10_000, "200 milliseconds")),
        (2, 1, 8, (8, "4000 milliseconds")),
        (1, 2, 2, (1, "2000 milliseconds")),
    ],
)
def test_pace(rate: int | None, streams: int, partitions: int, expected: tuple[int, str]) -> None:
    assert pace(rate, 10_000, streams, partitions) == expected


@pytest.mark.parametrize("rate", [1, 3, 7, 100, 9_999, 10_001, 123_456])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_never_faster_than_asked_for(rate: int, streams: int) -> None:
    partitions = 4 * streams
    each, trigger = pace(rate, 10_000, streams, partitions)
    seconds = int(trigger.split()[0]) / 1000
    # each partition may give a record more than its share
    assert max(each * streams, partitions) <= rate * seconds * 1.01
