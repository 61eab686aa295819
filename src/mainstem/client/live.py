"""A table in a notebook that changes as its rows do.

A thread follows the subscription and keeps the rows; another one draws them when they have changed,
four times a second at most, however fast they change.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from mainstem.client import html
from mainstem.client.answer import package
from mainstem.client.wire import as_text
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.client.clients import Client

DRAW_SECONDS = 0.25


class Live:
    """The table; `stop()` ends it. What is wrong with the query is raised at once, later errors
    are drawn below the rows.
    """

    def __init__(self, client: Client, sql: str, most: int) -> None:
        display: Any = package("IPython.display", "live()")
        self._html = display.HTML
        self._client, self._sql, self._most = client, sql, most
        self._lock = threading.Lock()
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._names: list[str] = []
        self._by_key: dict[str, dict[str, Any]] = {}
        self._last: deque[dict[str, Any]] = deque(maxlen=most)
        self._note, self._changes = "", 0
        self._events = client.subscribe(sql, on_slow="sample", on_retry=self._retrying)
        self._take(next(self._events))
        self._handle = display.display(self._html(self._drawn()), display_id=True)
        if self._handle is None:
            self._events.close()
            client.close()
            raise MainstemError(
                "NOT_SUPPORTED",
                what="live()",
                where="a program without IPython's shell",
                advice="Use it in a notebook; elsewhere go through subscribe().",
            )
        for work in (self._follow, self._draw):
            threading.Thread(target=work, name="mainstem-live", daemon=True).start()

    def stop(self) -> None:
        """End it; the table stays as it is.

        The connection is given back with the next sign of the gateway, within five seconds.
        """
        self._stopped.set()
        self._changed.set()

    def rows(self) -> list[dict[str, Any]]:
        """The rows as they are now."""
        with self._lock:
            return list(self._by_key.values()) or list(self._last)

    def _follow(self) -> None:
        try:
            for event in self._events:
                if self._stopped.is_set():
                    return
                self._take(event)
        except MainstemError as error:
            self._tell(f"{error.code}: {error.message}")
        finally:
            self._events.close()
            self._client.close()
            self.stop()

    def _draw(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            ended = self._stopped.is_set()  # before it draws, so that the last rows are drawn
            self._handle.update(self._html(self._drawn()))
            if ended:
                return
            self._stopped.wait(DRAW_SECONDS)

    def _take(self, event: Any) -> None:
        with self._lock:
            match event.kind:
                case "columns":
                    self._names = [column["name"] for column in event.data]
                case "snapshot":
                    self._by_key.clear()
                case "upsert":
                    self._by_key[as_text(event.data["key"])] = event.row
                case "delete":
                    self._by_key.pop(as_text(event.data["key"]), None)
                case "append":
                    self._last.append(event.row)
                case _:
                    return
            self._changes += event.kind in ("upsert", "delete", "append")
            self._note = ""
        self._changed.set()

    def _retrying(self, error: MainstemError) -> None:
        self._tell(f"{error.code}: trying again")

    def _tell(self, note: str) -> None:
        with self._lock:
            self._note = note
        self._changed.set()

    def _drawn(self) -> str:
        with self._lock:
            rows = self._last if self._last else islice(self._by_key.values(), self._most)
            shown = [[row.get(name) for name in self._names] for row in rows]
            count = len(self._last) or len(self._by_key)
            state = "stopped" if self._stopped.is_set() else "live"
            note = f"{state}; {count} rows, {self._changes} changes"
            return html.table(self._names, shown, f"{note}; {self._note}" if self._note else note)
