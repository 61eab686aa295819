"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

import signal

import pytest

pytest_plugins = ["mainstem.testing.fixtures"]

# some tests end things by Ctrl-C, which a shell switches off for what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED = ("spark", "shop", "world", "servers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a server in one of the processes that `make test` runs."""
    for item in items:
        shared = next((name for name in _SHARED if name in getattr(item, "fixturenames", ())), None)
        if shared is not None:
            item.add_marker(pytest.mark.xdist_group(shared))
