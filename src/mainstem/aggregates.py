"""Event sourcing: aggregates whose state is what their events make.

def fold(state: dict, event: dict) -> dict:
    return {**state, event["kind"]: event["amount"]}

quotes = Aggregates(client, "quote_events", fold, dict)
quote = quotes.load("q-4711")                      # quote.state, quote.version
quotes.append(quote, [{"kind": "priced", "amount": 312}])
quotes.execute("q-4711", lambda state: [{"kind": "accepted", "amount": 0}])

An append goes through only if nobody has appended since the load. `execute` loads, lets a command
decide, and appends; when somebody was quicker it does so again. Every so many events a snapshot is
kept in the log, so that a load reads only what came after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mainstem.client import Client
from mainstem.errors import MainstemError

S = TypeVar("S")
Event = dict[str, Any]
ATTEMPTS = 20
SNAPSHOT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    """An aggregate as it was read; version 0 has no events yet."""

    key: Any
    version: int
    state: S
    events: Sequence[Event] = ()
    """Those behind the snapshot."""


class Aggregates(Generic[S]):
    """The aggregates of one stream. `fold` makes of a state and an event the next state.

    A state that is not JSON by itself needs `encode` and `decode` (a pydantic model: `model_dump`
    and `model_validate`). A `fold` that changes what it makes needs another `fold_version`:
    snapshots of the old one are passed over.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        fold: Callable[[S, Event], S],
        initial: Callable[[], S],
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        fold_version: int = 1,
        encode: Callable[[S], Any] = lambda state: state,
        decode: Callable[[Any], S] = lambda document: document,
    ) -> None:
        self._client = client
        self._stream = stream
        self._fold = fold
        self._initial = initial
        self._every = snapshot_every
        self._fold_version = fold_version
        self._encode = encode
        self._decode = decode

    def load(self, key: Any) -> Loaded[S]:
        """An aggregate: its newest snapshot and all events behind it."""
        try:
            page = self._client.aggregate(self._stream, key)
        except MainstemError as error:
            if error.code != "AGGREGATE_UNKNOWN":
                raise
            return Loaded(key, 0, self._initial())
        state, snapshot = self._initial(), page["snapshot"]
        version = 0
        if snapshot is not None:
            kept = snapshot["state"]
            if isinstance(kept, dict) and kept.get("fold_version") == self._fold_version:
                state, version = self._decode(kept["state"]), snapshot["version"]
            else:
                page = self._client.aggregate(self._stream, key, 0)
        events: list[Event] = []
        while True:
            for event in page["events"]:
                events.append(event["value"])
                state, version = self._fold(state, event["value"]), event["version"]
            if page["next"] is None:
                break
            page = self._client.aggregate(self._stream, key, page["next"])
        loaded = Loaded(key, version, state, events)
        if len(events) >= self._every:
            self.keep(loaded)
        return loaded

    def append(self, loaded: Loaded[S], events: Iterable[Event]) -> int:
        """Append upon what was loaded, and give the version behind that; VERSION_CONFLICT."""
        some = list(events)
        if not some:
            return loaded.version
        done = self._client.append(self._stream, loaded.key, some, loaded.version)
        return int(done["version"])

    def execute(self, key: Any, command: Callable[[S], Iterable[Event]]) -> int:
        """Load, let the command decide upon the state which events it makes, and append them.

        The version behind them. What the command raises comes through; it is asked again when
        somebody was quicker.
        """
        for attempt in range(ATTEMPTS):
            loaded = self.load(key)
            try:
                return self.append(loaded, command(loaded.state))
            except MainstemError as error:
                if error.code != "VERSION_CONFLICT" or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt gives or raises")

    def keep(self, loaded: Loaded[S]) -> None:
        """Keep a snapshot; `load` does so by itself behind every so many events."""
        document = {"fold_version": self._fold_version, "state": self._encode(loaded.state)}
        self._client.keep_snapshot(self._stream, loaded.key, loaded.version, document)
