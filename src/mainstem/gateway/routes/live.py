"""All that one tab of the page watches, over one connection.

A browser opens six connections to a host and no more, so a tab has one, on which each event names
its channel. It keeps no state here: a tab that wants to watch something else opens a new one and
says of each channel up to where it has it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from mainstem.errors import MainstemError
from mainstem.gateway.events import EventStream, singly
from mainstem.gateway.routes.objects import objects
from mainstem.gateway.routes.subscribe import subscription
from mainstem.gateway.services import Services, services
from mainstem.gateway.shown import shown
from mainstem.gateway.status import status_document
from mainstem.gateway.tail import Tail
from mainstem.views.events import Event, Piece
from mainstem.views.subscriber import OnSlow

router = APIRouter(tags=["status"])
_MOST_CHANNELS = 20
_EVERY_SECONDS = 1.0
_WAITING = 200
"""So many events may wait for a slow tab; then its channels wait, too."""


class _Channel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: str | None = Field(None, description="The id of the last event that was seen.")


class StatusChannel(_Channel):
    """The state of the platform, each second, and its objects when they change."""

    kind: Literal["status"]


class QueryChannel(_Channel):
    """A subscription."""

    kind: Literal["query"]
    sql: str = Field(max_length=100_000, examples=["SELECT * FROM visits EMIT CHANGES"])
    snapshot: bool = True
    since: str | None = Field(None, description="Of a stream: `beginning`, or a time.")


class RecordsChannel(_Channel):
    """The newest records of a topic; how many were passed over is said."""

    kind: Literal["records"]
    topic: str
    partition: int | None = Field(None, ge=0)


Channel = Annotated[StatusChannel | QueryChannel | RecordsChannel, Field(discriminator="kind")]


class LiveRequest(BaseModel):
    """What is to be watched, each under a name of the client's choice."""

    model_config = ConfigDict(extra="forbid")

    channels: dict[str, Channel] = Field(max_length=_MOST_CHANNELS)


@router.post(
    "/v1/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
)
async def live(at: Annotated[Services, Depends(services)], request: LiveRequest) -> EventStream:
    """Several channels as one stream of events, until the client leaves.

    The data of each event is `{"channel": ..., "event": ..., "id": ..., "data": ...}`. A channel
    that cannot go on says so with `error`, and ends; the others go on.
    """
    return EventStream(_together(at, request.channels))


async def _together(at: Services, channels: Mapping[str, Channel]) -> AsyncGenerator[Piece, None]:
    waiting: asyncio.Queue[Piece] = asyncio.Queue(_WAITING)

    async def pump(name: str, channel: Channel) -> None:
        try:
            async with aclosing(_pieces(at, channel)) as pieces:
                async for piece in pieces:
                    await waiting.put(_of_channel(name, piece.events))
        except MainstemError as error:
            told = Event("error", json.dumps(error.problem()), "")
            await waiting.put(_of_channel(name, [told]))

    async with asyncio.TaskGroup() as tasks:
        pumps = [tasks.create_task(pump(name, channel)) for name, channel in channels.items()]
        try:
            while True:
                yield await waiting.get()
        finally:
            for task in pumps:
                task.cancel()


def _of_channel(name: str, events: Sequence[Event]) -> Piece:
    channel = json.dumps(name)
    return Piece(
        [
            Event(
                "event",
                f'{{"channel":{channel},"event":"{event.name}",'
                f'"id":{json.dumps(event.id)},"data":{event.data}}}',
                "",
            )
            for event in events
        ],
        None,
    )


def _pieces(at: Services, channel: Channel) -> AsyncGenerator[Piece, None]:
    match channel:
        case StatusChannel():
            return singly(_status(at))
        case QueryChannel():
            wanted = subscription(
                at,
                channel.sql,
                snapshot=channel.snapshot,
                limit=None,
                after=channel.after,
                on_slow=OnSlow.SAMPLE,
                since=channel.since,
            )
            return at.push.subscribe(wanted)
        case RecordsChannel():
            return singly(_records(at, channel))


async def _status(at: Services) -> AsyncGenerator[Event, None]:
    said: dict[str, Any] | None = None
    while True:
        yield Event("status", json.dumps(await status_document(at)), "")
        known = await asyncio.to_thread(objects, at)
        for thing in known["objects"]:
            thing["status"] = None  # it is in the other event
        if known != said:
            said = known
            yield Event("objects", json.dumps(known), "")
        await asyncio.sleep(_EVERY_SECONDS)


async def _records(at: Services, channel: RecordsChannel) -> AsyncGenerator[Event, None]:
    after = None if channel.after is None else _offsets(channel.after)
    tail = await asyncio.to_thread(
        Tail, at.connection, at.admin, channel.topic, channel.partition, after
    )
    try:
        while True:
            seen = await asyncio.to_thread(tail.step)
            if seen.records:
                data = {
                    "records": [shown(record, at.codec) for record in seen.records],
                    "skipped": seen.skipped,
                    "one_in": max(1, round(1 + seen.skipped / len(seen.records))),
                }
                yield Event("records", json.dumps(data), json.dumps(seen.offsets))
    finally:
        await asyncio.to_thread(tail.close)


def _offsets(text: str) -> dict[int, int]:
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise MainstemError(
            "RESUME_TOKEN_INVALID", problem="it is no token of this channel"
        ) from None
