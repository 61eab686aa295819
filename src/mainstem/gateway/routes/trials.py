"""Would the last records pass a schema, or a definition? The engine reads them, and tells."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.gateway.events import EventStream, begun, singly
from mainstem.gateway.registry_requests import RegistrySchema
from mainstem.gateway.routes.plan import File
from mainstem.gateway.services import Services, services
from mainstem.views.events import Event

router = APIRouter(tags=["topics"])
MOST_RECORDS = 10_000_000


class TrialRequest(RegistrySchema):
    """A schema as the registry takes it, and how many records are to be held against it."""

    last: int = Field(10_000, ge=1, le=MOST_RECORDS, description="Of the newest records so many.")


@router.post(
    "/v1/topics/{topic}/trial",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
)
async def trial(
    at: Annotated[Services, Depends(services)], topic: str, request: TrialRequest
) -> EventStream:
    """Whether the last records would pass: `progress` events, then `found`, or `error`.

    Nothing is changed. The records are spread evenly over the partitions; `found` counts those that
    pass, those that fail by path and rule, and names some with their partitions and offsets.
    """
    schema = request.wanted().schema
    answers = at.engine.try_schema(topic, schema, request.last)
    # what is wrong from the beginning is an answer of its own, not an event
    return EventStream(await begun(singly(_events(answers))))


class DefinitionTrialRequest(BaseModel):
    """A file of definitions, and how many records are to be held against each of them."""

    model_config = ConfigDict(extra="forbid")

    file: File
    last: int = Field(10_000, ge=1, le=MOST_RECORDS, description="Of the newest records so many.")


@router.post(
    "/v1/trial",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
)
async def definition_trial(
    at: Annotated[Services, Depends(services)], request: DefinitionTrialRequest
) -> EventStream:
    """Whether the last records would fit the streams and tables that a file declares.

    The same events, with the `name` and `topic` of the definition that they are about. Derived
    objects, wildcard streams and sources are passed over.
    """
    functions = at.catalog().functions
    texts = [(request.file.path, request.file.text)]
    found = await asyncio.to_thread(load_definitions, texts, functions)
    known = (d for d in found if d.kind is not Kind.SOURCE)
    declared = [d for d in known if not d.derived and d.pattern is None]
    if not declared:
        problem = f"{request.file.path} declares no stream or table with a topic of its own"
        raise MainstemError("BAD_REQUEST", problem=problem)
    return EventStream(await begun(singly(_events(_each(at, declared, request.last)))))


def _each(
    at: Services, declared: list[Definition], last: int
) -> Generator[dict[str, Any], None, None]:
    for definition in declared:
        about = {"name": definition.name, "topic": definition.topic}
        for answer in at.engine.try_definition(definition, last):
            told = {"found": {**about, **answer["found"]}} if "found" in answer else answer
            yield {**about, **told}


async def _events(answers: Generator[dict[str, Any], None, None]) -> AsyncGenerator[Event, None]:
    """The engine's answers as events. One thread asks for all of them, and ends what it began."""
    told: asyncio.Queue[dict[str, Any] | MainstemError | None] = asyncio.Queue()
    loop, gone = asyncio.get_running_loop(), threading.Event()

    def ask() -> None:
        last = None
        try:
            for answer in answers:
                if gone.is_set():
                    break
                loop.call_soon_threadsafe(told.put_nowait, answer)
        except MainstemError as error:
            last = error
        finally:
            answers.close()
            loop.call_soon_threadsafe(told.put_nowait, last)

    asking = loop.run_in_executor(None, ask)
    sent_some = False
    try:
        while (answer := await told.get()) is not None:
            if isinstance(answer, MainstemError):
                if not sent_some:
                    raise answer
                yield Event("error", json.dumps(answer.problem()), "")
                return
            name = "found" if "found" in answer else "progress"
            yield Event(name, json.dumps(answer.get("found", answer)), "")
            sent_some = True
        await asking
    finally:
        gone.set()
