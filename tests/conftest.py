"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

import gc
import signal
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

pytest_plugins = ["mainstem.testing.fixtures"]

# some tests end things by Ctrl-C, which a shell switches off for what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)

# these have no Spark in the process of the tests, and wait for other processes most of the time
_PATIENT = {
    f"tests/system/{name}"
    for name in ("examples", "gateway", "local", "log", "schemas", "stack", "views")
} | {"tests/system"}


class _ByServers(LoadScopeScheduling):
    """Tests that share servers stay together in one of the processes that `make test` runs.

    There is one process more than cores: the first one takes what mostly waits, so that it finds
    the cores busy with the work of the others, and never without.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        match PurePosixPath(file).parts:
            case ("tests", "cases", *_):
                return test.partition(":")[0]  # a file of cases
            case ("tests", "unit", *_):
                return file
        return str(PurePosixPath(file).parent)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.numnodes > 2:
            first = node.gateway.id == "gw0"
            # of several with the same turn, the one that was collected first
            chosen = min(self.workqueue, key=_turn_in_the_first if first else _turn)
            self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def _turn(scope: str) -> int:
    """What is left at the end is small: unit tests."""
    return 2 if scope.startswith("tests/unit/") else int(scope in _PATIENT)


def _turn_in_the_first(scope: str) -> int:
    """It would have to start Spark for what is left when all others have had their turn."""
    return 0 if scope in _PATIENT else 1 if scope.startswith("tests/unit/") else 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is made here, modules and thousands of tests, stays: nobody need look through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Libraries complain of what is left when the process ends."""
    gc.unfreeze()


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByServers(config, log)
