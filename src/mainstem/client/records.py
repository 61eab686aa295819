"""Records in and out of the log: rows, topics, consumer groups, aggregates."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from mainstem.client.calling import Calls, Patience
from mainstem.client.transport import blocking, iterating
from mainstem.client.wire import JSON, as_text, path, row_text
from mainstem.errors import MainstemError
from mainstem.receipts import Receipt, merge_receipts, read_receipt, write_receipt

BATCH_ROWS = 1_000
_PAGE = 1_000
_WAIT_SECONDS = 5.0
_GONE = ("MEMBER_UNKNOWN", "GROUP_STATE")


class Written(int):
    """How many rows were written; the receipt is what a query can wait for."""

    receipt: str

    def __new__(cls, rows: int, receipt: str) -> Written:
        """So many rows, with their receipt."""
        written = super().__new__(cls, rows)
        written.receipt = receipt
        return written


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a topic. What has a schema is decoded; other bytes are a text if they are one."""

    topic: str
    partition: int
    offset: int
    time: datetime
    key: Any
    value: Any
    headers: tuple[tuple[str, str | None], ...]

    def json(self) -> Any:
        """The value as JSON says it."""
        return json.loads(self.value) if isinstance(self.value, (str, bytes)) else self.value

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Record:
        """From the gateway's answer."""
        return cls(
            shown["topic"],
            shown["partition"],
            shown["offset"],
            datetime.fromtimestamp(shown["timestamp"] / 1000, UTC),
            _shown(shown, "key"),
            _shown(shown, "value"),
            tuple((h["name"], _shown(h, "value")) for h in shown.get("headers", ())),
        )


class AsyncRecords(Calls):
    """Those calls."""

    async def produce(
        self, name: str, rows: Iterable[Any], *, idempotency_key: str | None = None
    ) -> Written:
        """Write rows to a stream or a declared table; say how many, and give a receipt.

        A row is a dict of columns, or an object with `model_dump` (pydantic). They go in requests
        of BATCH_ROWS, each of which is written whole or not at all: INVALID_RECORD names the first
        row that the columns or the registered schema refuse, and nothing from its request on is
        written. With an idempotency key the same call can be made again, and writes nothing twice.
        """
        written, left = 0, iter(rows)
        receipts: list[Receipt] = []
        while batch := list(islice(left, BATCH_ROWS)):
            body = '{"records":[' + ",".join(f'{{"value":{row_text(row)}}}' for row in batch) + "]}"
            once = None if idempotency_key is None else f"{idempotency_key}-{len(receipts)}"
            try:
                done = await self.write(name, body.encode(), idempotency_key=once)
            except MainstemError as error:
                raise _counted(error, written) from None
            written += int(done["written"])
            receipts.append(read_receipt(str(done.get("receipt", ""))))
        return Written(written, write_receipt(merge_receipts(receipts)))

    async def write(
        self, name: str, body: bytes, *, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Write records to a stream; `body` is the request document, already JSON."""
        where = path("streams", name, "records")
        return await self._call("POST", where, content=body, headers=_headers(idempotency_key))

    async def consume(
        self,
        topic: str,
        *,
        group: str | None = None,
        start: str | datetime = "beginning",
        follow: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[Record]:
        """Records of a topic: up to where it ends now, or with `follow` for ever.

        `start` is `beginning`, `end` or a time. As a member of a `group` it gets the partitions
        that Kafka gives it, from where the group was (else `beginning` or `end`): a record is done
        when the next one is asked for, and what was not done comes again. Without `follow` a member
        ends when it has partitions and nothing came for five seconds. A gateway that is away for a
        while is waited for.
        """
        left = math.inf if limit is None else limit
        if group is None:
            records = self._read(topic, start, follow, left)
        else:
            records = self._read_as_member(topic, group, start, follow, left)
        async with aclosing(records):
            async for record in records:
                yield record

    async def _read(
        self, topic: str, start: str | datetime, follow: bool, left: float
    ) -> AsyncGenerator[Record]:
        parts = (await self._call("GET", path("topics", topic)))["by_partition"]
        ends = {part["partition"]: part["end"] for part in parts}
        places = {part["partition"]: _place(part, start) for part in parts}
        where, wait = path("topics", topic, "records"), 0.0
        while places and left > 0:
            found = False
            for partition, place in list(places.items()):
                asked = {"partition": partition, "limit": _PAGE, "wait_seconds": wait, **place}
                page = await self._patiently("GET", where, params=asked)
                following = page["next"][str(partition)]
                places[partition] = {"offset": following}
                for record in page["records"]:
                    if follow or record["offset"] < ends[partition]:
                        found = True
                        yield Record.read(record)
                        left -= 1
                        if left <= 0:
                            return
                if not follow and (not page["records"] or following >= ends[partition]):
                    del places[partition]
            wait = 0.0 if found or not follow else _WAIT_SECONDS / len(places)

    async def _read_as_member(
        self, topic: str, group: str, start: str | datetime, follow: bool, left: float
    ) -> AsyncGenerator[Record]:
        if start not in ("beginning", "end"):
            raise MainstemError("BAD_REQUEST", problem="a group starts at beginning or end")
        wanted = {"topics": [topic], "start": "earliest" if start == "beginning" else "latest"}
        patience = Patience(self.timeout)
        while left > 0:
            # of one whose answer is lost the gateway lets go after a minute of silence
            members = path("groups", group, "members")
            member = (await self._patiently("POST", members, json=wanted))["member"]
            done: dict[tuple[str, int], int] = {}
            try:
                async for record in self._batches(group, member, follow, done):
                    patience.renew()
                    yield record
                    done[record.topic, record.partition] = record.offset + 1
                    left -= 1
                    if left <= 0:
                        break
                return
            except MainstemError as error:
                if error.code not in _GONE:
                    raise
                # it was let go, or the gateway that made it is gone: another one takes its place
                pause = patience.pause_after(error)
            finally:
                await self._leave(group, member, done)
            await self._transport.pause(pause)

    async def _batches(
        self, group: str, member: str, follow: bool, done: dict[tuple[str, int], int]
    ) -> AsyncIterator[Record]:
        """The records that a member is given; what is done is committed behind each batch."""
        where, number = path("groups", group, "members", member), 1
        has_partitions, give_up = False, time.monotonic() + self.timeout
        while True:
            # with its number, a batch whose answer was lost is given once more
            asked = {"batch": number, "wait_seconds": _WAIT_SECONDS}
            batch = await self._patiently("GET", f"{where}/records", params=asked)
            number += 1
            for record in batch["records"]:
                yield Record.read(record)
            if batch["records"]:
                await self._call("POST", f"{where}/commit", json=_offsets(done))
                done.clear()
                has_partitions = True
            elif not follow and (has_partitions or time.monotonic() > give_up):
                return
            elif not follow:  # to join takes a while: that is no silence of the topic
                has_partitions = bool((await self._patiently("GET", where))["partitions"])

    async def _leave(self, group: str, member: str, done: dict[tuple[str, int], int]) -> None:
        """Commit what is done, and let others have the partitions at once."""
        where = path("groups", group, "members", member)
        try:
            if done:
                await self._call("POST", f"{where}/commit", json=_offsets(done))
            await self._call("DELETE", where)
        except MainstemError:
            pass  # it is gone already, or soon will be: what is not committed comes again

    async def append(
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
        listed = ",".join(map(row_text, events))
        body = (
            f'{{"key":{as_text(key)},"expected_version":{as_text(expected_version)},'
            f'"events":[{listed}]}}'
        )
        where, headers = path("streams", name, "append"), _headers(idempotency_key)
        return await self._call("POST", where, content=body.encode(), headers=headers)

    async def aggregate(
        self, name: str, key: Any, since_version: int | None = None
    ) -> dict[str, Any]:
        """A page of an aggregate's events, behind a version or else behind its snapshot."""
        params = {} if since_version is None else {"since_version": str(since_version)}
        return await self._call("GET", _aggregate(name, key), params=params)

    async def keep_snapshot(self, name: str, key: Any, version: int, state: Any) -> dict[str, Any]:
        """Keep what the events of an aggregate make up to a version."""
        body = f'{{"version":{version},"state":{as_text(state)}}}'.encode()
        where = f"{_aggregate(name, key)}/snapshot"
        return await self._call("PUT", where, content=body, headers=JSON)


class Records:
    """The same calls, each done when it returns."""

    _aio: AsyncRecords

    produce = blocking(AsyncRecords.produce)
    write = blocking(AsyncRecords.write)
    consume = iterating(AsyncRecords.consume)
    append = blocking(AsyncRecords.append)
    aggregate = blocking(AsyncRecords.aggregate)
    keep_snapshot = blocking(AsyncRecords.keep_snapshot)


def _headers(idempotency_key: str | None) -> dict[str, str]:
    return JSON if idempotency_key is None else {**JSON, "Idempotency-Key": idempotency_key}


def _aggregate(name: str, key: Any) -> str:
    return path("streams", name, "aggregates", key if isinstance(key, str) else as_text(key))


def _place(part: Mapping[str, Any], start: str | datetime) -> dict[str, Any]:
    match start:
        case "beginning":
            return {"offset": part["begin"]}
        case "end":
            return {"offset": part["end"]}
        case datetime():
            return {"time": start.isoformat()}
        case _:
            return {"time": start}


def _offsets(done: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    return {
        "offsets": [
            {"topic": topic, "partition": partition, "offset": offset}
            for (topic, partition), offset in done.items()
        ]
    }


def _shown(shown: Mapping[str, Any], name: str) -> Any:
    coded = shown.get(f"{name}_base64")
    return shown.get(name) if coded is None else base64.b64decode(coded)


def _counted(error: MainstemError, before: int) -> MainstemError:
    """The gateway counts the records of a request; a caller counts rows."""
    index = str(error.params.get("index", ""))
    if error.code != "INVALID_RECORD" or not index.isdigit() or not before:
        return error
    problem = f"{error.params['problem']} (the {before} rows before this request are written)"
    params = {**error.params, "index": before + int(index), "problem": problem}
    return MainstemError("INVALID_RECORD", **params)
