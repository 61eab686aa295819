"""Records in quarantine: which, why, and what becomes of them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from mainstem.definitions.fix import read_fix
from mainstem.errors import MainstemError
from mainstem.gateway.quarantine_index import Selection
from mainstem.gateway.replay import Change, Choice
from mainstem.gateway.routes import quarantine_examples as examples
from mainstem.gateway.services import Services, services
from mainstem.gateway.times import milliseconds
from mainstem.log.settle import State

router = APIRouter(tags=["quarantine"])
At = Annotated[Services, Depends(services)]
_MOST = 1000

Stream = Annotated[str | None, Query(description="The stream or table that refused it.")]
Stage = Annotated[str | None, Query(description="Where: decode, view, ...")]
Cause = Annotated[str | None, Query(description="Why: an error code, or a part of the text.")]


Step = Literal["minute", "hour"]


class ArrivedRecords(BaseModel):
    """Records of one object within one step."""

    at: int = Field(description="When the step begins, in seconds since the epoch.")
    object: str
    records: int


class ArrivedOverTime(BaseModel):
    """The last day, oldest first; a step without records is not there."""

    step_seconds: int
    counts: list[ArrivedRecords]


class Chosen(BaseModel):
    """Which records: some ids, or all held ones that fit; `all` when nothing else is said."""

    model_config = ConfigDict(extra="forbid")

    ids: list[Annotated[int, Field(ge=0)]] | None = Field(None, min_length=1, max_length=_MOST)
    stream: str | None = None
    stage: str | None = None
    cause: str | None = None
    since: str | None = Field(None, description="Put into quarantine since then, ISO 8601.")
    all: bool = False
    after: int = Field(-1, ge=-1, description="`next` of the answer before.")
    until: int | None = Field(None, ge=-1, description="`until` of the answer before.")
    limit: int = Field(_MOST, ge=1, le=_MOST, description="At most so many in one transaction.")
    dry_run: bool = Field(False, description="Only say what would be done.")

    def choice(self) -> Choice:
        """The same, checked."""
        filters = (self.stream, self.stage, self.cause, self.since)
        filtered = any(part is not None for part in filters)
        if (self.ids is not None) + filtered + self.all != 1:
            problem = "say which records: ids, or stream, stage, cause and since, or all"
            raise MainstemError("BAD_REQUEST", problem=problem)
        return Choice(
            None if self.ids is None else frozenset(self.ids),
            Selection(self.stream, self.stage, self.cause),
            None if self.since is None else milliseconds("since", self.since),
            self.after,
            self.until,
            self.limit,
        )


class Replayed(Chosen):
    """Records to be written again, and how they are mended before."""

    value: str | None = Field(None, description="The new value, of one record.")
    value_base64: str | None = Field(None, description="The same for bytes.")
    sql: str | None = Field(
        None,
        description="SELECT ... AS value [, ... AS key] [FROM quarantine [WHERE ...]] over key,"
        " value, cause, _topic, _partition, _offset, _timestamp.",
    )
    force: bool = Field(False, description="Write also what would be refused again.")

    def change(self) -> Change:
        """How the records are mended."""
        if sum(given is not None for given in (self.value, self.value_base64, self.sql)) > 1:
            raise MainstemError("BAD_REQUEST", problem="give one of value, value_base64 and sql")
        if self.sql is not None:
            return Change(query=read_fix(self.sql))
        value = self._value()
        if value is not None and (self.ids is None or len(set(self.ids)) != 1):
            raise MainstemError("BAD_REQUEST", problem="a value is for one record: give one id")
        return Change(value=value)

    def _value(self) -> bytes | None:
        if self.value is not None:
            return self.value.encode()
        if self.value_base64 is None:
            return None
        try:
            return base64.b64decode(self.value_base64, validate=True)
        except binascii.Error:
            raise MainstemError("BAD_REQUEST", problem="value_base64 is not base64") from None


def _answer(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": example}}}}


@router.get("/v1/quarantine", responses=_answer({"records": [examples.LISTED], "next": None}))
def page(
    at: At,
    stream: Stream = None,
    stage: Stage = None,
    cause: Cause = None,
    state: Annotated[Literal["held", "replayed", "discarded", "any"], Query()] = "held",
    since: Annotated[str | None, Query(description="Since that time, ISO 8601.")] = None,
    before: Annotated[int | None, Query(ge=0, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
) -> dict[str, Any]:
    """Records, newest first, with the beginning of their values."""
    found = at.quarantine.page(
        Selection(stream, stage, cause),
        None if state == "any" else State(state),
        since=None if since is None else milliseconds("since", since),
        before=before,
        limit=limit,
    )
    return {"records": found.records, "next": found.next}


@router.get("/v1/quarantine/summary", responses=_answer({"counts": [examples.COUNTED]}))
def summary(
    at: At, stream: Stream = None, stage: Stage = None, cause: Cause = None
) -> dict[str, Any]:
    """How many there are of each stream or table, stage and cause; numbers in causes are #."""
    return {"counts": at.quarantine.summary(Selection(stream, stage, cause))}


@router.get("/v1/quarantine/arrivals")
def arrivals(
    at: At, stream: Stream = None, step: Annotated[Step, Query()] = "hour"
) -> ArrivedOverTime:
    """How many were put there in each minute or hour of the last day, whatever became of them."""
    minutes = 60 if step == "hour" else 1
    found = at.quarantine.arrivals(minutes, stream)
    return ArrivedOverTime(
        step_seconds=minutes * 60, counts=[ArrivedRecords(**each._asdict()) for each in found]
    )


@router.get("/v1/quarantine/{id}", responses=_answer(examples.ONE))
def one(at: At, id: int) -> dict[str, Any]:
    """One whole record, where it came from, why it is here and what became of it."""
    return at.quarantine.one(id)


@router.post("/v1/quarantine/replay", responses=_answer(examples.REPLAYED))
def replay(
    at: At,
    asked: Annotated[
        Replayed,
        Body(
            openapi_examples={
                "as they are": {"value": {"stream": "orders", "dry_run": True}},
                "one, mended": {"value": {"ids": [17], "value": '{"id": 7}'}},
                "many, mended": {
                    "value": {
                        "stream": "orders",
                        "sql": "SELECT replace(value, 'seven', '7') AS value FROM quarantine",
                    }
                },
            }
        ),
    ],
) -> dict[str, Any]:
    """Write records again to the topics that they came from, once: all of a request, or none.

    They are checked against the columns first; those that would be refused again stay. When `next`
    in the answer is not null, there are more: ask again with it as `after`, and with `until`.
    """
    return at.replay.replay(
        asked.choice(), asked.change(), force=asked.force, dry_run=asked.dry_run
    )


@router.post("/v1/quarantine/discard", responses=_answer(examples.DISCARDED))
def discard(
    at: At,
    asked: Annotated[Chosen, Body(openapi_examples={"two": {"value": {"ids": [17, 18]}}})],
) -> dict[str, Any]:
    """Give records up. They stay in the log and can still be shown, but are held no longer."""
    return at.replay.discard(asked.choice(), dry_run=asked.dry_run)
