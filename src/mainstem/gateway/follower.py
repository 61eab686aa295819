"""A thread of the gateway that looks again and again for something to take up."""

from __future__ import annotations

import logging
import threading

from mainstem.errors import MainstemError

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 2.0
_OVERTAKEN = ("STALE_PLAN", "CONCURRENT_APPLY")
_SERVER_ERROR = 500


class Follower:
    """What all such threads share; each has a `look` of its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End; safe to call twice, and before `start`. A look that waits for others is left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)

    def look(self) -> None:
        """Take up what is new. Called about every second, from the thread alone."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the next look must come
                _LOG.exception("looking for new %s failed; it goes on", self._what)


def overtaken(error: MainstemError) -> bool:
    """True when somebody else has written the catalog meanwhile: no fault of anybody."""
    return error.code in _OVERTAKEN


def may_pass(error: MainstemError) -> bool:
    """True when the next look may go better."""
    return error.status >= _SERVER_ERROR or overtaken(error)
