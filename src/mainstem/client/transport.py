"""HTTP in two ways, one that waits in an event loop and one that blocks the thread.

All calls are written once, as `async` functions over a `Transport`. With `Blocking` such a function
never gives up the thread, so that `run` can carry it through without an event loop: that is how the
methods of the plain client are made of those of the asynchronous one (`blocking`, `iterating`).
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import httpx2

P = ParamSpec("P")
T = TypeVar("T")


class Opened(Protocol):
    """An answer that is read while it comes."""

    response: httpx2.Response

    async def read(self) -> None:
        """Take all of it, so that the response has its content."""

    def events(self) -> AsyncIterator[httpx2.ServerSentEvent]:
        """Server-sent events."""

    def lines(self) -> AsyncIterator[str]:
        """Lines of text."""


class Transport(Protocol):
    """How requests get to the gateway; errors are httpx2's."""

    async def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The whole answer."""

    def stream(self, method: str, path: str, **request: Any) -> AbstractAsyncContextManager[Opened]:
        """An answer as it comes."""

    async def pause(self, seconds: float) -> None:
        """Wait so long."""

    async def close(self) -> None:
        """Give back the connections."""


class Waiting:
    """For the asynchronous client."""

    def __init__(self, **settings: Any) -> None:
        self._http = httpx2.AsyncClient(**settings)

    async def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The whole answer."""
        return await self._http.request(method, path, **request)

    @asynccontextmanager
    async def stream(self, method: str, path: str, **request: Any) -> AsyncIterator[Opened]:
        """An answer as it comes."""
        async with self._http.stream(method, path, **request) as response:
            yield _WaitingAnswer(response)

    async def pause(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Give back the connections."""
        await self._http.aclose()


class _WaitingAnswer:
    def __init__(self, response: httpx2.Response) -> None:
        self.response = response

    async def read(self) -> None:
        await self.response.aread()

    def events(self) -> AsyncIterator[httpx2.ServerSentEvent]:
        return aiter(httpx2.EventSource(self.response))

    def lines(self) -> AsyncIterator[str]:
        return self.response.aiter_lines()


class Blocking:
    """For the plain client: nothing in here ever waits in the sense of `await`."""

    def __init__(self, **settings: Any) -> None:
        self._http = httpx2.Client(**settings)

    async def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The whole answer."""
        return self._http.request(method, path, **request)

    @asynccontextmanager
    async def stream(self, method: str, path: str, **request: Any) -> AsyncIterator[Opened]:
        """An answer as it comes."""
        with self._http.stream(method, path, **request) as response:
            yield _BlockingAnswer(response)

    async def pause(self, seconds: float) -> None:
        """Wait so long."""
        time.sleep(seconds)

    async def close(self) -> None:
        """Give back the connections."""
        self._http.close()


class _BlockingAnswer:
    def __init__(self, response: httpx2.Response) -> None:
        self.response = response

    async def read(self) -> None:
        self.response.read()

    async def events(self) -> AsyncIterator[httpx2.ServerSentEvent]:
        for event in httpx2.EventSource(self.response):
            yield event

    async def lines(self) -> AsyncIterator[str]:
        for line in self.response.iter_lines():
            yield line


def run(work: Coroutine[Any, Any, T]) -> T:
    """Carry through what goes over a `Blocking` transport."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("a blocking transport does not wait")


def iterate(items: AsyncIterator[T]) -> Generator[T]:
    """The items of something that goes over a `Blocking` transport."""
    try:
        while True:
            try:
                item = run(_next(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        if isinstance(items, AsyncGenerator):
            run(_close(items))


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The method of the asynchronous object behind this one (`_aio`), done when it returns."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self._aio, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[Any, P], Generator[T]]:
    """Likewise for a method that gives items one after the other."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        return iterate(method(self._aio, *args, **kwargs))

    return call
