"""Requests from one process to another through the log: the side that asks. See wire.py.

The other side is in responder.py.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from mainstem.errors import MainstemError
from mainstem.log import wire
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Producer
from mainstem.log.responder import BEAT_SECONDS, Responder
from mainstem.vocabulary import Clock, SystemClock

__all__ = ["Caller", "Responder"]

_logger = logging.getLogger(__name__)
SILENCE_SECONDS = 10 * BEAT_SECONDS
"""A responder that has accepted a request and is silent for so long is dead."""


class Caller:
    """Asks the responder of the cluster. Safe to use from several threads after `start`."""

    def __init__(
        self,
        connection: Connection,
        *,
        silence: float = SILENCE_SECONDS,
        channel: wire.Channel = wire.ENGINE,
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._silence = silence
        self._channel = channel
        self._clock = clock or SystemClock()
        self._waiting: dict[str, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._producer: Producer | None = None
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        """Make the topics if they are missing and listen for replies from now on."""
        admin = Admin(self._connection)
        try:
            for spec in self._channel.topics():
                admin.ensure_topic(spec)
            end = admin.end_offsets(self._channel.replies)
        finally:
            admin.close()
        self._producer = Producer(self._connection)
        reader = Reader(self._connection, {self._channel.replies: end})
        self._listener = threading.Thread(
            target=self._listen, args=(reader,), name="mainstem-replies", daemon=True
        )
        self._listener.start()

    def call(self, kind: str, payload: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Ask and wait for the one reply; {} when the reply has no chunk. Errors as in `stream`."""
        reply: dict[str, Any] = {}
        for chunk in self.stream(kind, payload, timeout):
            reply = chunk
        return reply

    def stream(
        self, kind: str, payload: dict[str, Any], timeout: float, id: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Ask and give the chunks of the reply as they come.

        An error of the responder is raised here with the same code, parameters and place.
        ENGINE_UNREACHABLE: no responder took the request within `timeout` seconds, or the one that
        took it went silent. QUERY_TOO_LONG: it is at work, but not done within `timeout`.
        Whoever stops reading early (or runs into the time-out) cancels the request.
        """
        id = id or uuid.uuid4().hex
        replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._lock:
            self._waiting[id] = replies
        finished = False
        try:
            request = {
                "kind": kind,
                "payload": payload,
                "deadline": self._clock.now() + timeout,
            }
            self._send(id, request, timeout)
            yield from self._chunks(replies, timeout)
            finished = True
        except MainstemError as error:
            finished = error.code not in ("ENGINE_UNREACHABLE", "QUERY_TOO_LONG")
            raise
        finally:
            with self._lock:
                del self._waiting[id]
            if not finished:
                self.cancel(id)

    def cancel(self, id: str) -> None:
        """Tell the responder that nobody waits for the request any more."""
        try:
            self._send(id, {"cancel": True}, timeout=5)
        except MainstemError as error:  # the request ends at its deadline anyway
            _logger.warning("request %s was not cancelled: %s", id, error.message)

    def close(self) -> None:
        """End; calls that still wait run into their time-outs. Safe to call twice."""
        self._stop.set()
        if self._listener is not None:
            self._listener.join(5)
        if self._producer is not None:
            self._producer.close()

    def _send(self, id: str, document: dict[str, Any], timeout: float) -> None:
        if self._producer is None:
            raise RuntimeError("Caller.start was not called")
        self._producer.send(self._channel.requests, wire.to_records(id, document), timeout)

    def _chunks(
        self, replies: queue.SimpleQueue[dict[str, Any]], timeout: float
    ) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + timeout
        accepted = False
        while True:
            left = deadline - time.monotonic()
            patience = min(left, self._silence) if accepted else left
            try:
                reply = replies.get(timeout=max(0.0, patience))
            except queue.Empty:
                if accepted and time.monotonic() >= deadline:
                    raise MainstemError("QUERY_TOO_LONG", seconds=round(timeout, 1)) from None
                seconds = round(self._silence if accepted else timeout, 1)
                raise MainstemError("ENGINE_UNREACHABLE", seconds=seconds) from None
            accepted = True
            if "chunk" in reply:
                yield reply["chunk"]
            elif "error" in reply:
                raise wire.error_from_document(reply["error"])
            elif "end" in reply:
                return

    def _listen(self, reader: Reader) -> None:
        documents = wire.Documents()
        try:
            while not self._stop.is_set():
                try:
                    for record in reader.poll(timeout=0.2):
                        for id, reply in documents.add(record):
                            self._hand_over(id, reply)
                except MainstemError as error:
                    _logger.error("replies cannot be read: %s", error.message)
                    self._stop.wait(1)
        finally:
            reader.close()

    def _hand_over(self, id: str, reply: dict[str, Any]) -> None:
        ids = reply.get("alive", [id])
        with self._lock:
            for waiting in ids:
                if waiting in self._waiting:
                    self._waiting[waiting].put(reply)
