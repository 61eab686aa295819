"""Holds a flow between two of its batches, so that others can rely on what it has written."""

from __future__ import annotations

import threading


class Gate:
    """Every batch of one run of a flow passes it. Safe to use from several threads.

    A flow that is held has written whole batches only, and nobody writes for it any more: also no
    task of an earlier run, of which a crash may have left one behind. Such a task belongs to a
    batch that Spark has not noted as done, and that is the first one of this run: its tasks take
    over the transactional ids of the old ones. So a run is held behind its first batch, or, if
    there is none to be done again (`settled`), at any time.
    """

    def __init__(self, *, settled: bool) -> None:
        self._settled = settled
        self._inside = False
        self._held = False
        self._closed = False
        self._moved = threading.Condition()

    def enter(self) -> None:
        """Called before a batch is written; waits while the flow is held."""
        with self._moved:
            self._moved.wait_for(lambda: self._closed or not self._held)
            if self._closed:
                message = "the flow is being stopped"
                raise RuntimeError(message)
            self._inside = True

    def leave(self, *, whole: bool) -> None:
        """Called behind a batch; `whole` when all of it was written."""
        with self._moved:
            self._inside = False
            self._settled = whole

    def hold(self) -> bool:
        """Lets no further batch begin, and says whether none is on its way."""
        with self._moved:
            if not self._settled:
                return False
            self._held = True
            return not self._inside

    def release(self) -> None:
        """Lets batches begin again."""
        with self._moved:
            self._held = False
            self._moved.notify_all()

    def close(self) -> None:
        """Ends the wait of a batch that is held, without letting it through: the flow stops."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()
