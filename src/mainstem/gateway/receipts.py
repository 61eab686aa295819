"""What a request has written, remembered: the same request once more is answered, not written.

A request that carries an `Idempotency-Key` leaves its receipt in the ledger, in the transaction of
its records. Whoever is asked again within a day, also another gateway, or this one after a crash,
finds it there.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mainstem.errors import MainstemError
from mainstem.gateway.writer import Writer
from mainstem.log.delivery import Place
from mainstem.log.ledger import Ledger, Look, Writing
from mainstem.log.producer import Outgoing
from mainstem.log.state_store import Kept
from mainstem.vocabulary import Clock

REMEMBERED_SECONDS = 24 * 3600
_KEY = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}")
_DIGEST_BYTES = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be told from others."""

    entry: bytes
    """Key of its receipt in the ledger."""
    digest: str
    """Of what it asks for."""

    @classmethod
    def of(cls, scope: str, given: str | None, body: bytes) -> Asked | None:
        """By the header of a request to `scope`; None when it has none."""
        if given is None:
            return None
        if _KEY.fullmatch(given) is None:
            problem = "Idempotency-Key must be 1 to 255 printable ASCII characters"
            raise MainstemError("BAD_REQUEST", problem=problem)
        whole = hashlib.sha256(f"{scope}\0{given}".encode()).digest()
        return cls(b"r" + whole[:_DIGEST_BYTES], hashlib.sha256(body).hexdigest()[:32])

    def part(self, number: int, body: bytes) -> Asked:
        """The same for a part of a request that is written part by part."""
        whole = hashlib.sha256(self.entry + b"%d" % number).digest()
        return Asked(b"r" + whole[:_DIGEST_BYTES], hashlib.sha256(body).hexdigest()[:32])


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where the records of a request stand."""

    places: Sequence[Place]
    repeated: bool = False
    """True when an earlier request has written them."""
    mark: str = ""
    """Of the request that has written them."""


def found(look: Look, asked: Asked, clock: Clock) -> Receipt | None:
    """The receipt of an earlier request; KEY_REUSED when that one asked for something else."""
    kept = look([asked.entry]).get(asked.entry)
    if kept is None or kept.value is None or (kept.due or 0) <= clock.now() * 1_000_000:
        return None
    document = json.loads(zlib.decompress(kept.value))
    if document["digest"] != asked.digest:
        raise MainstemError("IDEMPOTENCY_KEY_REUSED")
    return Receipt(_places(document["topics"], document["places"]), True, document["mark"])


def remembered(asked: Asked, receipt: Receipt, clock: Clock) -> Mapping[bytes, Kept]:
    """The entry of a receipt."""
    topics = list(dict.fromkeys(place.topic for place in receipt.places))
    document = {
        "digest": asked.digest,
        "mark": receipt.mark,
        "topics": topics,
        "places": _numbers(topics, receipt.places),
    }
    due = int((clock.now() + REMEMBERED_SECONDS) * 1_000_000)
    return {asked.entry: Kept(zlib.compress(json.dumps(document).encode()), due)}


class Once:
    """Writes the records of requests, those that say who they are only once."""

    def __init__(self, writer: Writer, ledger: Ledger, clock: Clock) -> None:
        self._writer = writer
        self._ledger = ledger
        self._clock = clock

    def write(self, topic: str, records: Sequence[Outgoing], asked: Asked | None) -> Receipt:
        """Write all records or none, each to `topic` or its own."""
        if asked is None:
            return Receipt(self._writer.place(topic, records))
        mark = uuid.uuid4().hex
        whole = [replace(record, topic=record.topic or topic) for record in records]
        earlier: list[Receipt] = []

        def decide(look: Look) -> Writing | None:
            known = found(look, asked, self._clock)
            if known is not None:
                earlier.append(replace(known, repeated=known.mark != mark))
                return None
            return Writing(
                whole,
                lambda places: remembered(asked, Receipt(places, mark=mark), self._clock),
            )

        places = self._ledger.write(asked.entry, decide)
        return earlier[-1] if places is None else Receipt(places, mark=mark)


def _numbers(topics: Sequence[str], places: Iterable[Place]) -> list[int]:
    """Topic, partition, and how far behind the last offset there: mostly the same small numbers."""
    index = {name: n for n, name in enumerate(topics)}
    last: dict[tuple[str, int], int] = {}
    numbers: list[int] = []
    for topic, partition, offset in places:
        numbers += (index[topic], partition, offset - last.get((topic, partition), 0))
        last[topic, partition] = offset
    return numbers


def _places(topics: Sequence[str], numbers: Sequence[int]) -> list[Place]:
    last: dict[tuple[str, int], int] = {}
    places = []
    for number, partition, behind in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        topic = topics[number]
        last[topic, partition] = last.get((topic, partition), 0) + behind
        places.append(Place(topic, partition, last[topic, partition]))
    return places
