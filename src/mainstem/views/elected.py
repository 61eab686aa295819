"""Which views this process writes: each view has one writer, and writers share the views.

A writer holds an advisory lock for each of its views through the very session that it writes with,
so a writer that lost a lock has lost its connection too: rows are never written by two. A shared
lock makes it known to the others. Each takes as many views as its share is, and gives back what is
more. When a process dies, PostgreSQL ends its session, and the others' shares grow.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainstem.views.store import Connection

MEMBERS = 7_236_457_001
"""Lock that every writer of a database shares."""
_PATIENCE_SECONDS = 3.0
"""A view without a writer for so long is taken beyond the share: who should have it, hangs."""
_KEPT_SECONDS = 60.0
_BITS = 64

_HELD = """
SELECT (classid::bigint << 32) | objid::bigint, count(*) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY 1
"""


class Elected:
    """The locks of one session; used by the thread that writes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mine: set[str] = set()
        self._free_since: dict[str, float] = {}
        self._kept_until: dict[str, float] = {}

    def join(self) -> bool:
        """Become one of the writers; False: one that shares with nobody is at work."""
        return self._ask("SELECT pg_try_advisory_lock_shared($1)", MEMBERS)

    def choose(self, views: Collection[str]) -> frozenset[str]:
        """Those of the views that this process writes from now on."""
        held: dict[int, int] = dict(self._connection.execute(_HELD).fetchall())
        members = max(1, held.get(MEMBERS, 1))
        share, now = -(-len(views) // members), time.monotonic()
        for name in self._mine - set(views):
            self.release(name)
        for name in self._beyond(share, now):
            self.release(name)
        for name in sorted(set(views) - self._mine):
            if key_of(name) in held:
                self._free_since.pop(name, None)
            elif len(self._mine) < share:
                self.take(name)
            elif now - self._free_since.setdefault(name, now) > _PATIENCE_SECONDS and self.take(
                name
            ):
                self._kept_until[name] = now + _KEPT_SECONDS
        return frozenset(self._mine)

    def take(self, name: str) -> bool:
        """Become the writer of a view; False when another is."""
        if name not in self._mine and self._ask("SELECT pg_try_advisory_lock($1)", key_of(name)):
            self._mine.add(name)
            self._free_since.pop(name, None)
        return name in self._mine

    def release(self, name: str) -> None:
        """Leave a view to others."""
        if name in self._mine:
            self._ask("SELECT pg_advisory_unlock($1)", key_of(name))
            self._mine.discard(name)
            self._kept_until.pop(name, None)

    def _beyond(self, share: int, now: float) -> Sequence[str]:
        """What is more than the share, and may go."""
        free = [n for n in sorted(self._mine) if self._kept_until.get(n, 0.0) <= now]
        return free[: max(0, len(free) - share)]

    def _ask(self, sql: str, key: int) -> bool:
        row = self._connection.execute(sql, [key]).fetchone()
        return bool(row and row[0])


def key_of(view: str) -> int:
    """The number of a view's lock."""
    digest = hashlib.sha256(f"mainstem view {view}".encode()).digest()
    return int.from_bytes(digest[: _BITS // 8], signed=True)
