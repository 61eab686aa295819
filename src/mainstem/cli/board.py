"""The parts of the stack while they start: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainstem.cli.context import Session
from mainstem.cli.output import colour_allowed

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from mainstem.local.supervise import Event

_MARKS = {"ready": "✓", "died": "✗", "unresponsive": "✗"}
_NEWS = ("waiting", "died", "unresponsive", "restarting", "disk_low", "disk_ok")
"""What is worth a line while the stack runs; `ready` only behind one of them."""


@dataclass
class _Part:
    state: str
    began: float
    seconds: float | None = None


class Board:
    """Takes the stack's events from any thread; `started` ends the table and begins the news."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts: dict[str, _Part] = {}
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._fancy = sys.stderr.isatty() and not session.options.quiet
        self._starting = True

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.started()

    def started(self) -> None:
        """All parts run, or the start was given up."""
        with self._lock:
            self._starting = False
            if self._live is not None:
                self._live.stop()
                self._live = None

    def take(self, event: Event) -> None:
        """One event of the stack."""
        with self._lock:
            part = self._parts.setdefault(event.part, _Part(event.kind, time.monotonic()))
            troubled = part.state not in ("starting", "ready")
            part.state = event.kind
            if event.kind == "ready" and part.seconds is None:
                part.seconds = time.monotonic() - part.began
            if self._starting and self._fancy and event.kind != "waiting":
                self._draw()
            elif self._starting:
                self._session.say(_line(event, part))
            elif event.kind in _NEWS or (event.kind == "ready" and troubled):
                self._session.warn(_line(event, None))

    def _draw(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            plain = not colour_allowed(sys.stderr, wanted=self._session.colour)
            # begun with the first part, because the download of jars has a bar of its own
            self._live = Live(
                console=Console(file=sys.stderr, no_color=plain),
                get_renderable=self._table,
                refresh_per_second=8,
            )
            self._live.start()
        self._live.refresh()

    def _table(self) -> Table:
        from rich.table import Table

        table = Table.grid(padding=(0, 1))
        for name, part in list(self._parts.items()):
            seconds = part.seconds or time.monotonic() - part.began
            table.add_row(_MARKS.get(part.state, "…"), name, part.state, f"{seconds:.1f} s")
        return table


def _line(event: Event, part: _Part | None) -> str:
    took = f" after {part.seconds:.1f} s" if part and part.seconds and event.kind == "ready" else ""
    detail = f": {event.detail}" if event.detail else ""
    return f"{event.part}: {event.kind.replace('_', ' ')}{took}{detail}"
