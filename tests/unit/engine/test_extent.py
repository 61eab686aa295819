"""The part of a log that bounds leave to be read: never less than what meets them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from mainstem.definitions.bounds import Bound, Mention, Side
from mainstem.engine.extent import Extent, narrowed
from mainstem.vocabulary import Offsets

Log = Mapping[int, Sequence[int]]
"""Partition -> the time of each record, in the order of the offsets."""
FIRST = 100
"""Offset of the first record: older ones are gone."""


def read(log: Log, *mentions: Mention) -> Extent:
    begin = {"t": dict.fromkeys(log, FIRST)}
    end = {"t": {p: FIRST + len(times) for p, times in log.items()}}

    def first_at(milliseconds: int) -> dict[str, Offsets]:
        assert milliseconds > 0
        found = {}
        for p, times in log.items():
            later = (i for i, time in enumerate(times) if time >= milliseconds)
            found[p] = FIRST + next(later, len(times))
        return {"t": found}

    return narrowed(begin, end, mentions, lambda bound: number(bound.constant), first_at)


def number(text: str) -> int | None:
    return None if text == "?" else int(text)


def bound(text: str) -> Bound:
    column, side, constant = text.split()
    return Bound(column, Side(side), constant)


def spans(extent: Extent) -> dict[int, tuple[int, int]]:
    return {p: (start, extent.end["t"][p]) for p, start in extent.start["t"].items()}


TWO: Log = {0: [10, 20, 30], 1: [15, 40]}


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (["_offset >= 101"], {0: (101, 103), 1: (101, 102)}),
        (["_offset > 101", "_offset <= 102"], {0: (102, 103), 1: (102, 102)}),
        (["_offset = 100"], {0: (100, 101), 1: (100, 101)}),
        (["_offset < 102", "_partition = 0"], {0: (100, 102), 1: (102, 102)}),
        (["_partition > 0"], {0: (103, 103), 1: (100, 102)}),
        (["_offset >= 5"], {0: (100, 103), 1: (100, 102)}),
        (["_offset >= 500"], {0: (103, 103), 1: (102, 102)}),
        (["_timestamp >= 20"], {0: (101, 103), 1: (101, 102)}),
        (["_timestamp >= 99"], {0: (103, 103), 1: (102, 102)}),
        (["_timestamp < 20"], {0: (100, 103), 1: (100, 102)}),
        (["_timestamp >= -5"], {0: (100, 103), 1: (100, 102)}),
        (["_offset >= ?"], {0: (100, 103), 1: (100, 102)}),
    ],
)
def test_bounds_become_offsets(bounds: list[str], expected: dict[int, tuple[int, int]]) -> None:
    extent = read(TWO, tuple(map(bound, bounds)))
    assert spans(extent) == expected
    assert extent.of == 5
    assert extent.records == sum(end - start for start, end in expected.values())


def test_a_stream_that_is_mentioned_twice_is_read_for_both() -> None:
    extent = read(TWO, (bound("_offset = 100"),), (bound("_offset > 101"),))
    assert spans(extent) == {0: (100, 103), 1: (100, 101)}


def test_without_bounds_all_is_read() -> None:
    extent = read(TWO)
    assert (extent.records, extent.of) == (5, 5)


def test_a_time_rounded_down_keeps_what_is_above_it() -> None:
    # TIMESTAMP '... .0205': a record of 20 ms is not above it, but one of 20 ms may be above 20.0
    assert spans(read({0: [10, 20, 21]}, (bound("_timestamp > 20"),))) == {0: (101, 103)}


@pytest.mark.parametrize("seed", range(200))
def test_nothing_that_meets_the_bounds_is_left_out(seed: int) -> None:
    """Times in any order, equal ones and none (-1) among them."""
    choose = random.Random(seed)
    log = {
        p: [choose.choice((-1, 5, 10, 20, 20, 30, 40)) for _ in range(choose.randrange(12))]
        for p in range(3)
    }

    def one() -> Bound:
        column = choose.choice(("_timestamp", "_offset", "_partition"))
        value = {"_timestamp": (-1, 5, 20, 31), "_offset": (99, 100, 104), "_partition": (0, 1, 5)}
        return Bound(column, choose.choice(list(Side)), str(choose.choice(value[column])))

    mentions = [tuple(one() for _ in range(choose.randint(1, 3))) for _ in range(2)]
    extent = read(log, *mentions)
    for partition, times in log.items():
        for offset, time in enumerate(times, FIRST):
            record = {"_timestamp": time, "_offset": offset, "_partition": partition}
            if any(all(_meets(record, b) for b in mention) for mention in mentions):
                start, end = spans(extent)[partition]
                assert start <= offset < end, (mentions, record)


def _meets(record: Mapping[str, int], bound: Bound) -> bool:
    actual, value = record[bound.column], int(bound.constant)
    match bound.side:
        case Side.LEAST:
            return actual >= value
        case Side.ABOVE:
            return actual > value
        case Side.MOST:
            return actual <= value
        case Side.BELOW:
            return actual < value
        case Side.EQUAL:
            return actual == value
