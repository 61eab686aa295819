"""Records over HTTP: how many a second one gateway takes, in requests of a thousand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit

CLIENTS = 4
SECONDS = 8.0
BATCH = 1_000
STREAM = "produced"
CREATE = f"CREATE STREAM {STREAM} (k STRING, n BIGINT, text STRING) WITH (key = 'k')"


def batches(gateway_url: str, *, once: bool = False) -> float:
    """Records a second; `once`: each request has a key and leaves a receipt."""
    body = json.dumps({"records": [{"value": _row(n)} for n in range(BATCH)]}).encode()
    key = (lambda n: f"Idempotency-Key: {time.time_ns()}-{n}\r\n") if once else (lambda _: "")
    return asyncio.run(_run(gateway_url, body, key))


def lines(gateway_url: str) -> float:
    """Records a second of one request that does not end."""
    return asyncio.run(_lines(gateway_url))


def _row(number: int) -> dict[str, object]:
    return {"k": f"k{number % 97}", "n": number, "text": "x" * 50}


async def _run(gateway_url: str, body: bytes, key: Callable[[int], str]) -> float:
    place = urlsplit(gateway_url)
    host, port = str(place.hostname), int(place.port or 80)
    until, written = time.monotonic() + SECONDS, 0

    async def client(number: int) -> None:
        nonlocal written
        reader, writer = await asyncio.open_connection(host, port)
        while time.monotonic() < until:
            head = (
                f"POST /v1/streams/{STREAM}/records HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Content-Type: application/json\r\n{key(number)}"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = json.loads(await _answer(reader))
            written += answer["written"]
        writer.close()

    began = time.monotonic()
    await asyncio.gather(*map(client, range(CLIENTS)))
    return written / (time.monotonic() - began)


async def _lines(gateway_url: str) -> float:
    place = urlsplit(gateway_url)
    host, port = str(place.hostname), int(place.port or 80)
    part = b"".join(json.dumps({"value": _row(n)}).encode() + b"\n" for n in range(BATCH))
    chunk = b"%x\r\n%s\r\n" % (len(part), part)
    reader, writer = await asyncio.open_connection(host, port)
    head = (
        f"POST /v1/streams/{STREAM}/records HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writer.write(head.encode())
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        writer.write(chunk)
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    last: dict[str, int] = {}
    while not last.get("done"):
        line = await reader.readline()
        if line.startswith(b"{"):
            last = json.loads(line)
    took = time.monotonic() - began
    writer.close()
    return last["written"] / took


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return await reader.readexactly(length)
