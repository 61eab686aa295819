"""What a stateful function is given beside the event: the state of one key, and its timers.

Both are plain objects, so that a test or a notebook can make them and call the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
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
    """The timers of a key: one without a name, and as many with names as the function sets.

    When the time of one comes, the function is called with None for the event. That timer has
    stopped by then; the call may set it again.
    """

    __slots__ = ("_times", "name", "now")

    def __init__(
        self,
        now: datetime | None = None,
        at: datetime | None = None,
        *,
        named: Mapping[str, datetime] | None = None,
        name: str | None = None,
    ) -> None:
        self.now = now or datetime.now(UTC)
        """What time it is: of the events seen so far, or by the wall clock, as was chosen."""
        self.name = name
        """Which timer rings, `""` for the one without a name; None when there is an event."""
        self._times = dict(named or {})
        if at is not None:
            self._times[""] = at

    @property
    def at(self) -> datetime | None:
        """When the timer without a name will ring; None: never."""
        return self._times.get("")

    @property
    def times(self) -> Mapping[str, datetime]:
        """When each timer that is set will ring, by name; `""` is the one without a name."""
        return MappingProxyType(self._times)

    def set(self, at: datetime, name: str = "") -> None:
        """Ring at this time, and under this name at no other; without a zone it is UTC."""
        if not isinstance(name, str):
            # users' functions need not be type-checked
            message = f"the name of a timer is a text, not {name!r}"  # type: ignore[unreachable]
            raise TypeError(message)
        self._times[name] = at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    def clear(self, name: str = "") -> None:
        """Do not ring under this name."""
        self._times.pop(name, None)
