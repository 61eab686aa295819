"""Consumer groups: how far they are, and members that speak HTTP."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from mainstem.gateway.members import LONGEST_WAIT_SECONDS, Member, check_group
from mainstem.gateway.paging import PAGE, After, Limit, page
from mainstem.gateway.routes.problems_shown import problems
from mainstem.gateway.services import Services, services
from mainstem.gateway.shown import shown
from mainstem.gateway.times import milliseconds
from mainstem.log.groups import Lag

router = APIRouter(tags=["groups"], responses=problems(400, 404, 503))
At = Annotated[Services, Depends(services)]
_MOST_OFFSET = 2**63 - 1
_WRONG = problems(403, 409)


class NewMember(BaseModel):
    """A member to be."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"topics": ["orders"]}]}
    )

    topics: list[str] = Field(default=[], max_length=100, description="To read; or later.")
    name: str | None = Field(None, description="Without it, one is made up.")
    start: Literal["earliest", "latest"] = Field(
        "earliest", description="Where to begin when the group has committed nothing."
    )
    session_seconds: float = Field(
        60, ge=5, le=280, description="Silent for so long, it is ended: others get its partitions."
    )
    auto_commit: bool = Field(
        False, description="A request for records commits what those before it have given."
    )


class Subscription(BaseModel):
    """What to read."""

    model_config = ConfigDict(extra="forbid")

    topics: list[str] = Field(max_length=100, examples=[["orders"]])


class Position(BaseModel):
    """The next offset to be read of a partition."""

    model_config = ConfigDict(extra="forbid")

    topic: str
    partition: int = Field(ge=0, le=2**31 - 1)
    offset: int = Field(ge=0, le=_MOST_OFFSET)


class Commit(BaseModel):
    """What is done."""

    model_config = ConfigDict(extra="forbid")

    offsets: list[Position] | None = Field(
        None, max_length=10_000, description="Without it: all that was given to the member."
    )


class Seek(BaseModel):
    """Where to go on."""

    model_config = ConfigDict(extra="forbid")

    positions: list[Position] = Field(default=[], max_length=10_000)
    to: str | None = Field(
        None,
        description="In place of positions, for all its partitions: `beginning`, `end` or a time.",
        examples=["2026-11-15T09:00:00Z"],
    )


@router.get("/v1/groups")
def groups(at: At, limit: Limit = PAGE, after: After = None) -> dict[str, Any]:
    """The names of all consumer groups, those of flows, too."""
    names, following = page(at.admin.groups(), limit, after)
    return {"groups": names, "next": following}


@router.get("/v1/groups/{group}")
def one(at: At, group: str) -> dict[str, Any]:
    """A group with its members, what it has committed, and how far behind it is."""
    found, lags = at.groups.one(group), at.groups.lags(group)
    return {
        "group": group,
        "state": found.state,
        "assignor": found.assignor,
        "members": [
            {
                "id": member.id,
                "client": member.client,
                "host": member.host,
                "partitions": [{"topic": t, "partition": p} for t, p in member.partitions],
            }
            for member in found.members
        ],
        "offsets": [_lag(lag) for lag in lags],
        "lag": sum(lag.lag for lag in lags),
    }


@router.delete("/v1/groups/{group}", responses=_WRONG)
def delete(at: At, group: str) -> dict[str, Any]:
    """Forget a group without members, and what it has committed."""
    check_group(group)
    at.groups.one(group)
    at.admin.delete_group(group)
    return {"deleted": group}


@router.post("/v1/groups/{group}/members", status_code=201, responses={**_WRONG, **problems(429)})
async def create(at: At, group: str, wanted: NewMember) -> dict[str, Any]:
    """Make a member. It joins the group, and gets partitions, with its first request for records.

    Who is silent for longer than `session_seconds` is taken for dead.
    """
    member = await at.members.run(
        at.members.create,
        group,
        wanted.name,
        topics=wanted.topics,
        start=wanted.start,
        session_seconds=wanted.session_seconds,
        auto_commit=wanted.auto_commit,
    )
    return _member(member)


@router.get("/v1/groups/{group}/members/{member}")
async def member_of(at: At, group: str, member: str) -> dict[str, Any]:
    """A member of this gateway: its topics, its partitions, and behind what it was given."""
    found = at.members.get(group, member)
    partitions = await at.members.run(at.members.assigned, found)
    positions = found.consumer.positions()
    return {
        **_member(found),
        "partitions": [
            {"topic": t, "partition": p, "position": positions.get((t, p))} for t, p in partitions
        ],
    }


@router.put("/v1/groups/{group}/members/{member}/subscription", responses=_WRONG)
async def subscribe(at: At, group: str, member: str, wanted: Subscription) -> dict[str, Any]:
    """Read these topics from now on, and no others."""
    found = at.members.get(group, member)
    await at.members.run(at.members.subscribe, found, wanted.topics)
    return _member(found)


@router.get("/v1/groups/{group}/members/{member}/records", responses=_WRONG)
async def records(
    at: At,
    group: str,
    member: str,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
    wait_seconds: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT_SECONDS, description="Wait for records so long.")
    ] = 5.0,
    batch: Annotated[
        int | None,
        Query(ge=1, le=_MOST_OFFSET, description="The last number once more: the same records."),
    ] = None,
) -> Response:
    """The next records of the member's partitions, as soon as there are some.

    `batch` counts the answers: with the same number again a lost answer is given once more. Records
    that are not committed come again when the member is gone.
    """
    found = at.members.get(group, member)

    def work() -> dict[str, Any]:
        taken = at.members.records(found, limit, wait_seconds, batch)
        return {
            "batch": taken.number,
            "records": [shown(record, at.codec) for record in taken.records],
        }

    return JSONResponse(await at.members.run(work))


@router.post("/v1/groups/{group}/members/{member}/commit", responses=_WRONG)
async def commit(at: At, group: str, member: str, wanted: Commit) -> dict[str, Any]:
    """Commit: what lies before the offsets is done, whoever has the partitions next."""
    found = at.members.get(group, member)
    given = None if wanted.offsets is None else _positions(wanted.offsets)
    done = await at.members.run(at.members.commit, found, given)
    return {"offsets": _told(done)}


@router.post("/v1/groups/{group}/members/{member}/seek", responses=_WRONG)
async def seek(at: At, group: str, member: str, wanted: Seek) -> dict[str, Any]:
    """Go on at other offsets of its partitions; nothing is committed."""
    found = at.members.get(group, member)
    if wanted.to is None:
        positions = _positions(wanted.positions)
        await at.members.run(at.members.seek, found, positions)
        return {"positions": _told(positions)}
    match wanted.to:
        case "beginning":
            find = lambda admin, topic: admin.begin_offsets(topic)  # noqa: E731
        case "end":
            find = lambda admin, topic: admin.end_offsets(topic)  # noqa: E731
        case moment:
            at_ms = milliseconds("to", moment)
            find = lambda admin, topic: admin.offsets_at(topic, at_ms)  # noqa: E731
    moved = await at.members.run(partial(at.members.seek_all, found, find))
    return {"positions": _told(moved)}


@router.delete("/v1/groups/{group}/members/{member}", status_code=204)
async def leave(at: At, group: str, member: str) -> Response:
    """The member leaves: others get its partitions at once."""
    await at.members.run(at.members.delete, group, member)
    return Response(status_code=204)


def _member(member: Member) -> dict[str, Any]:
    return {
        "group": member.group,
        "member": member.name,
        "topics": list(member.topics),
        "session_seconds": member.session_seconds,
        "auto_commit": member.auto_commit,
    }


def _lag(lag: Lag) -> dict[str, Any]:
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "end": lag.end,
        "lag": lag.lag,
    }


def _positions(given: list[Position]) -> dict[tuple[str, int], int]:
    return {(one.topic, one.partition): one.offset for one in given}


def _told(positions: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(positions.items())
    ]
