"""Reads over HTTP: requests per second of one gateway, over kept-alive connections."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

CLIENTS = 16
SECONDS = 8.0
KEYS = 1000


Path = Callable[[int], str]
Right = Callable[[Any, int], bool]


def rows(gateway_url: str) -> tuple[float, float]:
    """Rows of a table by key: requests per second, the 99th percentile in milliseconds."""
    return asyncio.run(
        _run(
            gateway_url,
            lambda number: f"/v1/tables/looked_up/rows?k=k{number}",
            lambda body, number: body["rows"][0]["k"] == f"k{number}",
        )
    )


def schemas(gateway_url: str, ids: list[int]) -> tuple[float, float]:
    """The same for schemas by id."""
    return asyncio.run(
        _run(
            gateway_url,
            lambda number: f"/registry/schemas/ids/{ids[number % len(ids)]}",
            lambda body, _: "schema" in body,
        )
    )


async def _run(gateway_url: str, path: Path, right: Right) -> tuple[float, float]:
    place = urlsplit(gateway_url)
    until = time.monotonic() + SECONDS
    taken: list[float] = []
    await asyncio.gather(
        *(
            _client(str(place.hostname), int(place.port or 80), until, taken, n, path, right)
            for n in range(CLIENTS)
        )
    )
    taken.sort()
    return len(taken) / SECONDS, taken[int(len(taken) * 0.99)] * 1000


async def _client(
    host: str,
    port: int,
    until: float,
    taken: list[float],
    number: int,
    path: Path,
    right: Right,
) -> None:
    # a client of a few lines: a general one would cost more CPU than the server it measures
    reader, writer = await asyncio.open_connection(host, port)
    while time.monotonic() < until:
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
        taken.append(time.monotonic() - began)
        if not right(body, number):
            message = f"wrong answer: {body}"
            raise ValueError(message)
    writer.close()
