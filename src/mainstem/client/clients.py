"""The two clients: one set of calls, awaited or not."""

from __future__ import annotations

from mainstem.client.admin import Admin
from mainstem.client.live import Live
from mainstem.client.queries import AsyncQueries, Queries
from mainstem.client.records import AsyncRecords, Records
from mainstem.client.transport import blocking


class AsyncClient(AsyncQueries, AsyncRecords):
    """Calls one gateway, in an event loop. Every method raises MainstemError; none repeats a
    change.
    """

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        super().__init__(url, timeout, blocking=False)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _BlockingCalls(AsyncQueries, AsyncRecords):
    """What is behind the plain client."""


class Client(Queries, Records, Admin):
    """Calls one gateway. Every method raises MainstemError; none repeats a change.

    Threads may share it.
    """

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self._aio: _BlockingCalls = _BlockingCalls(url, timeout, blocking=True)
        self._address = url
        self.url = self._aio.url
        self.timeout = timeout

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mainstem client of {self.url}>"

    close = blocking(_BlockingCalls.close)

    def live(self, sql: str, *, rows: int = 50) -> Live:
        """A table in a notebook that follows a SELECT ... EMIT CHANGES until its `stop()`.

        Of a table the first `rows` rows by key are shown, of a stream the last. Needs IPython.
        """
        return Live(Client(self._address, self.timeout), sql, rows)
