"""How changes come out of a kind of system: with which plugin, how configured, and how it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mainstem.connect.spec import Role
from mainstem.vocabulary import SourceLocation

PutAway = Callable[[str, str], str]
"""Puts a secret where Connect finds it, under a name; gives the reference for the configuration."""
Offsets = Callable[[], list[dict[str, Any]]]
"""How far the connector has come, in Kafka Connect's words."""
LABEL = "mainstem.source"
"""In a configuration: the source that the connector is of. Connect and Debezium pass it over."""


class SourceState(Protocol):
    """What the system at the other end says of the reader of its changes."""

    @property
    def confirmed(self) -> str | None:
        """Up to where it has been told that changes have arrived."""

    @property
    def held_bytes(self) -> int:
        """How much it keeps for the reader."""

    @property
    def problem(self) -> str | None:
        """Why changes are lost to the reader, in words; None: they are not."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a connector has around it."""

    connector: str
    """Its name in Kafka Connect, which no other project has."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """How Kafka is reached by a plugin that does so itself, in the words of Java's clients; it may
    hold passwords."""
    role: Role = Role.SOURCE
    topics: tuple[str, ...] = ()
    """That it writes to, or reads."""
    secret: frozenset[str] = frozenset()
    """Options that are written with a reference."""


class Configure(Protocol):
    """Makes the configuration of a connector, for Connect's REST API."""

    def __call__(
        self,
        name: str,
        options: Mapping[str, Any],
        tables: Sequence[str],
        put_away: PutAway,
        around: Around,
    ) -> dict[str, str]:
        """Of the source of that name; `tables` are all that it captures."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """What Kafka Connect needs for the sources of one connector of ours.

    Options are those of the connector's description, secrets filled in. `state` and `remove` talk
    to the system, so they may take seconds, and raise any error of ours.
    """

    plugin: str
    """Name of the jars, in the lock."""
    config: Configure
    state: Callable[[str, Mapping[str, Any], Offsets], SourceState]
    remove: Callable[[str, Mapping[str, Any]], None]
    """Removes what the connector has left in the system; harmless when nothing is left."""
    topics: Callable[[Mapping[str, str]], Mapping[str, bool]]
    """Topics of its own, by its configuration, which come and go with it; True: records stay for
    ever."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source of the catalog, or a sink, as its connector sees it."""

    name: str
    identity: int
    """Another number for each source that ever had the name: it starts from the beginning."""
    connector: str
    options: Mapping[str, str]
    """As written; secrets are references."""
    tables: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    paused: bool = False
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What is done to columns at the source (`source_transforms`): more values beside options."""
    location: SourceLocation | None = None
    """Where it is defined."""
    role: Role = Role.SOURCE

    def label(self) -> str:
        """What the connector's configuration says of it: enough to remove it, when it is dropped
        from the catalog.
        """
        said = {
            "name": self.name,
            "identity": self.identity,
            "connector": self.connector,
            "options": dict(self.options),
        }
        sink = {"role": self.role} if self.role is Role.SINK else {}
        return json.dumps({**said, **sink}, sort_keys=True)

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Wanted | None:
        """The source that a connector was made for; None: it is none of ours."""
        try:
            said = json.loads(config[LABEL])
            role = Role(said.get("role", Role.SOURCE))
            parts = (said["name"], said["identity"], said["connector"], said["options"])
            return cls(*parts, role=role)
        except (KeyError, ValueError, TypeError):
            return None
