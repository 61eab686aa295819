"""Questions: statements, look-ups by key, subscriptions, the events behind a row."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, TypeVar, overload

from pydantic import BaseModel

from mainstem.client.admin import AsyncAdmin
from mainstem.client.answer import Answer
from mainstem.client.calling import AWAY, Event, Patience
from mainstem.client.explained import EventBehind, ExplainedRow
from mainstem.client.transport import blocking, iterating, run
from mainstem.client.values import as_model, dicts_reader
from mainstem.client.views import AsyncView, View
from mainstem.client.wire import Parameters, RemoteError, as_text, key_text, path, quoted, read_json
from mainstem.errors import MainstemError

Model = TypeVar("Model", bound=BaseModel)
OnSlow = Literal["block", "sample"]
Told = Callable[[MainstemError], None]

CHANGES = ("append", "upsert", "delete")


class AsyncQueries(AsyncAdmin):
    """Those calls."""

    async def sql(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        wait_for: str | None = None,
        wait_seconds: float | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Run one statement: the answer as JSON, rows or a message. `query` has it in types.

        `parameters` are the values of `?` (a list) or `:name` (a dict). With the receipt of a write
        as `wait_for`, the tables of the query have taken in its records, or NOT_TAKEN_IN is raised.
        """
        body = _asked(sql, parameters, wait_for, wait_seconds, limit)
        return await self._call("POST", "/v1/sql", json=body)

    @overload
    async def query(
        self,
        sql: str,
        params: Parameters = ...,
        *,
        wait_for: str | None = ...,
        wait_seconds: float | None = ...,
        limit: int | None = ...,
        model: type[Model],
    ) -> Answer[Model]: ...

    @overload
    async def query(
        self,
        sql: str,
        params: Parameters = ...,
        *,
        wait_for: str | None = ...,
        wait_seconds: float | None = ...,
        limit: int | None = ...,
    ) -> Answer[dict[str, Any]]: ...

    async def query(
        self, sql: str, params: Parameters = (), *, model: type[Any] | None = None, **more: Any
    ) -> Answer[Any]:
        """Run one statement. The answer's rows have Python's types, or are objects of `model`.

        `params` are the values of `?` (a list) or `:name` (a dict). With the receipt of a write as
        `wait_for` the tables have taken in its records when they are asked.
        """
        return Answer(await self.sql(sql, params, **more), model)

    async def stream(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        wait_for: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """The rows of a query over tables as they come, however many: dicts by column."""
        body = _asked(sql, parameters, wait_for, None, limit)
        headers = {"Accept": "application/x-ndjson"}
        names: list[str] = []
        async with self._opened("POST", "/v1/sql", json=body, headers=headers) as opened:
            async for line in opened.lines():
                document = read_json(line)
                if isinstance(document, list):
                    yield dict(zip(names, document, strict=True))
                elif "columns" in document:
                    names = [column["name"] for column in document["columns"]]
                elif "error" in document:
                    raise RemoteError(document["error"])
                elif document.get("end"):
                    return
        raise MainstemError("GATEWAY_UNREACHABLE", url=self.url)  # it ended too early

    async def get(
        self, table: str, key: Mapping[str, Any], *, wait_for: str | None = None
    ) -> dict[str, Any] | None:
        """The row of a table with this key, by column, as JSON has it; None when there is none.

        `view(table).get(...)` gives it in Python's types.
        """
        headers = {} if wait_for is None else {"Mainstem-Wait-For": wait_for}
        columns = {name: key_text(value) for name, value in key.items()}
        where = path("tables", table, "rows")
        rows = (await self._call("GET", where, params=columns, headers=headers))["rows"]
        return dict(rows[0]) if rows else None

    def view(self, table: str) -> AsyncView:
        """The served rows of a table, by key."""
        return AsyncView(self, table)

    async def explain_row(self, table: str, /, **key: Any) -> ExplainedRow:
        """The events behind the row of a table with this key."""
        from sqlglot import exp

        columns = [(exp.column(name, quoted=True), value) for name, value in key.items()]
        equal = [c.is_(exp.null()) if v is None else c.eq(exp.convert(v)) for c, v in columns]
        if not equal:
            raise MainstemError("BAD_REQUEST", problem="explain_row needs the columns of the key")
        where = exp.and_(*equal).sql("spark")
        answer = await self.sql(f"EXPLAIN ROW {quoted(table)} WHERE {where}")
        told = answer["detail"]
        return ExplainedRow(EventBehind.read(told["tree"]), bool(told["exact"]), answer["message"])

    async def subscribe(
        self,
        sql: str,
        *,
        snapshot: bool = True,
        limit: int | None = None,
        after: str | None = None,
        since: str | None = None,
        on_slow: OnSlow = "block",
        model: type[BaseModel] | None = None,
        on_retry: Told | None = None,
    ) -> AsyncIterator[Event]:
        """Events of a SELECT ... EMIT CHANGES, for ever or until `limit` changes have come.

        A lost connection is taken up again behind the last event, so that no change is missed or
        repeated; the error is raised when the gateway stays away for the client's time-out. `after`
        is the `id` of an event that was seen before. `since` begins a stream at `beginning` or a
        time. With `on_slow="sample"` changes that wait are passed over when a later one makes them
        void. The rows of events are objects of `model`, or dicts.
        """
        asked = {"sql": sql, "snapshot": str(snapshot).lower()}
        if on_slow != "block":
            asked["on_slow"] = on_slow
        if since is not None:
            asked["since"] = since
        position, received, read = after, 0, dicts_reader(())
        patience = Patience(self.timeout)
        while True:
            left = {} if limit is None else {"limit": str(limit - received)}
            headers = {"Accept": "text/event-stream"}
            if position:
                headers["Last-Event-ID"] = position
            try:
                events = self._events(
                    "GET", "/v1/subscribe", params={**asked, **left}, headers=headers
                )
                async with aclosing(events):
                    async for event in events:
                        patience.renew()
                        position = event.id or position
                        if event.kind == "columns":
                            read = dicts_reader(event.data)
                        elif event.kind in CHANGES:
                            received += 1
                        yield _with_row(event, read, model, received - 1)
                        if limit is not None and received >= limit:
                            return
                lost = MainstemError("GATEWAY_UNREACHABLE", url=self.url)
            except MainstemError as error:
                # before the first event there is nothing to resume: say it at once
                if position is None or error.code not in AWAY:
                    raise
                lost = error
            pause = patience.pause_after(lost)
            if on_retry is not None:
                on_retry(lost)
            await self._transport.pause(pause)


def _with_row(event: Event, read: Any, model: type[BaseModel] | None, index: int) -> Event:
    row = event.data.get("row") if event.kind in CHANGES else None
    if row is None:
        return event
    typed = read(row)
    return replace(event, row=typed if model is None else as_model(model, typed, index))


def _asked(
    sql: str,
    parameters: Parameters,
    wait_for: str | None,
    wait_seconds: float | None,
    limit: int | None,
) -> dict[str, Any]:
    """The request for a statement; what is not said is left out."""
    values = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    said = {"wait_for": wait_for, "wait_seconds": wait_seconds, "limit": limit}
    return {
        "sql": sql,
        "parameters": json.loads(as_text(values)),
        **{name: value for name, value in said.items() if value is not None},
    }


class Queries:
    """The same calls, each done when it returns."""

    _aio: AsyncQueries

    sql = blocking(AsyncQueries.sql)
    stream = iterating(AsyncQueries.stream)
    get = blocking(AsyncQueries.get)
    explain_row = blocking(AsyncQueries.explain_row)
    subscribe = iterating(AsyncQueries.subscribe)

    @overload
    def query(
        self,
        sql: str,
        params: Parameters = ...,
        *,
        wait_for: str | None = ...,
        wait_seconds: float | None = ...,
        limit: int | None = ...,
        model: type[Model],
    ) -> Answer[Model]: ...

    @overload
    def query(
        self,
        sql: str,
        params: Parameters = ...,
        *,
        wait_for: str | None = ...,
        wait_seconds: float | None = ...,
        limit: int | None = ...,
    ) -> Answer[dict[str, Any]]: ...

    def query(self, sql: str, params: Parameters = (), **more: Any) -> Answer[Any]:
        """Run one statement. The answer's rows have Python's types, or are objects of `model`.

        `params` are the values of `?` (a list) or `:name` (a dict). With the receipt of a write as
        `wait_for` the tables have taken in its records when they are asked.
        """
        return run(self._aio.query(sql, params, **more))

    def view(self, table: str) -> View:
        """The served rows of a table, by key."""
        return View(self._aio.view(table))
