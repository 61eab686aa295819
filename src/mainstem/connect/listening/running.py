"""A source that runs inside the gateway: what starts and stops it, and what it says of itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing

_LOG = logging.getLogger(__name__)

STARTING, RUNNING, FAILED = "starting", "running", "failed"


class Sender(Protocol):
    """Writes records, and returns when the log has them."""

    def send(
        self, topic: str, records: Iterable[Outgoing], timeout: float = ...
    ) -> Mapping[int, int]:
        """Each by itself, in their order; see `log.producer.Producer.send`."""
        ...

    def write(self, topic: str, records: Sequence[Outgoing]) -> Mapping[int, int]:
        """All or none."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """What a source has to do."""

    name: str
    flow_id: str
    """Another one for each source that ever had the name."""
    stream: Definition
    """Where its records go."""
    options: Mapping[str, Any]
    """Those of the connector's description, secrets filled in."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log, as a source needs it."""

    connection: Connection
    sender: Sender


@dataclass(slots=True)
class Told:
    """What a source says of itself; its own threads write it, any thread reads it.

    Numbers count from when the source was started in this process.
    """

    name: str
    state: str = STARTING
    records: int = 0
    quarantined: int = 0
    lost: int = 0
    """Records that came and are nowhere: what the system's buffer had no room for."""
    error: MainstemError | None = None
    """What is wrong now."""
    last_error: MainstemError | None = None
    last_error_at: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    """What only this kind of source has to say."""

    def running(self) -> None:
        """All is well."""
        if self.state == FAILED:
            _LOG.info("source %s goes on", self.name)
        self.state, self.error = RUNNING, None

    def failed(self, error: MainstemError) -> None:
        """Nothing goes on until this is over."""
        if self.error is None or self.error.message != error.message:
            _LOG.warning("source %s: %s", self.name, error.message)
        self.state = FAILED
        self._note(error)

    def warned(self, error: MainstemError) -> None:
        """It goes on, but somebody should know; said loudly, since something was lost."""
        _LOG.error("source %s: %s", self.name, error.message)
        self._note(error)

    def ended(self) -> None:
        """A mistake of ours has ended it; call it where the mistake was caught."""
        _LOG.exception("source %s has ended", self.name)
        problem = "it has ended by a mistake of ours, which the gateway's log tells"
        self.failed(MainstemError("SOURCE_ENDED", name=self.name, problem=problem))

    def calm_after(self, seconds: float) -> None:
        """Show a warning no longer than that; the last error stays the last."""
        noted = self.last_error_at
        if self.state == RUNNING and noted is not None and time.time() - noted > seconds:
            self.error = None

    def _note(self, error: MainstemError) -> None:
        self.error = self.last_error = error
        self.last_error_at = time.time()


class RunningSource(Protocol):
    """One source at work. Made, started and stopped by one thread; after `stop` it is thrown away.

    `start` returns at once: what is not there yet is tried again until `stop`, and `told` has the
    reason. `stop` ends the taking in, waits for what was taken in to be in the log, but not for
    ever, and is safe to call twice.
    """

    told: Told

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End."""
        ...
