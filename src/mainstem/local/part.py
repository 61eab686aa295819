"""A part of the stack: a server that the supervisor can start, look at, and start again."""

from __future__ import annotations

from typing import Protocol

from mainstem.local.process import Command


class Part(Protocol):
    """The contract between a server and its supervisor; all calls come from one thread."""

    name: str
    start_timeout: float
    """Seconds from the start until `ready`; then the start counts as failed."""

    def prepare(self) -> Command:
        """Everything up to the command: set-up at the first run, fresh settings at each.

        Called before every start, the restarts too. May take seconds; raises MainstemError.
        """
        ...

    def ready(self) -> bool:
        """Whether it serves now: one quick look, at most about five seconds. Never raises."""
        ...

    def answers(self) -> bool:
        """Whether a server that was ready still reacts, even if only to say that it is not ready.

        As quick as `ready`; never raises. One that does not react for a minute is restarted.
        """
        ...

    def close(self) -> None:
        """Let go of what `ready` used; called once, after the last stop."""
        ...
