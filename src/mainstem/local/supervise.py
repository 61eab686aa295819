"""Keeping one part of the stack alive: start, look, restart with back-off, stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mainstem.errors import MainstemError
from mainstem.local.part import Part
from mainstem.local.process import Child

LOOK_EVERY = 2.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
UNRESPONSIVE_AFTER = 60.0
"""A server that lives but has not answered for so long is started anew."""
_STEADY_AFTER = 60.0
"""A server that ran for so long starts again with the shortest pause."""
_TICK = 0.1

Kind = Literal[
    "waiting", "starting", "ready", "died", "unresponsive", "restarting", "stopped",
    "disk_low", "disk_ok",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the stack, for a person or a log to read."""

    part: str
    kind: Kind
    detail: str = ""


Listener = Callable[[Event], None]


class Supervised:
    """One part and the thread that looks after it.

    `start` blocks until the part is ready. From then on a thread restarts it whenever it dies,
    until `stop`. The listener is called from that thread.
    """

    def __init__(self, part: Part, keep: Sequence[int], listener: Listener) -> None:
        self.part = part
        self.restarts = 0
        self._keep = keep
        self._listener = listener
        self._child: Child | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the server, while one runs."""
        child = self._child
        return child.pid if child is not None and child.alive else None

    def start(self) -> None:
        """Start, wait until ready, then keep it so; PROCESS_FAILED when it does not get there."""
        self._tell("starting")
        self._child = self._launch()
        try:
            self._await_ready(self._child)
        except MainstemError:
            self._child.stop()
            raise
        if self._stopping.is_set():
            return
        self._tell("ready")
        self._thread = threading.Thread(
            target=self._look_after, name=f"look-after-{self.part.name}", daemon=True
        )
        self._thread.start()

    def give_up(self) -> None:
        """Let a `start` in another thread return early; `stop` must follow."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop the part in order and wait until nothing of it is left."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        child = self._child
        if child is not None:
            child.stop()
            self._tell("stopped")
        self.part.close()

    def _launch(self) -> Child:
        return Child.start(self.part.prepare(), keep=self._keep)

    def _await_ready(self, child: Child) -> None:
        deadline = time.monotonic() + self.part.start_timeout
        while not self._stopping.is_set():
            if (code := child.exit_code()) is not None:
                raise self._failed(child, f"it ended with exit code {code}")
            if self.part.ready():
                return
            if time.monotonic() > deadline:
                raise self._failed(child, f"not ready after {self.part.start_timeout:.0f} s")
            self._stopping.wait(_TICK)

    def _failed(self, child: Child, problem: str) -> MainstemError:
        words = child.last_words()
        return MainstemError(
            "PROCESS_FAILED",
            process=self.part.name,
            problem=f"{problem}: {words}" if words else problem,
            log=str(child.command.log),
        )

    def _look_after(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            started = time.monotonic()
            if not self._watch_until_down():
                return
            if time.monotonic() - started > _STEADY_AFTER:
                pause = FIRST_PAUSE
            while not self._stopping.is_set():
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                if self._restart():
                    break

    def _watch_until_down(self) -> bool:
        """True when the part is down, False when the stack stops."""
        child = self._child
        assert child is not None
        last_good = last_look = time.monotonic()
        while not self._stopping.wait(_TICK):
            if (code := child.exit_code()) is not None:
                self._tell("died", f"exit code {code}")
                return True
            now = time.monotonic()
            if now - last_look < LOOK_EVERY:
                continue
            if self.part.answers():
                last_good = time.monotonic()
            elif now - last_good > UNRESPONSIVE_AFTER:
                self._tell("unresponsive", f"no answer for {now - last_good:.0f} s")
                child.stop()
                return True
            last_look = time.monotonic()
        return False

    def _restart(self) -> bool:
        """One try; False when another is needed."""
        if self._stopping.is_set():
            return True
        self.restarts += 1
        self._tell("restarting", f"restart {self.restarts}")
        try:
            child = self._child = self._launch()
            self._await_ready(child)
        except (MainstemError, OSError) as error:  # OSError: no room for its settings, say
            if self._child is not None:
                self._child.stop()
            self._tell("died", str(error))
            return False
        if not self._stopping.is_set():
            self._tell("ready")
        return True

    def _tell(self, kind: Kind, detail: str = "") -> None:
        self._listener(Event(self.part.name, kind, detail))
