"""Where the reader of a binary log is, and whether what it has not read yet is still there.

The server knows nothing of who reads its log, and removes old files by their age: so the position
that Kafka Connect keeps is compared with the files that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainstem.connect.carrier import Offsets
from mainstem.connect.mysql_connection import connected


@dataclass(frozen=True, slots=True)
class LogState:
    """What the server has of its binary log, from where a source goes on."""

    confirmed: str | None = None
    """Up to where changes are in the log of Mainstem: file and position."""
    held_bytes: int = 0
    """How much there is behind it."""
    gone: str | None = None
    """The file in which reading would go on, when the server does not have it any more."""

    @property
    def problem(self) -> str | None:
        """What is wrong with it, in words; None: nothing."""
        if self.gone is None:
            return None
        return (
            f'the binary log "{self.gone}" is gone before it was read: changes in it are lost '
            "(binlog_expire_logs_seconds, expire_logs_days)"
        )


def log_state(name: str, options: Mapping[str, Any], offsets: Offsets) -> LogState:
    """The state of a source's position now; without a position nothing can be missing."""
    at = next((o["offset"] for o in offsets() if (o.get("offset") or {}).get("file")), None)
    if at is None:
        return LogState()
    with connected(options) as server:
        files = server.rows("SHOW BINARY LOGS")
    sizes = {str(row["log_name"]): int(row["file_size"]) for row in files}
    file, position = str(at["file"]), int(at.get("pos") or 0)
    if file not in sizes:
        return LogState(f"{file}:{position}", gone=file)
    names = list(sizes)
    behind = sum(sizes[later] for later in names[names.index(file) :]) - position
    return LogState(f"{file}:{position}", max(0, behind))


def nothing_left(name: str, options: Mapping[str, Any]) -> None:
    """A reader of the binary log leaves nothing behind."""
