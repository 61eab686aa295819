"""Times in requests."""

from __future__ import annotations

from datetime import UTC, datetime

from mainstem.errors import MainstemError


def milliseconds(name: str, text: str) -> int:
    """An ISO 8601 time, in UTC unless it says otherwise, as milliseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{name}: a time such as 2026-11-15T09:00:00Z was expected, not {text[:40]}"
        raise MainstemError("BAD_REQUEST", problem=problem) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
