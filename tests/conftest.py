"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

pytest_plugins = ["mainstem.testing.fixtures"]
