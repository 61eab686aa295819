"""Requests from one process to another through the log: the side that answers. See wire.py."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar
from typing import Any

from mainstem.errors import MainstemError
from mainstem.log import wire
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader, read_range
from mainstem.log.producer import Producer
from mainstem.vocabulary import Clock, SystemClock

Handler = Callable[[str, dict[str, Any]], Iterable[dict[str, Any]]]

BEAT_SECONDS = 1.0
current_request: ContextVar[str] = ContextVar("current_request", default="")
"""Inside a handler: the id of the request that it answers."""

_logger = logging.getLogger(__name__)
_LOOK_BACK_SECONDS = 600.0
_PROBLEM_CHARACTERS = 500


class Responder:
    """Answers the requests of all callers of the cluster; there is one running at a time.

    `handler(kind, payload)` gives the chunks of the reply, each a JSON object; usually it is a
    generator. It is called from a few threads at once, once per request, after the request was
    accepted. A MainstemError that it raises goes to the caller; any other error is logged and
    goes as ENGINE_FAILED. When the caller has gone, the generator is closed at its next chunk and
    `on_cancel(id)` is called, from the reading thread, at once.

    A request that came while no responder was running is answered if its deadline has not passed.
    One that an earlier responder accepted and did not finish is not begun again, because it may be
    what that one died of: its caller gets ENGINE_FAILED.
    """

    def __init__(
        self,
        connection: Connection,
        handler: Handler,
        *,
        on_cancel: Callable[[str], None] | None = None,
        threads: int = 4,
        beat: float = BEAT_SECONDS,
        channel: wire.Channel = wire.ENGINE,
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._handler = handler
        self._on_cancel = on_cancel
        self._threads = threads
        self._beat_seconds = beat
        self._channel = channel
        self._clock = clock or SystemClock()
        self._active: set[str] = set()
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Answer requests until `stop` is set; blocks the calling thread."""
        start, past = self._begin()
        with closing(Producer(self._connection)) as producer:
            pool = ThreadPoolExecutor(self._threads, "mainstem-request")
            beats = threading.Thread(
                target=self._beat, args=(producer, stop), name="mainstem-beat", daemon=True
            )
            beats.start()
            with closing(Reader(self._connection, {self._channel.requests: start})) as reader:
                try:
                    self._serve(reader, producer, pool, past, stop)
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)
            beats.join(5)

    # -- start

    def _begin(self) -> tuple[dict[int, int], dict[str, bool]]:
        """Where to begin, and the requests of the recent past: True when they were finished."""
        since = int((self._clock.now() - _LOOK_BACK_SECONDS) * 1000)
        with closing(Admin(self._connection)) as admin:
            for spec in self._channel.topics():
                admin.ensure_topic(spec)
            start = admin.offsets_at(self._channel.requests, since)
            replies = admin.offsets_at(self._channel.replies, since)
            end = admin.end_offsets(self._channel.replies)
        past: dict[str, bool] = {}
        documents = wire.Documents()
        for records in read_range(self._connection, self._channel.replies, replies, end):
            for record in records:
                for id, reply in documents.add(record):
                    past[id] = "end" in reply or "error" in reply
        return start, past

    # -- each request

    def _serve(
        self,
        reader: Reader,
        producer: Producer,
        pool: ThreadPoolExecutor,
        past: dict[str, bool],
        stop: threading.Event,
    ) -> None:
        documents = wire.Documents()
        while not stop.is_set():
            try:
                for record in reader.poll(timeout=0.2):
                    for id, request in documents.add(record):
                        self._dispatch(id, request, producer, pool, past)
            except MainstemError as error:
                _logger.error("requests cannot be read: %s", error.message)
                stop.wait(1)

    def _dispatch(
        self,
        id: str,
        request: dict[str, Any],
        producer: Producer,
        pool: ThreadPoolExecutor,
        past: dict[str, bool],
    ) -> None:
        if "cancel" in request:
            self._cancel(id)
        elif request["deadline"] <= self._clock.now():
            _logger.info("request %s (%s) is past its deadline", id, request["kind"])
        elif id not in past:
            with self._lock:
                self._active.add(id)
            pool.submit(self._answer, id, request, producer)
        elif not past[id]:
            error = MainstemError("ENGINE_FAILED", problem="it restarted in the middle of this")
            pool.submit(self._reply, producer, id, {"error": wire.error_to_document(error)})

    def _cancel(self, id: str) -> None:
        with self._lock:
            if id not in self._active:
                return
            self._cancelled.add(id)
        if self._on_cancel is not None:
            self._on_cancel(id)

    def _answer(self, id: str, request: dict[str, Any], producer: Producer) -> None:
        current_request.set(id)
        try:
            self._reply(producer, id, {"accepted": True})
            chunks = iter(self._handler(request["kind"], request["payload"]))
            try:
                for chunk in chunks:
                    if self._is_cancelled(id):
                        break
                    self._reply(producer, id, {"chunk": chunk})
            finally:
                close = getattr(chunks, "close", None)
                if close is not None:
                    close()
            last: dict[str, Any] = {"end": True}
        except MainstemError as error:
            last = {"error": wire.error_to_document(error)}
        except Exception as error:
            _logger.exception("request %s (%s) failed", id, request["kind"])
            problem = f"{type(error).__name__}: {error}".split("\n")[0][:_PROBLEM_CHARACTERS]
            failed = MainstemError("ENGINE_FAILED", problem=problem)
            last = {"error": wire.error_to_document(failed)}
        with self._lock:
            self._active.discard(id)
            self._cancelled.discard(id)
        self._reply(producer, id, last)

    def _is_cancelled(self, id: str) -> bool:
        with self._lock:
            return id in self._cancelled

    def _reply(self, producer: Producer, id: str, document: dict[str, Any]) -> None:
        try:
            producer.send(self._channel.replies, wire.to_records(id, document))
        except MainstemError as error:
            _logger.error("the reply to %s was not written: %s", id, error.message)

    def _beat(self, producer: Producer, stop: threading.Event) -> None:
        """Tell the callers, while requests are being worked on, that they are."""
        while not stop.wait(self._beat_seconds):
            with self._lock:
                active = sorted(self._active)
            if active:
                self._reply(producer, "", {"alive": active})
