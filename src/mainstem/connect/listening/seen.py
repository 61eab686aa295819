"""Ids of requests that the log has already, for a while: who tries again changes nothing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

MOST_IDS = 1_000_000


class Seen:
    """Threads share it. `turn` keeps two requests of one id from being written side by side."""

    def __init__(self, seconds: float, most: int = MOST_IDS) -> None:
        self.seconds = seconds
        self._most = most
        self._when: OrderedDict[str, float] = OrderedDict()
        self._writing: set[str] = set()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._when)

    @contextmanager
    def turn(self, id: str, now: float) -> Iterator[bool]:
        """Whether the id is known; meanwhile nobody else has its turn with the same."""
        with self._changed:
            self._changed.wait_for(lambda: id not in self._writing)
            self._forget(now)
            known = id in self._when
            self._writing.add(id)
        try:
            yield known
        finally:
            with self._changed:
                self._writing.discard(id)
                self._changed.notify_all()

    def add(self, id: str, at: float) -> None:
        """The log has it."""
        with self._changed:
            self._when[id] = at
            self._when.move_to_end(id)

    def _forget(self, now: float) -> None:
        while self._when:
            id, at = next(iter(self._when.items()))
            if len(self._when) <= self._most and now - at <= self.seconds:
                return
            del self._when[id]
