"""What a stateful function is given beside the event: the state of one key, and its timer.

Both are plain objects, so that a test or a notebook can make them and call the function.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class State(Generic[T]):
    """What is kept for one key from one call to the next."""

    __slots__ = ("key", "value")

    def __init__(self, value: T | None = None, key: Any = None) -> None:
        self.value = value
        """None when nothing is kept; set it to None, or call `clear`, to forget the key."""
        self.key = key
        """The key's value; a tuple when the key has several columns."""

    def clear(self) -> None:
        """Forget what is kept."""
        self.value = None


class Timer:
    """The one timer of a key. When its time comes, the function is called with None for the event.

    It has stopped by then; the call may set it again.
    """

    __slots__ = ("_at", "now")

    def __init__(self, now: datetime | None = None, at: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)
        """What time it is: of the events seen so far, or by the wall clock, as was chosen."""
        self._at = at

    @property
    def at(self) -> datetime | None:
        """When it will ring; None: never."""
        return self._at

    def set(self, at: datetime) -> None:
        """Ring at this time, and at no other; a time without a zone is taken as UTC."""
        self._at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    def clear(self) -> None:
        """Do not ring."""
        self._at = None
