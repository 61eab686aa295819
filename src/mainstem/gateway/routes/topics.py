"""Topics of the log and their records, read from any place, with long poll."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from mainstem.errors import MainstemError
from mainstem.gateway.paging import PAGE, After, Limit, page
from mainstem.gateway.routes.problems_shown import problems
from mainstem.gateway.services import Services, services
from mainstem.gateway.shown import shown
from mainstem.gateway.times import milliseconds
from mainstem.log.admin import TopicInfo
from mainstem.log.consumer import Reader
from mainstem.vocabulary import Offsets, Record, group_of

router = APIRouter(tags=["topics"])
_MAX_WAIT_SECONDS = 30.0
_MOST_GROUPS = 200
"""Each is asked by a client of its own."""
_TUNING = {"fetch.wait.max.ms": 50}


@router.get("/v1/topics")
def topics(
    at: Annotated[Services, Depends(services)],
    internal: Annotated[bool, Query(description="Also Mainstem's own and Kafka's.")] = False,
    limit: Limit = PAGE,
    after: After = None,
) -> dict[str, Any]:
    """Topics with partitions and settings, by name."""
    found = {topic.name: topic for topic in at.admin.topics(internal)}
    names, following = page(list(found), limit, after)
    begin, end = at.admin.all_begin_offsets(names), at.admin.all_end_offsets(names)
    return {
        "topics": [_topic(found[name], begin.get(name, {}), end.get(name, {})) for name in names],
        "next": following,
    }


@router.get("/v1/topics/{topic}", responses=problems(404, 503))
def one(at: Annotated[Services, Depends(services)], topic: str) -> dict[str, Any]:
    """A topic with its settings and partitions."""
    parts = at.groups.parts(topic)
    found = at.admin.topic(topic)
    if found is None:  # deleted between the two questions
        raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
    begin, end = at.admin.begin_offsets(topic), at.admin.end_offsets(topic)
    return {
        **_topic(found, begin, end),
        "by_partition": [
            {
                "partition": part.number,
                "begin": begin.get(part.number),
                "end": end.get(part.number),
                "leader": part.leader,
                "replicas": list(part.replicas),
                "in_sync": list(part.in_sync),
            }
            for part in parts
        ],
    }


@router.get("/v1/topics/{topic}/groups")
def groups(at: Annotated[Services, Depends(services)], topic: str) -> dict[str, Any]:
    """Consumer groups of other programs that have read the topic, by what they committed.

    A consumer that commits nothing is not known. `not_asked`: so many groups are too many to ask.
    """
    at.admin.begin_offsets(topic)  # it must be there
    found = [name for name in at.admin.groups() if not name.startswith(group_of(""))]
    asked = found[:_MOST_GROUPS]
    return {"groups": at.admin.groups_of(topic, asked), "not_asked": len(found) - len(asked)}


@router.get("/v1/topics/{topic}/records")
def records(
    at: Annotated[Services, Depends(services)],
    topic: str,
    partition: Annotated[int | None, Query(ge=0)] = None,
    offset: Annotated[int | None, Query(ge=0, description="From this offset on.")] = None,
    moment: Annotated[
        str | None, Query(alias="time", description="From this time on, ISO-8601.")
    ] = None,
    last: Annotated[int | None, Query(ge=1, le=10_000, description="The last so many.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    wait_seconds: Annotated[
        float, Query(ge=0, le=_MAX_WAIT_SECONDS, description="Wait for records so long.")
    ] = 0.0,
) -> dict[str, Any]:
    """Records of a topic, and the offsets to go on from."""
    if sum(place is not None for place in (offset, moment, last)) > 1:
        raise MainstemError("BAD_REQUEST", problem="give one of offset, time and last")
    begin, end = at.admin.begin_offsets(topic), at.admin.end_offsets(topic)
    if partition is not None:
        if partition not in begin:
            raise MainstemError("BAD_REQUEST", problem=f"there is no partition {partition}")
        begin, end = {partition: begin[partition]}, {partition: end[partition]}
    elif offset is not None and len(begin) > 1:
        raise MainstemError("BAD_REQUEST", problem="offset needs partition")
    if offset is not None:
        start = {p: max(offset, first) for p, first in begin.items()}
    elif moment is not None:
        found = at.admin.offsets_at(topic, milliseconds("time", moment))
        start = {p: found[p] for p in begin}
    elif last is not None:
        # some offsets are markers of transactions: look further back than the number says
        start = {p: max(begin[p], end[p] - 2 * last - 100) for p in begin}
        limit = sum(end[p] - start[p] for p in start)
    else:
        start = begin
    taken = list(_read(at, topic, start, end, limit, wait_seconds))
    if last is not None:
        taken = sorted(taken, key=lambda r: (r.timestamp, r.partition, r.offset))[-last:]
    following = dict(start)
    for record in taken:
        following[record.partition] = max(following[record.partition], record.offset + 1)
    return {
        "records": [shown(record, at.codec) for record in taken],
        "next": {str(p): o for p, o in sorted(following.items())},
        "end": {str(p): o for p, o in sorted(end.items())},
    }


def _topic(topic: TopicInfo, begin: Offsets, end: Offsets) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        # about: offsets of deleted ones and of markers count, too
        "records": sum(end.get(p, first) - first for p, first in begin.items()),
        "config": dict(topic.config),
    }


def _read(
    at: Services,
    topic: str,
    start: dict[int, int],
    end: dict[int, int],
    limit: int,
    wait_seconds: float,
) -> Iterator[Record]:
    """Up to `limit` records; waits for the first one only when there is none yet."""
    there = any(start[p] < end[p] for p in start)
    deadline = time.monotonic() + (10.0 if there else wait_seconds)
    if not there and not wait_seconds:
        return
    count = 0
    with _reader(at, topic, start) as reader:
        while count < limit and time.monotonic() < deadline:
            batch = reader.step(limit - count, max(0.0, deadline - time.monotonic()))
            yield from batch
            count += len(batch)
            positions = reader.positions()[topic]
            if (count or there) and all(positions[p] >= end[p] for p in start):
                return


@contextmanager
def _reader(at: Services, topic: str, start: dict[int, int]) -> Iterator[Reader]:
    reader = Reader(at.connection, {topic: start}, committed=True, tuning=_TUNING)
    try:
        yield reader
    finally:
        reader.close()
