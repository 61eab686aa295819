"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

import signal

import pytest

pytest_plugins = ["mainstem.testing.fixtures"]

# some tests end things by Ctrl-C, which a shell switches off for what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED = ("shop", "world", "servers", "connection")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a server in one of the two processes that `make test` runs.

    Those with Spark in their own process stay together by folder.
    """
    for item in items:
        used = getattr(item, "fixturenames", ())
        together = next((name for name in _SHARED if name in used), None)
        if "spark" in used:
            together = item.path.parent.name
        if together is not None:
            item.add_marker(pytest.mark.xdist_group(together))
