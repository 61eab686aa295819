"""Reads over HTTP: requests per second of one gateway, over kept-alive connections."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

CLIENTS = (1, 10, 50)
SECONDS = 8.0
WARM_SECONDS = 2.0
KEYS = 1000
UPDATES = 2000
"""Records a second that the table takes in meanwhile."""
_UPDATES_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured; times in milliseconds."""

    clients: int
    rate: float
    p50: float
    p99: float
    longest: float


Path = Callable[[int], str]
Right = Callable[[Any, int], bool]


def rows(gateway_url: str, clients: int) -> Found:
    """Rows of a table by key."""
    return uvloop.run(
        _run(
            gateway_url,
            clients,
            lambda number: f"/v1/tables/looked_up/rows?k=k{number}",
            lambda body, number: body["rows"][0]["k"] == f"k{number}",
        )
    )


def schemas(gateway_url: str, ids: list[int]) -> Found:
    """The same for schemas by id."""
    return uvloop.run(
        _run(
            gateway_url,
            16,
            lambda number: f"/registry/schemas/ids/{ids[number % len(ids)]}",
            lambda body, _: "schema" in body,
        )
    )


def record(key: int, number: int) -> Outgoing:
    """A row of the table."""
    value = {"k": f"k{key}", "n": number, "text": "x" * 50}
    return Outgoing(json.dumps({"k": f"k{key}"}).encode(), json.dumps(value).encode())


@contextmanager
def updating(connection: Connection) -> Iterator[None]:
    """The table changes at its rate until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_update, args=(Producer(connection), stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _update(producer: Producer, stop: threading.Event) -> None:
    sent, began = 0, time.monotonic()
    while not stop.is_set():
        due = int((time.monotonic() - began) * UPDATES)
        while sent < due:
            records = [record((sent + i) % KEYS, sent + i) for i in range(_UPDATES_AT_ONCE)]
            producer.send("looked_up", records)
            sent += len(records)
        stop.wait(_UPDATES_AT_ONCE / UPDATES)
    producer.close()


async def _run(gateway_url: str, clients: int, path: Path, right: Right) -> Found:
    place = urlsplit(gateway_url)
    start = time.monotonic() + WARM_SECONDS
    taken: list[float] = []
    await asyncio.gather(
        *(
            _client(str(place.hostname), int(place.port or 80), start, taken, n, path, right)
            for n in range(clients)
        )
    )
    taken.sort()
    p50, p99 = (taken[int(len(taken) * part)] * 1000 for part in (0.5, 0.99))
    return Found(clients, len(taken) / SECONDS, p50, p99, taken[-1] * 1000)


async def _client(
    host: str,
    port: int,
    start: float,
    taken: list[float],
    number: int,
    path: Path,
    right: Right,
) -> None:
    # a client of a few lines: a general one would cost more CPU than the server it measures
    reader, writer = await asyncio.open_connection(host, port)
    while time.monotonic() < start + SECONDS:
        number = (number * 31 + 7) % KEYS
        began = time.monotonic()
        writer.write(f"GET {path(number)} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        body = json.loads(await reader.readexactly(length))
        if began >= start:
            taken.append(time.monotonic() - began)
        if not right(body, number):
            message = f"wrong answer: {body}"
            raise ValueError(message)
    writer.close()
