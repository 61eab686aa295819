"""How requests and replies look in their topics: JSON documents, cut into records that fit.

Every record has the headers `id` (of the request) and `part` (number/count); a document is whole
when its last part is there. One producer writes the parts of a document in order.

request    {"kind", "payload", "deadline"}     {"cancel": true}
reply      {"accepted": true}                  the responder has begun
           {"chunk": {...}}                    any number, in order
           {"end": true} | {"error": {...}}    exactly one, last
beat       {"alive": [ids]}                    with an empty id: requests still being worked on
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mainstem.errors import MainstemError, catalogue
from mainstem.log.admin import BROKER_DEFAULT, TopicSpec
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import REPLIES_TOPIC, REQUESTS_TOPIC, Record, SourceLocation

RETENTION_SECONDS = 3600
_PART_BYTES = 512 * 1024


@dataclass(frozen=True)
class Channel:
    """The two topics over which callers and a responder talk."""

    requests: str = REQUESTS_TOPIC
    replies: str = REPLIES_TOPIC
    replication_factor: int = BROKER_DEFAULT

    def topics(self) -> list[TopicSpec]:
        """One partition each, so that parts and chunks keep their order; short-lived."""
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(RETENTION_SECONDS * 1000),
            "segment.ms": str(RETENTION_SECONDS * 1000),
        }
        names = (self.requests, self.replies)
        return [TopicSpec(name, 1, self.replication_factor, config) for name in names]


ENGINE = Channel()
"""The channel to the engine."""


def to_records(id: str, document: dict[str, Any]) -> list[Outgoing]:
    """A document as records."""
    data = json.dumps(document, separators=(",", ":"), default=str).encode()
    parts = [data[i : i + _PART_BYTES] for i in range(0, len(data), _PART_BYTES)]
    return [
        Outgoing(
            id.encode(),
            part,
            partition=0,
            headers=(("id", id.encode()), ("part", f"{number}/{len(parts)}".encode())),
        )
        for number, part in enumerate(parts, 1)
    ]


class Documents:
    """Puts the parts of documents together again. For one thread."""

    def __init__(self) -> None:
        self._parts: dict[bytes, list[bytes]] = {}

    def add(self, record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        """Add a record; gives the document and the request's id when it is whole.

        What is no document of ours, or begins in the middle, is left out.
        """
        headers = dict(record.headers)
        id, part = headers.get("id"), headers.get("part")
        if id is None or part is None or record.value is None:
            return
        number, count = (int(n) for n in part.split(b"/"))
        if number == 1:
            self._parts[id] = []
        parts = self._parts.get(id)
        if parts is None or len(parts) != number - 1:
            return
        parts.append(record.value)
        if number == count:
            del self._parts[id]
            document = json.loads(b"".join(parts))
            yield id.decode(), document


def error_to_document(error: MainstemError) -> dict[str, Any]:
    """An error for the way: its problem document, and what it takes to raise it again."""
    return {**error.problem(), "params": error.params}


def error_from_document(document: dict[str, Any]) -> MainstemError:
    """The error as it was raised; one that this version does not know becomes ENGINE_FAILED."""
    code = document["title"]
    if code not in catalogue():
        return MainstemError("ENGINE_FAILED", problem=document["detail"])
    place = document.get("location")
    location = None if place is None else SourceLocation(**place)
    return MainstemError(code, location=location, **document["params"])
