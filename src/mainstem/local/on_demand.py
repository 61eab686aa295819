"""The Connect worker of a stack, which runs only while the gateway asks for one.

It takes some hundred megabytes, and most projects have no source that needs it. So it starts when
the first such source is made, is started anew when another plugin is needed, and ends when the
gateway has nothing more for it to do: no source, and no connector that is still to be removed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path

from mainstem.connect.local_worker import WorkerWord, say_worker, wanted_plugins
from mainstem.connect.plugins import OF_PROJECT
from mainstem.errors import MainstemError
from mainstem.local.jars_lock import PLUGINS
from mainstem.local.part import Part
from mainstem.local.supervise import FIRST_PAUSE, LONGEST_PAUSE, Event, Listener, Supervised

_LOOK_SECONDS = 0.5

Make = Callable[[Sequence[str], threading.Event], Part]
"""Makes the worker with these plugins, of which it fetches what is missing; that may take long, and
ends with CancelledError when the event is set."""


class OnDemand(threading.Thread):
    """Looks what is wanted, until `close`. The listener is called from this thread, too."""

    def __init__(self, folder: Path, make: Make, keep: int, listener: Listener) -> None:
        super().__init__(name="connect-on-demand", daemon=True)
        self._folder = folder
        self._make = make
        self._keep = keep
        self._listener = listener
        self._stopping = threading.Event()
        self._plugins: frozenset[str] = frozenset()
        self._running: Supervised | None = None
        self._pause = FIRST_PAUSE
        self._not_before = 0.0

    @property
    def running(self) -> Supervised | None:
        """The worker and who looks after it, while one is wanted."""
        return self._running

    def close(self) -> None:
        """End the worker and this thread; harmless when neither runs."""
        self._stopping.set()
        running = self._running
        if running is not None:
            running.give_up()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Look, again and again."""
        say_worker(self._folder, WorkerWord())
        while not self._stopping.is_set():
            self._look()
            self._stopping.wait(_LOOK_SECONDS)
        self._end()

    def _look(self) -> None:
        wanted = wanted_plugins(self._folder)
        if wanted == self._plugins or time.monotonic() < self._not_before:
            return
        self._end()
        if not wanted:
            return
        try:
            self._begin(wanted)
        except CancelledError:
            return
        except (MainstemError, OSError) as error:
            self._end()
            say_worker(self._folder, WorkerWord("failed", str(error)))
            self._listener(Event("connect", "died", str(error)))
            self._not_before = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
        else:
            self._pause = FIRST_PAUSE

    def _begin(self, wanted: frozenset[str]) -> None:
        say_worker(self._folder, WorkerWord("fetching"))
        known = (name for name in (*PLUGINS, OF_PROJECT) if name in wanted)
        part = self._make([*known], self._stopping)
        say_worker(self._folder, WorkerWord("starting"))
        self._running = Supervised(part, [self._keep], self._listener)
        if self._stopping.is_set():
            self._running.give_up()
        self._running.start()
        self._plugins = wanted
        say_worker(self._folder, WorkerWord("ready"))

    def _end(self) -> None:
        running, self._running, self._plugins = self._running, None, frozenset()
        if running is not None:
            running.stop()
            say_worker(self._folder, WorkerWord())
