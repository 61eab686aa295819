"""Tests share the servers of `mainstem.testing.fixtures`; unit tests never start them."""

import signal

pytest_plugins = ["mainstem.testing.fixtures"]

# some tests end things by Ctrl-C, which a shell switches off for what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)
