"""What has a schema's id before it, as the project's registry says what it holds."""

from __future__ import annotations

from functools import cached_property

from mainstem.cli.context import Session
from mainstem.errors import MainstemError
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas


class RegisteredValues:
    """Asks the registry when the first such value comes, and never without need."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, value: bytes) -> str | None:
        """The JSON of a value; None when it has no schema, or none that can be had."""
        if value[:1] != b"\0":
            return None
        codec = self._codec
        return None if codec is None else codec.shown(value)

    def key(self, topic: str, key: bytes) -> str | None:
        """The same for a key of a topic."""
        if key[:1] != b"\0":
            return None
        codec = self._codec
        return None if codec is None else codec.shown_key(topic, key)

    @cached_property
    def _codec(self) -> Codec | None:
        try:
            return Codec(KnownSchemas(self._session.registry))
        except MainstemError as error:  # bytes can be shown without a project or a gateway
            self._session.say_more(f"no registry: {error.message}")
            return None
