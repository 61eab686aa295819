"""Requests to one gateway: answers checked, silence and refusals as errors. Base of all calls."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2

from mainstem import __version__
from mainstem.client.transport import Blocking, Opened, Transport, Waiting
from mainstem.client.wire import RemoteError, document_of, read_json, refusal
from mainstem.errors import MainstemError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
AWAY = (
    "GATEWAY_UNREACHABLE",
    "GATEWAY_SLOW",
    # a gateway that has only just begun has not read the log yet, nor found the rest
    "LOG_UNREACHABLE",
    "VIEW_STORE_UNREACHABLE",
    "VIEW_NOT_READY",
    "SUBSCRIBER_TOO_SLOW",
)
"""What passes by itself, or is given up on after a while."""
_SILENCE_SECONDS = 60.0
"""A stream without even a heartbeat for so long is taken for dead."""
_NO_TLS = partial(ssl.SSLContext, ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody. To read all authorities takes longer than most requests do."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a subscription; `id` is the position to resume from."""

    kind: str
    data: Any
    id: str
    row: Any = None
    """Of a change with a row: the row by column, in Python's types, or an object of the model."""


class Patience:
    """How long to wait for a gateway that is away: in longer and longer pauses, up to an end."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.renew()

    def renew(self) -> None:
        """It has answered."""
        self._pause, self._give_up = FIRST_PAUSE, time.monotonic() + self._timeout

    def pause_after(self, error: MainstemError) -> float:
        """How long to pause now; the error itself when it is enough."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        if time.monotonic() + pause > self._give_up:
            raise error
        return pause


class Calls:
    """One gateway, over one transport."""

    def __init__(self, url: str, timeout: float, *, blocking: bool) -> None:
        self.timeout = timeout
        make = Blocking if blocking else Waiting
        try:
            address = httpx2.URL(url.rstrip("/"))
            loopback = address.host in _LOOPBACK
            self.url = str(address.copy_with(userinfo=b""))
            """For messages: without the password that the URL may hold."""
            self._transport: Transport = make(
                base_url=address,
                timeout=httpx2.Timeout(timeout, connect=min(timeout, 5.0)),
                headers={"User-Agent": f"mainstem/{__version__}"},
                # a proxy of the environment never leads to a server on this machine
                trust_env=not loopback,
                verify=_NO_TLS() if loopback and address.scheme == "http" else True,
            )
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise MainstemError(
                "NOT_A_GATEWAY", url="--url", problem="it is not an HTTP URL"
            ) from None

    async def close(self) -> None:
        """Give back the connections."""
        await self._transport.close()

    async def _response(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = await self._transport.request(method, path, **request)
        except httpx2.TransportError as error:
            raise self._silence(error) from None
        if response.status_code >= 400:
            raise refusal(response, self.url)
        return response

    async def _call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        return document_of(await self._response(method, path, **request), self.url)

    async def _patiently(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Likewise, for what can be asked again: a gateway that is away is waited for."""
        patience = Patience(self.timeout)
        while True:
            try:
                return await self._call(method, path, **request)
            except MainstemError as error:
                if error.code not in AWAY:
                    raise
                await self._transport.pause(patience.pause_after(error))

    @asynccontextmanager
    async def _opened(self, method: str, path: str, **request: Any) -> AsyncIterator[Opened]:
        try:
            async with self._transport.stream(method, path, **request) as opened:
                if opened.response.status_code >= 400:
                    await opened.read()
                    raise refusal(opened.response, self.url)
                yield opened
        except httpx2.SSEError as error:
            raise MainstemError("NOT_A_GATEWAY", url=self.url, problem=str(error)) from None
        except httpx2.TransportError as error:
            raise self._silence(error) from None

    async def _events(self, method: str, path: str, **request: Any) -> AsyncGenerator[Event]:
        """The events of an answer, as they come."""
        timeout = httpx2.Timeout(self.timeout, connect=5.0, read=_SILENCE_SECONDS)
        async with self._opened(method, path, timeout=timeout, **request) as opened:
            async for event in opened.events():
                data = read_json(event.data) if event.data else None
                if event.event == "error":
                    raise RemoteError(data if isinstance(data, dict) else {})
                yield Event(event.event, data, event.id)

    def _silence(self, error: httpx2.TransportError) -> MainstemError:
        if isinstance(error, (httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.PoolTimeout)):
            return MainstemError("GATEWAY_SLOW", url=self.url, seconds=f"{self.timeout:g}")
        return MainstemError("GATEWAY_UNREACHABLE", url=self.url)
