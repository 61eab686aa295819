"""What the disasters cost, in the last lines of the run."""

from __future__ import annotations

import pytest
from tests.faults.flows import FULL

# parts of `make soak`; `make test` has a look at the same steps in tests/system
collect_ignore = (
    [] if FULL else ["test_backfills.py", "test_growing.py", "test_lakes.py", "test_more_flows.py"]
)
LINES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def summary(pytestconfig: pytest.Config) -> list[str]:
    """Lines to show when all tests are done."""
    return pytestconfig.stash.setdefault(LINES, [])


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    lines = config.stash.get(LINES, [])
    if lines:
        terminalreporter.section("faults")
        for line in lines:
            terminalreporter.write_line(line)
