"""The source `webhook` at work: a request is checked, written, and then answered.

1. The signature, the size and the body are checked. A crash: the sender has no answer, tries again.
2. If there is an `id`, requests with the same id wait for each other, and one that the log has
   already is answered without being written.
3. All records of the request are written, all or none, with the id in a header. A crash before the
   log has them: they are not there, and the sender tries again. Behind that, before the answer: the
   sender tries again, and the id is known; without `id`, the records are there twice.
   A log that does not answer in time may have taken them all the same: the sender is told 503, and
   when it tries again they are there twice, for nobody knows of the first time.
4. The answer.

Ids are remembered by the process that has written them, and found again in the stream when it is
started. Two gateways do not know each other's until then.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from mainstem.connect.listening.chosen_fields import chosen
from mainstem.connect.listening.request_ids import RequestId
from mainstem.connect.listening.running import RUNNING, Log, Task, Told
from mainstem.connect.listening.seen import Seen
from mainstem.connect.listening.signatures import HEADERS, Signature
from mainstem.connect.listening.trying import Trying
from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import Column

Encode = Callable[[Definition, Sequence[Mapping[str, Any]]], list[Outgoing]]
"""Rows as records of a stream, checked against its columns: INVALID_RECORD."""

RAW_COLUMNS = (
    Column("body", "string"),
    Column("headers", "map<string,string>"),
    Column("at", "timestamp"),
)
ID_HEADER = "id"
_PRIVATE = frozenset(("authorization", "cookie", "proxy-authorization"))
"""Headers that are for the gateway, and no part of what is told."""
_OUR_FAULT = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a request."""

    written: int
    duplicate: bool = False


class Webhook:
    """A `RunningSource`; `take` is called by any thread, for each request."""

    def __init__(self, task: Task, log: Log) -> None:
        options = task.options
        self.told = Told(task.name)
        self._name = task.name
        self._stream = task.stream
        self._log = log
        self._typed = options["columns"] is not None
        self._most_bytes: int = options["max_bytes"]
        self._signature = signature_of(options)
        self._id = RequestId(options["id"]) if options["id"] else None
        self._seen = Seen(options["within"] / 1000)
        self._counting = threading.Lock()
        self._beginning = Trying(f"hook-{task.name}", self.told, self._begin)
        self.told.detail = {"path": f"/v1/hooks/{task.name}", "duplicates": 0, "refused": 0}

    # -- life

    def start(self) -> None:
        """Take requests as soon as the ids of those before are known."""
        self._beginning.start()

    def stop(self) -> None:
        """Take no more; those that are being written are answered."""
        self._beginning.stop()

    def _begin(self) -> None:
        if self._id is not None:
            self._find_ids()
        self.told.running()

    def _find_ids(self) -> None:
        """The ids of the requests whose records are in the stream, of as long as they count."""
        topic, now = self._stream.topic, time.time()
        admin = Admin(self._log.connection)
        try:
            start = admin.offsets_at(topic, int((now - self._seen.seconds) * 1000))
            end = admin.end_offsets(topic)
        finally:
            admin.close()
        found = []
        for records in read_range(self._log.connection, topic, start, end):
            for record in records:
                id = dict(record.headers).get(ID_HEADER)
                if id is not None:
                    found.append((record.timestamp / 1000, id.decode("utf-8", "replace")))
        for at, id_text in sorted(found):  # the oldest are forgotten first
            self._seen.add(id_text, at)

    # -- one request

    def take(self, headers: Mapping[str, str], body: bytes, encode: Encode) -> Taken:
        """Check a request and write it; returns when the log has it. Header names are small.

        SOURCE_NOT_READY, BODY_TOO_LARGE, SIGNATURE_INVALID, INVALID_RECORD, or an error of the log.
        """
        if self._beginning.stopping.is_set() or self.told.state != RUNNING:
            raise MainstemError("SOURCE_NOT_READY", name=self._name)
        try:
            return self._take(headers, body, encode)
        except MainstemError as error:
            if error.status < _OUR_FAULT:
                self._count("refused")
            raise

    def _take(self, headers: Mapping[str, str], body: bytes, encode: Encode) -> Taken:
        now = time.time()
        if len(body) > self._most_bytes:
            raise MainstemError("BODY_TOO_LARGE", limit=self._most_bytes)
        if self._signature is not None:
            self._signature.check(headers, body, now)
        text, document = self._read(body)
        rows = self._rows(document) if self._typed else [_whole(text, headers, now)]
        records = encode(self._stream, rows)
        if self._id is None:
            return self._write(records)
        id = self._id.of(headers, document, self._stream.name)
        marked = [replace(r, headers=(*r.headers, (ID_HEADER, id.encode()))) for r in records]
        with self._seen.turn(id, now) as known:
            if known:
                self._count("duplicates")
                return Taken(0, duplicate=True)
            taken = self._write(marked)
            self._seen.add(id, now)
        return taken

    def _write(self, records: Sequence[Outgoing]) -> Taken:
        if records:
            self._log.sender.write(self._stream.topic, records)
        with self._counting:
            self.told.records += len(records)
        return Taken(len(records))

    def _count(self, what: str) -> None:
        with self._counting:
            self.told.detail[what] += 1

    # -- its body

    def _read(self, body: bytes) -> tuple[str, Any]:
        try:
            text = body.decode()
            return text, json.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise self._misfit("", f"the body is not JSON: {error}") from None

    def _rows(self, document: Any) -> list[dict[str, Any]]:
        """The objects of the body, with no more than the fields that are columns."""
        items = document if isinstance(document, list) else [document]
        types = {column.name: column.type for column in self._stream.columns}
        rows = []
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                place = f"[{index}]" if isinstance(document, list) else ""
                raise self._misfit(place, "an object was expected", index)
            rows.append({n: chosen(item[n], type_) for n, type_ in types.items() if n in item})
        return rows

    def _misfit(self, path: str, problem: str, index: int = 0) -> MainstemError:
        name = self._stream.name
        return MainstemError("INVALID_RECORD", index=index, path=path, name=name, problem=problem)


def signature_of(options: Mapping[str, Any]) -> Signature | None:
    """How requests are signed; None: they are not."""
    kind, secret = options["signature"], options["secret"]
    if kind is None:
        return None
    header = options["header"] or HEADERS[kind]
    return Signature(kind, secret.encode(), header.lower(), options["tolerance"] / 1000)


def _whole(text: str, headers: Mapping[str, str], now: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(now, UTC).isoformat()
    told = {name: value for name, value in headers.items() if name not in _PRIVATE}
    return {"body": text, "headers": told, "at": at}
