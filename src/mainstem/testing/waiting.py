"""Waiting for a condition with a deadline: the only way a test may wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    condition: Callable[[], T], seconds: float = 120.0, *, every: float = 0.05, what: str = ""
) -> T:
    """The first true answer of `condition`; fails with its last answer when time is up."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            message = f"not within {seconds} s: {what or condition}; last answer: {answer!r}"
            raise AssertionError(message)
        time.sleep(every)
