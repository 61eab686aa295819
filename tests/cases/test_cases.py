"""Every golden case of this folder, on the real broker and the real engine.

The input of a case is cut into micro-batches at random places; MAINSTEM_SEED repeats a run.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mainstem.testing.cases import Case, load_cases, run_case
from mainstem.testing.driver import Driver


@pytest.mark.parametrize("case", list(load_cases(Path(__file__).parent)), ids=str)
def test_case(case: Case, driver: Driver, seed: int) -> None:
    print(f"MAINSTEM_SEED={seed}")
    run_case(case, driver, random.Random(f"{seed} {case}"))
