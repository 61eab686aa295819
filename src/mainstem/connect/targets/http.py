"""Rows of a sink to a webhook, at least once.

The rows of a partition are cut into requests from the first row of the part on, by number and size
alone: a part that comes again makes the same requests with the same keys. What a crash leaves is
that some of them were made; all are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.rest import Requests, check_reachable, place_of, said
from mainstem.connect.targets.target import (
    OFFSET,
    Form,
    Part,
    Poison,
    Shape,
    by_partition,
    json_rows,
)

GUARANTEE = (
    "at least once: rows may be posted again after a failure, in requests with the same "
    "Idempotency-Key"
)
KEYED = False
_MOST_BYTES = 4 * 1024 * 1024


def form(options: Mapping[str, Any]) -> Form:
    """Texts."""
    return Form.JSON


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether somebody listens; nothing is posted."""
    check_reachable(options["url"], place_of(options["url"]))


def open_target(options: Mapping[str, Any], shape: Shape) -> HttpTarget:
    """The target for one task."""
    return HttpTarget(options, shape)


@dataclass(slots=True)
class _Waiting:
    """Rows of a partition that have not been posted yet."""

    offsets: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    size: int = 0


class HttpTarget:
    """One part of a batch: some requests, one after the other."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._url = str(options["url"])
        self._most = int(options["batch_rows"])
        self._timeout = options["timeout"] / 1000
        self._authorization = options["authorization"]
        self._shape = shape
        self._part: Part | None = None
        self._requests: Requests | None = None
        self._waiting: dict[tuple[str, int], _Waiting] = {}

    def open(self, part: Part) -> None:
        """Makes no connection yet."""
        self._part = part
        headers = {"Content-Type": "application/json", "User-Agent": "mainstem"}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        self._requests = Requests(place_of(self._url), timeout=self._timeout, headers=headers)

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Posts as many whole requests as there are."""
        poison: list[Poison] = []
        for topic, partition, mine in by_partition(rows):
            waiting = self._waiting.setdefault((topic, partition), _Waiting())
            texts = json_rows(mine, deletes=self._shape.deletes)
            for offset, text in zip(mine[OFFSET].to_pylist(), texts, strict=True):
                data = text.encode()
                full = waiting.size + len(data) > _MOST_BYTES
                if waiting.texts and (full or len(waiting.texts) >= self._most):
                    poison += self._post(topic, partition, waiting.offsets, waiting.texts)
                    waiting = self._waiting[topic, partition] = _Waiting()
                waiting.offsets.append(offset)
                waiting.texts.append(data)
                waiting.size += len(data)
        return poison

    def finish(self) -> Sequence[Poison]:
        """Posts the rest."""
        return [
            poison
            for (topic, partition), waiting in self._waiting.items()
            for poison in self._post(topic, partition, waiting.offsets, waiting.texts)
        ]

    def close(self) -> None:
        """Lets go of the connection."""
        if self._requests is not None:
            self._requests.close()

    def _post(
        self, topic: str, partition: int, offsets: Sequence[int], texts: Sequence[bytes]
    ) -> list[Poison]:
        """Posts the rows; those that are not taken come back."""
        assert self._requests is not None
        assert self._part is not None
        place = (self._part.sink, self._part.topics[topic], partition, offsets[0], offsets[-1])
        response = self._requests.send(
            "POST",
            self._url,
            content=b"[" + b",".join(texts) + b"]",
            headers={"Idempotency-Key": "-".join(map(str, place))},
        )
        if response.is_success:
            return []
        if len(texts) == 1:
            return [Poison(topic, partition, offsets[0], said(response))]
        half = len(texts) // 2
        return [
            *self._post(topic, partition, offsets[:half], texts[:half]),
            *self._post(topic, partition, offsets[half:], texts[half:]),
        ]
