"""The resume token of a subscription: where in the log it is, as a short opaque text.

It is not signed: all that it can do is to name a place in a log that whoever sends it may read
anyway. It is checked instead: against the query, the object and what the log still has.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass

from mainstem.errors import MainstemError
from mainstem.vocabulary import Offsets

_MOST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Token:
    """A place between two changes of one query; `offsets` is None inside a snapshot."""

    name: str
    generation: int
    query: str
    """Digest of the query's text."""
    at: int
    """When nothing behind this place was in the log yet, in seconds: what is deleted later is
    still told by the log for a while."""
    offsets: Mapping[str, Offsets] | None
    """By topic: a wildcard stream has many."""

    def encode(self) -> str:
        """The token as text that fits into a header and a query string."""
        document: dict[str, object] = {
            "n": self.name,
            "g": self.generation,
            "q": self.query,
            "t": self.at,
        }
        if self.offsets is not None:
            document["o"] = self.offsets
        text = json.dumps(document, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode_token(text: str) -> Token:
    """The token in a text; RESUME_TOKEN_INVALID when there is none."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        document = json.loads(data)
        offsets = document.get("o")
        token = Token(
            name=str(document["n"]),
            generation=int(document["g"]),
            query=str(document["q"]),
            at=int(document["t"]),
            offsets=None if offsets is None else {t: _at(at) for t, at in offsets.items()},
        )
    except (
        binascii.Error,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ):
        raise MainstemError("RESUME_TOKEN_INVALID", problem="it is not one of ours") from None
    return token


def _at(offsets: Mapping[str, object]) -> dict[int, int]:
    found = {int(partition): int(str(offset)) for partition, offset in offsets.items()}
    if not all(0 <= number <= _MOST_OFFSET for place in found.items() for number in place):
        raise ValueError
    return found
