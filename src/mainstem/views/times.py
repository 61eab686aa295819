"""Times as the platform writes them: ISO-8601 in UTC, with `Z`."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_utc(seconds: float) -> str:
    """Seconds since the epoch as text, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
