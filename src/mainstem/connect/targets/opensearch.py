"""Rows of a sink as documents of an index of OpenSearch.

Each document has its record's offset for a version (`external_gte`): OpenSearch refuses one that is
older than what it has. So a part that comes again writes the same documents, and one that comes
late none. What a crash leaves is that some of the documents are there; all are written again.

Offsets of another topic would mean nothing: the index notes the topic's id in its `_meta`, and is
not written to from a topic that was made anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from mainstem.connect.targets.rest import Requests, check_reachable, place_of, said
from mainstem.connect.targets.target import (
    ID,
    OFFSET,
    ROW,
    Form,
    Part,
    Poison,
    Shape,
    by_partition,
    key_text,
    mismatch,
    refused,
    unreachable,
)

GUARANTEE = "exactly once: a document's version is its record's offset, and never goes backwards"
KEYED = True

_MOST_BYTES = 8 * 1024 * 1024
_TRIES = 4
_PAUSE = 0.5
_LONGEST_ID = 512
META = "mainstem"
_CONFLICT = 409
MISSING = 404
_AGAIN = (429, 503)
_NOT_OURS = (403, MISSING)
"""The index may not be written to, or is gone: nothing is wrong with the documents."""
_BAD_NAMES = set('\\/*?"<>| ,#:')


def form(options: Mapping[str, Any]) -> Form:
    """Texts."""
    return Form.JSON


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether OpenSearch answers, lets us in, and can have an index of that name."""
    index, what = index_of(options, shape), place_of(options["url"])
    wrong = (
        index != index.lower() or index.startswith(("-", "_", "+", ".")) or _BAD_NAMES & {*index}
    )
    if wrong:
        raise mismatch(
            what,
            f'an index cannot be called "{index}"',
            "Give the option index: small letters, digits, - and _, beginning with a letter.",
        )
    check_reachable(options["url"], what)
    requests = requests_to(options)
    try:
        requests.send("GET", options["url"])
        response = requests.send("GET", url_of(options, index, "_mapping"), missing=True)
        if response.is_client_error and response.status_code != MISSING:
            raise refused(what, said(response))
    finally:
        requests.close()


def open_target(options: Mapping[str, Any], shape: Shape) -> OpenSearchTarget:
    """The target for one task."""
    return OpenSearchTarget(options, shape)


@dataclass(frozen=True, slots=True)
class _Item:
    """A document to write, or to delete."""

    topic: str
    partition: int
    offset: int
    lines: bytes


class OpenSearchTarget:
    """One part of a batch: some bulk requests, one after the other."""

    def __init__(
        self,
        options: Mapping[str, Any],
        shape: Shape,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._shape = shape
        self._index = index_of(options, shape)
        self._what = place_of(options["url"])
        self._most = int(options["batch_rows"])
        self._sleep = sleep
        self._part: Part | None = None
        self._requests: Requests | None = None
        self._waiting: list[_Item] = []
        self._size = 0

    def open(self, part: Part) -> None:
        """Connects; the first time after a start, makes the index or looks at what it is."""
        self._part = part
        self._requests = requests_to(self._options)
        if part.recovering:
            self._prepare(part)

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Writes as many whole requests as there are."""
        poison: list[Poison] = []
        for topic, partition, mine in by_partition(rows):
            for offset, id_, row in zip(
                *(mine[name].to_pylist() for name in (OFFSET, ID, ROW)), strict=True
            ):
                item = _Item(
                    topic, partition, offset, self._lines(topic, partition, offset, id_, row)
                )
                full = self._size + len(item.lines) > _MOST_BYTES
                if self._waiting and (full or len(self._waiting) >= self._most):
                    poison += self._flush()
                self._waiting.append(item)
                self._size += len(item.lines)
        return poison

    def finish(self) -> Sequence[Poison]:
        """Writes the rest."""
        return self._flush() if self._waiting else []

    def close(self) -> None:
        """Lets go of the connection."""
        if self._requests is not None:
            self._requests.close()

    def _lines(
        self, topic: str, partition: int, offset: int, id_: str | None, row: str | None
    ) -> bytes:
        assert self._part is not None
        name = f"{self._part.topics[topic]}-{partition}-{offset}"
        if self._shape.upserts and id_ is not None:
            name = _document_id(key_text(id_))
        about = {"_id": name, "version": offset, "version_type": "external_gte"}
        head = json.dumps({"delete" if row is None else "index": about}, ensure_ascii=False)
        return f"{head}\n".encode() + (b"" if row is None else f"{row}\n".encode())

    def _flush(self) -> list[Poison]:
        """Writes what waits; documents that are not taken come back."""
        items, self._waiting, self._size = self._waiting, [], 0
        poison: list[Poison] = []
        for tried in range(1, _TRIES + 1):
            again, cause = [], ""
            for item, result in zip(items, self._bulk(items), strict=True):
                status = int(result["status"])
                if status < 300 or status == _CONFLICT or (status == MISSING and _deletes(result)):
                    continue
                cause = _cause(result)
                if status in _AGAIN or status >= 500:
                    again.append(item)
                elif status in _NOT_OURS:
                    raise refused(self._what, cause)
                else:
                    poison.append(Poison(item.topic, item.partition, item.offset, cause))
            if not again:
                return poison
            items = again
            if tried < _TRIES:
                self._sleep(_PAUSE * 2**tried)
        raise unreachable(self._what, cause)

    def _bulk(self, items: Sequence[_Item]) -> list[dict[str, Any]]:
        """What became of each."""
        assert self._requests is not None
        response = self._requests.send(
            "POST",
            url_of(self._options, self._index, "_bulk"),
            content=b"".join(item.lines for item in items),
            headers={"Content-Type": "application/x-ndjson"},
        )
        if not response.is_success:
            raise refused(self._what, said(response))
        return [next(iter(each.values())) for each in response.json()["items"]]

    def _prepare(self, part: Part) -> None:
        """Makes the index if it is missing, and notes in it which topics it is filled from."""
        assert self._requests is not None
        url = url_of(self._options, self._index, "_mapping")
        response = self._requests.send("GET", url, missing=True)
        if response.status_code == MISSING:
            made = self._requests.send("PUT", url_of(self._options, self._index), json={})
            if not made.is_success and "resource_already_exists" not in made.text:
                raise refused(self._what, said(made))
            response = self._requests.send("GET", url)
        if not response.is_success:
            raise refused(self._what, said(response))
        [mappings] = [found["mappings"] for found in response.json().values()][:1]
        meta = mappings.get("_meta", {})
        noted = meta.get(META, {}).get(part.sink, {})
        for topic, id_ in part.topics.items():
            if noted.get(topic, id_) != id_:
                raise refused(
                    self._what,
                    f'index "{self._index}" was filled from another topic "{topic}", which is gone',
                    "Delete the index, or give the sink another one.",
                )
        if noted | dict(part.topics) != noted:
            ours = {**meta.get(META, {}), part.sink: {**noted, **part.topics}}
            response = self._requests.send("PUT", url, json={"_meta": {**meta, META: ours}})
            if not response.is_success:
                raise refused(self._what, said(response))


def index_of(options: Mapping[str, Any], shape: Shape) -> str:
    """The index, or the name that stands for it."""
    return str(options["index"] or shape.name.lower())


def url_of(options: Mapping[str, Any], *parts: str) -> str:
    """The address of something there."""
    return "/".join([str(options["url"]).rstrip("/"), *(quote(part, safe="") for part in parts)])


def requests_to(options: Mapping[str, Any]) -> Requests:
    """A connection to the server; whoever asks for it closes it."""
    user, password = options["user"], options["password"]
    return Requests(
        place_of(options["url"]),
        timeout=options["timeout"] / 1000,
        headers={"User-Agent": "mainstem"},
        auth=(user, password or "") if user else None,
    )


def _document_id(text: str) -> str:
    """The id of a document, which has a longest length."""
    data = text.encode()
    return text if len(data) <= _LONGEST_ID else hashlib.sha256(data).hexdigest()


def _deletes(result: Mapping[str, Any]) -> bool:
    return result.get("result") == "not_found"


def _cause(result: Mapping[str, Any]) -> str:
    error = result.get("error") or {}
    inner = error.get("caused_by") or {}
    texts = [str(part.get("reason")) for part in (error, inner) if part.get("reason")]
    return ": ".join(texts)[:500] or f"status {result['status']}"
