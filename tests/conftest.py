"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

import signal
from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["mainstem.testing.fixtures"]

# some tests end things by Ctrl-C, which a shell switches off for what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)


class _ByServers(LoadScopeScheduling):
    """Tests that share servers stay together in one of the processes that `make test` runs."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        match PurePosixPath(file).parts:
            case ("tests", "cases", *_):
                return test.partition(":")[0]  # a file of cases
            case ("tests", "unit", *_):
                return file
        return str(PurePosixPath(file).parent)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByServers(config, log)
