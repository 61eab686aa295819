"""The gateway as seen by a client: one method for each resource, problem documents as errors.

from mainstem import Client

with Client("http://127.0.0.1:20080") as shop:
    shop.produce("orders", [{"id": 1, "amount": Decimal("12.30")}])
    shop.sql("SELECT * FROM totals")
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx2

from mainstem import __version__
from mainstem.errors import CatalogueEntry, MainstemError, catalogue, filled
from mainstem.receipts import Receipt, merge_receipts, read_receipt, write_receipt
from mainstem.vocabulary import SourceLocation

BATCH_ROWS = 1_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SILENCE_SECONDS = 60.0
"""A subscription without even a heartbeat for so long is taken for dead and resumed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_CHANGES = ("append", "upsert", "delete")
_AWAY = (
    "GATEWAY_UNREACHABLE",
    "GATEWAY_SLOW",
    # a gateway that has only just begun has not read the log yet, nor found the rest
    "LOG_UNREACHABLE",
    "VIEW_STORE_UNREACHABLE",
    "VIEW_NOT_READY",
    "SUBSCRIBER_TOO_SLOW",
)
"""What passes by itself, or is given up on after a while."""


class RemoteError(MainstemError):
    """An error that the gateway reported: whole, even when the local catalogue lacks its code."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        code = str(problem.get("title", "INTERNAL"))
        status = int(problem.get("status", 500))
        known = catalogue().get(code)
        self.code = code
        detail = str(problem.get("detail", ""))
        self.params = (filled(known.message, detail) or {}) if known else {}
        self.location = _location(problem.get("location"))
        self.entry = CatalogueEntry(
            message=_verbatim(detail),
            hint=_verbatim(problem.get("hint", "")),
            status=status,
            exit=known.exit if known else 69 if status == 503 else 1,
        )
        Exception.__init__(self, self.message)


def _connector(name: str) -> str:
    return f"/v1/connectors/{quote(name, safe='')}"


def _aggregate(name: str, key: Any) -> str:
    text = key if isinstance(key, str) else _text(key)
    return f"/v1/streams/{quote(name, safe='')}/aggregates/{quote(text, safe='')}"


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
        "parameters": json.loads(_text(values)),
        **{name: value for name, value in said.items() if value is not None},
    }


def _key_text(value: Any) -> str:
    """A value of a key as text."""
    text = _text(value)
    return str(json.loads(text)) if text.startswith('"') else text


def _counted(error: MainstemError, before: int) -> MainstemError:
    """The gateway counts the records of a request; a caller counts rows."""
    index = str(error.params.get("index", ""))
    if error.code != "INVALID_RECORD" or not index.isdigit() or not before:
        return error
    problem = f"{error.params['problem']} (the {before} rows before this request are written)"
    params = {**error.params, "index": before + int(index), "problem": problem}
    return MainstemError("INVALID_RECORD", **params)


def _row(row: Any) -> str:
    dump = getattr(row, "model_dump", None)
    return _text(row if dump is None else dump(by_alias=True))


def _text(value: Any) -> str:
    """JSON in which numbers keep their digits; times are in UTC if they say no zone."""
    match value:
        case Decimal():
            return f"{value:f}" if value.is_finite() else json.dumps(str(value))
        case datetime() | date():
            return json.dumps(value.isoformat())
        case bytes() | bytearray():
            return json.dumps(base64.b64encode(value).decode())
        case UUID():
            return json.dumps(str(value))
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case Mapping():
            pieces = (f"{json.dumps(str(key))}:{_text(item)}" for key, item in value.items())
            return "{" + ",".join(pieces) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            return json.dumps(value)


def _read_json(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def _verbatim(text: object) -> str:
    """The text as a format string that gives back just that text."""
    return str(text).replace("{", "{{").replace("}", "}}")


def _location(place: Any) -> SourceLocation | None:
    if not isinstance(place, dict):
        return None
    return SourceLocation(
        file=str(place.get("file", "")),
        line=int(place.get("line", 1)),
        column=int(place.get("column", 1)),
        snippet=str(place.get("snippet", "")),
    )


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event of a subscription; `id` is the position to resume from."""

    kind: str
    data: Any
    id: str


class Written(int):
    """How many rows were written; the receipt is what a query can wait for."""

    receipt: str

    def __new__(cls, rows: int, receipt: str) -> Written:
        """So many rows, with their receipt."""
        written = super().__new__(cls, rows)
        written.receipt = receipt
        return written


Parameters = Sequence[Any] | Mapping[str, Any]
"""Values of a query's parameters: in order, or by name."""


class Client:
    """Calls one gateway. Every method raises MainstemError; none retries a change."""

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self.timeout = timeout
        try:
            address = httpx2.URL(url.rstrip("/"))
            loopback = address.host in _LOOPBACK
            self.url = str(address.copy_with(userinfo=b""))
            """For messages: without the password that the URL may hold."""
            self._http = httpx2.Client(
                base_url=address,
                timeout=httpx2.Timeout(timeout, connect=min(timeout, 5.0)),
                headers={"User-Agent": f"mainstem/{__version__}"},
                # a proxy of the environment never leads to a server on this machine
                trust_env=not loopback,
            )
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise MainstemError(
                "NOT_A_GATEWAY", url="--url", problem="it is not an HTTP URL"
            ) from None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    # -- resources

    def sql(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        wait_for: str | None = None,
        wait_seconds: float | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Run one statement: rows or a message.

        `parameters` are the values of `?` (a list) or `:name` (a dict). With the receipt of a write
        as `wait_for`, the tables of the query have taken in its records, or NOT_TAKEN_IN is raised.
        """
        body = _asked(sql, parameters, wait_for, wait_seconds, limit)
        return self._call("POST", "/v1/sql", json=body)

    def stream(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        wait_for: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The rows of a query over tables as they come, however many: dicts by column."""
        body = _asked(sql, parameters, wait_for, None, limit)
        headers = {"Accept": "application/x-ndjson"}
        names: list[str] = []
        try:
            with self._http.stream("POST", "/v1/sql", json=body, headers=headers) as response:
                if response.status_code >= 400:
                    response.read()
                    raise self._refusal(response)
                for line in response.iter_lines():
                    document = _read_json(line)
                    if isinstance(document, list):
                        yield dict(zip(names, document, strict=True))
                    elif "columns" in document:
                        names = [column["name"] for column in document["columns"]]
                    elif "error" in document:
                        raise RemoteError(document["error"])
                    elif document.get("end"):
                        return
        except httpx2.TransportError as error:
            raise self._silence(error) from None
        raise MainstemError("GATEWAY_UNREACHABLE", url=self.url)  # it ended too early

    def get(
        self, table: str, key: Mapping[str, Any], *, wait_for: str | None = None
    ) -> dict[str, Any] | None:
        """The row of a table with this key, by column; None when there is none."""
        headers = {} if wait_for is None else {"Mainstem-Wait-For": wait_for}
        path = f"/v1/tables/{quote(table, safe='')}/rows"
        columns = {name: _key_text(value) for name, value in key.items()}
        rows = self._call("GET", path, params=columns, headers=headers)["rows"]
        return dict(rows[0]) if rows else None

    def plan(self, files: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """What the definitions in the files would change."""
        return self._call("POST", "/v1/plan", json={"files": list(files)})

    def apply(
        self, files: Sequence[Mapping[str, str]], digest: str, revision: int
    ) -> dict[str, Any]:
        """Carry out exactly the plan that has this digest."""
        body = {"files": list(files), "digest": digest, "revision": revision}
        return self._call("POST", "/v1/apply", json=body)

    def status(self) -> dict[str, Any]:
        """Engine, flows, views and quarantine."""
        return self._call("GET", "/v1/status")

    def objects(self) -> list[dict[str, Any]]:
        """All streams and tables."""
        return list(self._call("GET", "/v1/objects")["objects"])

    def object(self, name: str) -> dict[str, Any]:
        """One stream or table."""
        return self._call("GET", f"/v1/objects/{quote(name, safe='')}")

    def asyncapi(self, form: str, version: str) -> str:
        """The AsyncAPI document as `json` or `yaml`."""
        params = {"format": form, "version": version}
        return self._response("GET", "/v1/asyncapi", params=params).text

    def drop(self, name: str, *, cascade: bool) -> dict[str, Any]:
        """Drop an object, with CASCADE also all that depend on it."""
        path = f"/v1/objects/{quote(name, safe='')}"
        return self._call("DELETE", path, params={"cascade": str(cascade).lower()})

    def pause(self, name: str) -> dict[str, Any]:
        """Stop a flow where it is."""
        return self._call("POST", f"/v1/objects/{quote(name, safe='')}/pause")

    def resume(self, name: str) -> dict[str, Any]:
        """Let a paused flow go on."""
        return self._call("POST", f"/v1/objects/{quote(name, safe='')}/resume")

    def backfills(self) -> list[dict[str, Any]]:
        """The last backfill of each table or stream that had one."""
        return list(self._call("GET", "/v1/backfills")["backfills"])

    def backfill(self, name: str) -> dict[str, Any]:
        """The last backfill of a table or stream."""
        return self._call("GET", f"/v1/backfills/{quote(name, safe='')}")

    def start_backfill(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Compute a table anew, or add older records to a stream."""
        return self._call("POST", f"/v1/backfills/{quote(name, safe='')}", json=dict(request))

    def turn_backfill(
        self, name: str, verb: str, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Pause or resume a backfill."""
        path = f"/v1/backfills/{quote(name, safe='')}/{verb}"
        return self._call("POST", path, json=dict(request or {}))

    def cancel_backfill(self, name: str) -> dict[str, Any]:
        """Give a backfill up."""
        return self._call("DELETE", f"/v1/backfills/{quote(name, safe='')}")

    def rebuild_sink(self, name: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Fill another target of a sink, which then takes the old one's place."""
        path = f"/v1/sinks/{quote(name, safe='')}/rebuild"
        return self._call("POST", path, json={"dry_run": dry_run})

    def connectors(self) -> dict[str, Any]:
        """Every connector of a source, and how Kafka Connect itself is."""
        return self._call("GET", "/v1/connectors")

    def connector(self, name: str) -> dict[str, Any]:
        """The connector of a source."""
        return self._call("GET", _connector(name))

    def restart_connector(self, name: str, *, only_failed: bool = False) -> dict[str, Any]:
        """Start a connector and its tasks again."""
        asked = f"only_failed={str(only_failed).lower()}"
        return self._call("POST", f"{_connector(name)}/restart?{asked}")

    def turn_connector(self, name: str, verb: str) -> dict[str, Any]:
        """Pause or resume a connector."""
        return self._call("POST", f"{_connector(name)}/{verb}")

    def connector_offsets(self, name: str) -> list[dict[str, Any]]:
        """How far a connector has come."""
        return list(self._call("GET", f"{_connector(name)}/offsets")["offsets"])

    def reset_connector(self, name: str) -> dict[str, Any]:
        """Forget how far a paused connector has come."""
        return self._call("DELETE", f"{_connector(name)}/offsets")

    def snapshot_connector(self, name: str, tables: Sequence[str] = ()) -> dict[str, Any]:
        """Have the rows of captured tables read once more; without tables, of all."""
        asked = "&".join(f"table={quote(table)}" for table in tables)
        return self._call("POST", f"{_connector(name)}/snapshot?{asked}")

    def forget_connector(self, name: str) -> dict[str, Any]:
        """Remove the connector of a dropped source, though its system does not answer."""
        return self._call("DELETE", _connector(name))

    def topics(self) -> list[dict[str, Any]]:
        """All topics but the internal ones."""
        topics: list[dict[str, Any]] = []
        page = self._call("GET", "/v1/topics")
        while True:
            topics += page["topics"]
            if page.get("next") is None:
                return topics
            page = self._call("GET", "/v1/topics", params={"after": page["next"]})

    def groups(self, topic: str) -> dict[str, Any]:
        """Consumer groups that have read a topic, and how many were not asked."""
        return self._call("GET", f"/v1/topics/{quote(topic, safe='')}/groups")

    def try_schema(self, topic: str, request: Mapping[str, Any]) -> Iterator[Event]:
        """Would the last records pass a schema? `progress` events, then `found`."""
        path = f"/v1/topics/{quote(topic, safe='')}/trial"
        yield from self._stream("POST", path, json=dict(request))

    def try_definitions(self, request: Mapping[str, Any]) -> Iterator[Event]:
        """Would the last records fit the definitions in a file? `found` for each of them."""
        yield from self._stream("POST", "/v1/trial", json=dict(request))

    def try_transforms(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What transforms make of sample records."""
        return self._call("POST", "/v1/transforms/trial", json=dict(request))

    def produce(self, name: str, rows: Iterable[Any]) -> Written:
        """Write rows to a stream or a declared table; say how many, and give a receipt.

        A row is a dict of columns, or an object with `model_dump` (pydantic). They go in requests
        of BATCH_ROWS, each of which is written whole or not at all: INVALID_RECORD names the first
        row that the columns or the registered schema refuse, and nothing from its request on is
        written.
        """
        written, left = 0, iter(rows)
        receipts: list[Receipt] = []
        while batch := list(islice(left, BATCH_ROWS)):
            body = '{"records":[' + ",".join(f'{{"value":{_row(row)}}}' for row in batch) + "]}"
            try:
                done = self.write(name, body.encode())
            except MainstemError as error:
                raise _counted(error, written) from None
            written += int(done["written"])
            receipts.append(read_receipt(str(done.get("receipt", ""))))
        return Written(written, write_receipt(merge_receipts(receipts)))

    def write(self, name: str, body: bytes) -> dict[str, Any]:
        """Write records to a stream; `body` is the request document, already JSON."""
        path = f"/v1/streams/{quote(name, safe='')}/records"
        return self._call("POST", path, content=body, headers={"Content-Type": "application/json"})

    def append(
        self,
        name: str,
        key: Any,
        events: Iterable[Any],
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Append events to an aggregate of a stream, all or none; VERSION_CONFLICT when it has
        another version than the expected one. See `mainstem.aggregates` for more.
        """
        listed = ",".join(map(_row, events))
        body = (
            f'{{"key":{_text(key)},"expected_version":{_text(expected_version)},'
            f'"events":[{listed}]}}'
        )
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        path = f"/v1/streams/{quote(name, safe='')}/append"
        return self._call("POST", path, content=body.encode(), headers=headers)

    def aggregate(self, name: str, key: Any, since_version: int | None = None) -> dict[str, Any]:
        """A page of an aggregate's events, behind a version or else behind its snapshot."""
        params = {} if since_version is None else {"since_version": str(since_version)}
        return self._call("GET", _aggregate(name, key), params=params)

    def keep_snapshot(self, name: str, key: Any, version: int, state: Any) -> dict[str, Any]:
        """Keep what the events of an aggregate make up to a version."""
        body = f'{{"version":{version},"state":{_text(state)}}}'.encode()
        headers = {"Content-Type": "application/json"}
        path = f"{_aggregate(name, key)}/snapshot"
        return self._call("PUT", path, content=body, headers=headers)

    def quarantine(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """A page of records in quarantine, newest first."""
        return self._call("GET", "/v1/quarantine", params=dict(filters))

    def quarantine_summary(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """How many records are in quarantine, by stream or table, stage and cause."""
        answer = self._call("GET", "/v1/quarantine/summary", params=dict(filters))
        return list(answer["counts"])

    def quarantined(self, id: int) -> dict[str, Any]:
        """One whole record of the quarantine."""
        return self._call("GET", f"/v1/quarantine/{id}")

    def replay(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write records of the quarantine again to where they came from."""
        return self._call("POST", "/v1/quarantine/replay", json=dict(request))

    def discard(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Give records of the quarantine up."""
        return self._call("POST", "/v1/quarantine/discard", json=dict(request))

    def subscribe(
        self,
        sql: str,
        *,
        snapshot: bool = True,
        limit: int | None = None,
        after: str | None = None,
        on_slow: str = "block",
        on_retry: Callable[[MainstemError], None] | None = None,
    ) -> Iterator[Event]:
        """Events of a SELECT ... EMIT CHANGES, for ever or until `limit` changes have come.

        A lost connection is taken up again behind the last event, so that no change is missed or
        repeated; the error is raised when the gateway stays away for the client's time-out. With
        `on_slow="sample"` changes that wait are passed over when a later one makes them void.
        """
        position, received = after, 0
        pause, give_up = _FIRST_PAUSE, time.monotonic() + self.timeout
        while True:
            left = None if limit is None else limit - received
            try:
                asked = {"snapshot": str(snapshot).lower()}
                if on_slow != "block":
                    asked["on_slow"] = on_slow
                for event in self._events(sql, asked, limit=left, after=position):
                    pause, give_up = _FIRST_PAUSE, time.monotonic() + self.timeout
                    position = event.id or position
                    received += event.kind in _CHANGES
                    yield event
                    if limit is not None and received >= limit:
                        return
                lost = MainstemError("GATEWAY_UNREACHABLE", url=self.url)
            except MainstemError as error:
                # before the first event there is nothing to resume: say it at once
                if position is None or error.code not in _AWAY:
                    raise
                lost = error
            if time.monotonic() + pause > give_up:
                raise lost
            if on_retry is not None:
                on_retry(lost)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    # -- transport

    def _events(
        self, sql: str, asked: Mapping[str, str], *, limit: int | None, after: str | None
    ) -> Iterator[Event]:
        params = {"sql": sql, **asked}
        if limit is not None:
            params["limit"] = str(limit)
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        yield from self._stream("GET", "/v1/subscribe", params=params, headers=headers)

    def _stream(self, method: str, path: str, **request: Any) -> Iterator[Event]:
        """The events of a response, as they come."""
        timeout = httpx2.Timeout(self.timeout, connect=5.0, read=_SILENCE_SECONDS)
        try:
            with self._http.stream(method, path, timeout=timeout, **request) as response:
                if response.status_code >= 400:
                    response.read()
                    raise self._refusal(response)
                for event in httpx2.EventSource(response):
                    data = _read_json(event.data) if event.data else None
                    if event.event == "error":
                        raise RemoteError(data if isinstance(data, dict) else {})
                    yield Event(event.event, data, event.id)
        except httpx2.SSEError as error:
            raise MainstemError("NOT_A_GATEWAY", url=self.url, problem=str(error)) from None
        except httpx2.TransportError as error:
            raise self._silence(error) from None

    def _response(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = self._http.request(method, path, **request)
        except httpx2.TransportError as error:
            raise self._silence(error) from None
        if response.status_code >= 400:
            raise self._refusal(response)
        return response

    def _call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        response = self._response(method, path, **request)
        if response.status_code == 204:
            return {}
        try:
            document = _read_json(response.content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            problem = "its answer is not the JSON that was expected"
            raise MainstemError("NOT_A_GATEWAY", url=self.url, problem=problem)
        return document

    def _silence(self, error: httpx2.TransportError) -> MainstemError:
        if isinstance(error, (httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.PoolTimeout)):
            return MainstemError("GATEWAY_SLOW", url=self.url, seconds=f"{self.timeout:g}")
        return MainstemError("GATEWAY_UNREACHABLE", url=self.url)

    def _refusal(self, response: httpx2.Response) -> MainstemError:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "application/problem+json":
            try:
                problem = _read_json(response.content)
            except ValueError:
                problem = None
            if isinstance(problem, dict) and "title" in problem:
                return RemoteError(problem)
        answer = f"it answered {response.status_code} without a problem document"
        return MainstemError("NOT_A_GATEWAY", url=self.url, problem=answer)
