"""How fresh a table over tables is: how old changes are when who reads committed records sees them.

Every row says when its last change was meant to be sent, and so does what is made of it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer

SENT = "sent"
"""The column that says it, in seconds since the epoch; 0 in rows that have never changed."""
_STEP_SECONDS = 0.1


@contextmanager
def changing(
    connection: Connection, topic: str, rate: int, change: Callable[[int, float], Outgoing]
) -> Iterator[None]:
    """Changes rows of a table all the time; `change` makes one of its number and its time."""
    stop = threading.Event()

    def send() -> None:
        producer, number, began = Producer(connection), 0, time.time()
        while not stop.wait(_STEP_SECONDS):
            some = range(number, int((time.time() - began) * rate))
            producer.send(topic, [change(i, began + i / rate) for i in some])
            number = some.stop
        producer.close()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Ages:
    """How old changes were when they were seen in a topic."""

    def __init__(self, connection: Connection, admin: Admin, topic: str) -> None:
        self._reader = Reader(connection, {topic: admin.end_offsets(topic)})
        self._since = time.time()
        self._seen: list[tuple[float, float]] = []

    def look(self, seconds: float) -> None:
        """For so long, at what comes."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            records = self._reader.poll(5_000, left)
            now = time.time()
            sent = (json.loads(record.value)[SENT] for record in records if record.value)
            self._seen += [(at, now - at) for at in sent if at >= self._since]

    def sorted(self, before: float) -> list[float]:
        """Of changes that were sent since the look began, and before that moment."""
        return sorted(age for at, age in self._seen if at < before)

    def close(self) -> None:
        """Ends the look."""
        self._reader.close()


def percentile(ages: list[float], share: float) -> float:
    """So many of them are not older; infinite when there are none."""
    return ages[int(len(ages) * share)] if ages else float("inf")
