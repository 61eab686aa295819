"""Every golden case of this folder, on the real broker and the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainstem.testing.cases import Case, load_cases, run_case
from mainstem.testing.driver import Driver


@pytest.mark.parametrize("case", list(load_cases(Path(__file__).parent)), ids=str)
def test_case(case: Case, driver: Driver) -> None:
    run_case(case, driver)
