"""Subscriptions: from the topic to the last of many subscribers, and the time to resume."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

from mainstem.client import Client
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

SUBSCRIBERS = 500
RATE = 100
SECONDS = 20.0
RESUMES = 20
KEYS = 200
TABLE = "watched"
SQL = f"SELECT k, n FROM {TABLE} EMIT CHANGES"
_WAIT_SECONDS = 120.0
_NUMBER = re.compile(rb'"n":(\d+)')
_ID = re.compile(rb"\nid: (\S+)")


@dataclass(frozen=True, slots=True)
class Found:
    """Milliseconds, but for the seconds that all clients at once take to begin or to resume."""

    p50: float
    p99: float
    longest: float
    changes: int
    connect_seconds: float
    resume: float
    resume_longest: float
    resume_all_seconds: float


class Subscriber(asyncio.Protocol):
    """A client of a few lines: a general one would cost more CPU than the server it measures."""

    def __init__(self, request: bytes, told: Callable[[int], None]) -> None:
        self._request = request
        self._told = told
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self.live = asyncio.Event()
        self.id = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        whole, _, self._rest = (self._rest + data).rpartition(b"\n\n")
        if b"event: progress" in whole:
            self.live.set()
        if ids := _ID.findall(whole):
            self.id = ids[-1]
        for number in _NUMBER.findall(whole):
            self._told(int(number))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Bench:
    """One table, its subscribers, and when each change has come to the last of them."""

    def __init__(self, url: str, producer: Producer) -> None:
        place = urlsplit(url)
        self._host, self._port = str(place.hostname), int(place.port or 80)
        self._producer = producer
        self._sent: list[float] = []
        self._last: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._clients: list[Subscriber] = []

    async def run(self) -> Found:
        """All figures."""
        began = time.monotonic()
        await self._connect([b""] * SUBSCRIBERS)
        connected = time.monotonic() - began
        writing = threading.Thread(target=self._write)
        writing.start()
        await asyncio.to_thread(writing.join)
        await self._until_all(len(self._sent) - 1)
        taken = sorted((self._last[n] - sent) * 1000 for n, sent in enumerate(self._sent))
        resumes = [await self._resume(self._clients[:1]) for _ in range(RESUMES)]
        return Found(
            p50=statistics.median(taken),
            p99=taken[int(len(taken) * 0.99)],
            longest=taken[-1],
            changes=len(taken),
            connect_seconds=connected,
            resume=statistics.median(resumes) * 1000,
            resume_longest=max(resumes) * 1000,
            resume_all_seconds=await self._resume(self._clients),
        )

    def close(self) -> None:
        """Let all clients go."""
        for client in self._clients:
            client.close()

    async def _connect(self, tokens: list[bytes]) -> list[Subscriber]:
        loop = asyncio.get_running_loop()
        made = [Subscriber(self._request(token), self._told) for token in tokens]
        for client in made:
            await loop.create_connection(partial(_same, client), self._host, self._port)
        self._clients += made
        async with asyncio.timeout(_WAIT_SECONDS):
            await asyncio.gather(*(client.live.wait() for client in made))
        return made

    def _request(self, token: bytes) -> bytes:
        resumed = b"Last-Event-ID: " + token + b"\r\n" if token else b""
        path = f"/v1/subscribe?sql={quote(SQL)}&snapshot=false"
        head = f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
        return head.encode() + resumed + b"\r\n"

    def _told(self, number: int) -> None:
        self._last[number] = time.time()
        self._counts[number] = self._counts.get(number, 0) + 1

    def _change(self) -> None:
        number = len(self._sent)
        key = {"k": f"k{number % KEYS}"}
        self._sent.append(time.time())
        value = json.dumps({**key, "n": number}).encode()
        self._producer.send(TABLE, [Outgoing(json.dumps(key).encode(), value)])

    def _write(self) -> None:
        began = time.monotonic()
        while (now := time.monotonic()) < began + SECONDS:
            if len(self._sent) < (now - began) * RATE:
                self._change()
            else:
                time.sleep(0.001)

    async def _until_all(self, number: int) -> None:
        async with asyncio.timeout(_WAIT_SECONDS):
            while self._counts.get(number, 0) < SUBSCRIBERS:
                await asyncio.sleep(0.005)

    async def _resume(self, gone: list[Subscriber]) -> float:
        """Seconds until clients that were cut off have the change that came meanwhile."""
        gone = list(gone)
        for client in gone:
            client.close()
            self._clients.remove(client)
        await asyncio.to_thread(self._change)
        number = len(self._sent) - 1
        began = time.monotonic()
        await self._connect([client.id for client in gone])
        await self._until_all(number)
        return time.monotonic() - began


def _same(client: Subscriber) -> Subscriber:
    return client


def run(client: Client, connection: Connection, gateway_url: str) -> Found:
    """Makes the table, and measures."""
    client.sql(f"CREATE TABLE {TABLE} (k STRING PRIMARY KEY, n BIGINT)")
    deadline = time.monotonic() + 30
    while TABLE not in {view["name"] for view in client.status()["views"]}:
        if time.monotonic() > deadline:
            raise TimeoutError("the table was not served")
        time.sleep(0.1)
    producer = Producer(connection)

    async def measured() -> Found:
        bench = Bench(gateway_url, producer)
        try:
            return await bench.run()
        finally:
            bench.close()

    try:
        return asyncio.run(measured())
    finally:
        producer.close()
