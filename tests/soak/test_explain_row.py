"""EXPLAIN ROW for every golden case with a table: the named events give the row, fewer do not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mainstem.testing.cases import Case, load_cases
from mainstem.testing.driver import Driver
from mainstem.testing.explained import can_be_held, hold

pytestmark = pytest.mark.spark

CASES = [case for case in load_cases(Path(__file__).parents[1] / "cases") if can_be_held(case)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, driver: Driver, seed: int) -> None:
    print(f"MAINSTEM_SEED={seed}")
    held = hold(case, driver, random.Random(f"{seed} {case}"))
    print(held)
    assert held
