"""The thread of a source that tries until it is done, or told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mainstem.connect.listening.running import Told
from mainstem.errors import MainstemError

_RETRY_SECONDS = 1.0


class Trying:
    """One thread that calls `attempt` until that has nothing left to do.

    `attempt` looks at `stopping` whenever it can end. When it raises, the source says so; an error
    of ours is tried again a second later, any other ends the source.
    """

    def __init__(self, name: str, told: Told, attempt: Callable[[], None]) -> None:
        self.stopping = threading.Event()
        self._told = told
        self._attempt = attempt
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for that."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self.stopping.is_set():
                try:
                    return self._attempt()
                except MainstemError as error:
                    self._told.failed(error)
                    self.stopping.wait(_RETRY_SECONDS)
        except Exception:  # noqa: BLE001 - nobody waits for this thread
            self._told.ended()
