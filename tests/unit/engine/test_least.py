"""As few records as give a row."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mainstem.engine.least import least, same_row


def test_what_is_left_is_enough_and_none_can_be_missed() -> None:
    """For any set of needed ones, alone or one of two that stand for each other."""
    chance = random.Random(7)
    for _ in range(300):
        places = list(range(chance.randint(1, 40)))
        needed = set(chance.sample(places, chance.randint(0, min(6, len(places)))))
        either = set(chance.sample(places, min(2, len(places))))

        def gives(
            some: Sequence[int], needed: set[int] = needed, either: set[int] = either
        ) -> bool:
            return needed <= set(some) and bool(either & set(some))

        kept, done = least(places, gives, lambda: True)
        assert done
        assert gives(kept)
        assert not any(gives([p for p in kept if p != left_out]) for left_out in kept)
    all_needed = list(range(32))
    assert least(all_needed, lambda some: len(some) == 32, lambda: True) == (all_needed, True)


def test_without_time_it_says_so() -> None:
    assert least([1, 2, 3], lambda some: True, lambda: False) == ([1, 2, 3], False)


def test_rows_are_the_same_by_their_values() -> None:
    assert same_row('{"a":1,"b":[0.1]}', '{"b":[0.10000000000000001],"a":1}')
    assert same_row('{"x":0.30000000000000004}', '{"x":0.3}')
    assert not same_row('{"x":1}', '{"x":2}')
    assert not same_row('{"x":[1]}', '{"x":[1,1]}')
