"""Confluent REST Proxy v2: records in, and consumers."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from mainstem.errors import MainstemError
from mainstem.gateway.embedded import (
    AVRO,
    BINARY,
    FORMATS,
    check_client_topic,
    read_json,
    shown_as,
    to_bytes,
)
from mainstem.gateway.members import LONGEST_WAIT_SECONDS, Batch
from mainstem.gateway.routes.kafka_v3 import ERROR, PREFIX
from mainstem.gateway.services import Services, services
from mainstem.log.producer import Outgoing
from mainstem.schemas.avro_in import AvroIn

router = APIRouter(tags=["REST Proxy v2"], responses=ERROR)
At = Annotated[Services, Depends(services)]
_EMBEDDED = re.compile(r"application/vnd\.kafka\.([a-z]+)\.v2\+json")
_SESSION_SECONDS = 280.0
_START = ("earliest", "latest")
_INSTANCE = "/consumers/{group}/instances/{instance}"


def _body(schema: dict[str, Any], example: Any, *, required: bool = True) -> dict[str, Any]:
    content = {"schema": schema, "example": example}
    kinds = ("application/vnd.kafka.v2+json", "application/json")
    return {
        "requestBody": {"required": required, "content": dict.fromkeys(kinds, content)},
    }


_OBJECT = {"type": "object"}
_PLACE = {"topic": "orders", "partition": 0}
_OFFSETS = _body(_OBJECT, {"offsets": [{**_PLACE, "offset": 7}]}, required=False)
_PARTITIONS = _body(_OBJECT, {"partitions": [_PLACE]})
_TOPICS = _body(_OBJECT, {"topics": ["orders"]})
_NEW = _body(_OBJECT, {"format": "json", "auto.offset.reset": "earliest"}, required=False)
_RECORDS = _body(_OBJECT, {"records": [{"key": "ann", "value": {"user": "ann"}}]})


@router.get("/topics")
def topics(at: At) -> list[str]:
    """The names of all topics but internal ones."""
    return [topic.name for topic in at.admin.topics()]


@router.get("/topics/{topic}")
def topic(at: At, topic: str) -> dict[str, Any]:
    """A topic with settings and partitions."""
    parts = at.groups.parts(topic)
    found = at.admin.topic(topic)
    return {
        "name": topic,
        "configs": {} if found is None else dict(found.config),
        "partitions": [
            {
                "partition": part.number,
                "leader": part.leader,
                "replicas": [
                    {
                        "broker": broker,
                        "leader": broker == part.leader,
                        "in_sync": broker in part.in_sync,
                    }
                    for broker in part.replicas
                ],
            }
            for part in parts
        ],
    }


@router.post("/topics/{topic}", openapi_extra=_RECORDS)
async def write(at: At, topic: str, request: Request) -> dict[str, Any]:
    """Write records: JSON, binary (base64), or Avro by the content type."""
    form = _form(request.headers.get("content-type", ""), "json")
    body = await request.body()

    def work() -> dict[str, Any]:
        check_client_topic(topic)
        at.admin.metadata_of(topic)
        document = _object(read_json(body))
        sent = document.get("records")
        if not isinstance(sent, list) or not sent:
            raise _bad("records: a list of at least one record was expected")
        schemas = {
            part: AvroIn(
                at.schema_source,
                f"{topic}-{part}",
                _text(document.get(f"{part}_schema")),
                _number(document.get(f"{part}_schema_id"), f"{part}_schema_id"),
            )
            for part in ("key", "value")
            if form == AVRO and any(_object(record).get(part) is not None for record in sent)
        }
        records = [_outgoing(form, _object(record), schemas) for record in sent]
        places = at.writer.place(topic, records)
        offsets = [
            {"partition": p.partition, "offset": p.offset, "error_code": None, "error": None}
            for p in places
        ]
        ids = {f"{part}_schema_id": schema.id for part, schema in schemas.items()}
        return {"key_schema_id": None, "value_schema_id": None, **ids, "offsets": offsets}

    return await at.members.run(work)


@router.post("/consumers/{group}", openapi_extra=_NEW)
async def create(at: At, group: str, request: Request) -> dict[str, Any]:
    """Make a consumer."""
    body = await request.body()
    wanted = _object(read_json(body)) if body else {}
    form = str(wanted.get("format", BINARY)).lower()
    if form not in FORMATS:
        raise _bad(f"format: one of {', '.join(FORMATS)} was expected")
    start = str(wanted.get("auto.offset.reset", _START[0]))
    if start not in _START:
        raise _bad(f"auto.offset.reset: one of {', '.join(_START)} was expected")
    member = await at.members.run(
        at.members.create,
        group,
        _text(wanted.get("name")),
        start=start,
        session_seconds=_SESSION_SECONDS,
        auto_commit=str(wanted.get("auto.commit.enable", "false")).lower() == "true",
        form=form,
    )
    base = f"{request.url.scheme}://{request.url.netloc}{PREFIX}"
    uri = f"{base}/consumers/{group}/instances/{member.name}"
    return {"instance_id": member.name, "base_uri": uri}


@router.delete(_INSTANCE, status_code=204)
async def delete(at: At, group: str, instance: str) -> Response:
    """The consumer leaves."""
    await at.members.run(at.members.delete, group, instance)
    return Response(status_code=204)


@router.post(f"{_INSTANCE}/subscription", status_code=204, openapi_extra=_TOPICS)
async def subscribe(at: At, group: str, instance: str, request: Request) -> Response:
    """Read these topics."""
    member = at.members.get(group, instance)
    wanted = _object(read_json(await request.body())).get("topics")
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise _bad("topics: a list of names was expected; patterns are not taken here")
    await at.members.run(at.members.subscribe, member, wanted)
    return Response(status_code=204)


@router.get(f"{_INSTANCE}/subscription")
async def subscription(at: At, group: str, instance: str) -> dict[str, Any]:
    """What it reads."""
    return {"topics": list(at.members.get(group, instance).topics)}


@router.delete(f"{_INSTANCE}/subscription", status_code=204)
async def unsubscribe(at: At, group: str, instance: str) -> Response:
    """Read nothing more."""
    await at.members.run(at.members.subscribe, at.members.get(group, instance), [])
    return Response(status_code=204)


@router.get(f"{_INSTANCE}/assignments")
async def assignments(at: At, group: str, instance: str) -> dict[str, Any]:
    """The partitions that it has now."""
    found = await at.members.run(at.members.assigned, at.members.get(group, instance))
    return {"partitions": [{"topic": t, "partition": p} for t, p in found]}


@router.get(f"{_INSTANCE}/records")
async def records(
    at: At,
    group: str,
    instance: str,
    request: Request,
    timeout: Annotated[int, Query(ge=0, description="Milliseconds.")] = 1000,
    max_bytes: Annotated[int, Query(description="Taken for what it is: a wish.")] = 0,
) -> Response:
    """The next records, in the format of the consumer."""
    del max_bytes  # what is fetched ahead is bounded anyway
    member = at.members.get(group, instance)
    form = _form(request.headers.get("accept", ""), member.form)
    if form != member.form:
        raise _bad(f"the format of this consumer is {member.form}")
    wait = min(timeout / 1000, LONGEST_WAIT_SECONDS)

    def work() -> str:
        taken = at.members.records(member, 500, wait)
        try:
            return "[" + ",".join(shown_as(form, r, at.codec) for r in taken.records) + "]"
        except MainstemError:
            at.members.seek(member, _begin(taken))  # none of them was given
            raise

    text = await at.members.run(work)
    return Response(text, media_type=f"application/vnd.kafka.{form}.v2+json")


@router.post(f"{_INSTANCE}/offsets", openapi_extra=_OFFSETS)
async def commit(at: At, group: str, instance: str, request: Request) -> dict[str, Any]:
    """Commit these records, or all that were given."""
    member = at.members.get(group, instance)
    body = await request.body()
    document = _object(read_json(body)) if body else {}
    given = None
    if document.get("offsets") is not None:
        # here an offset is that of the last record which is done
        given = {place: offset + 1 for place, offset in _offsets(document, "offsets").items()}
    await at.members.run(at.members.commit, member, given)
    return {}


@router.get(f"{_INSTANCE}/offsets", openapi_extra=_PARTITIONS)
async def committed(at: At, group: str, instance: str, request: Request) -> dict[str, Any]:
    """What was committed of some partitions."""
    member = at.members.get(group, instance)
    body = await request.body()
    places = list(_offsets(_object(read_json(body)) if body else {}, "partitions"))
    found = await at.members.run(at.members.committed, member, places)
    return {
        "offsets": [
            {"topic": topic, "partition": partition, "offset": offset, "metadata": ""}
            for (topic, partition), offset in sorted(found.items())
        ]
    }


@router.post(f"{_INSTANCE}/positions", status_code=204, openapi_extra=_OFFSETS)
async def seek(at: At, group: str, instance: str, request: Request) -> Response:
    """Go on at these offsets."""
    member = at.members.get(group, instance)
    positions = _offsets(_object(read_json(await request.body())), "offsets")
    await at.members.run(at.members.seek, member, positions)
    return Response(status_code=204)


@router.post(f"{_INSTANCE}/positions/beginning", status_code=204, openapi_extra=_PARTITIONS)
async def seek_beginning(at: At, group: str, instance: str, request: Request) -> Response:
    """Go on at the first records."""
    member = at.members.get(group, instance)
    places = list(_offsets(_object(read_json(await request.body())), "partitions"))
    await at.members.run(
        at.members.seek_all, member, lambda admin, name: admin.begin_offsets(name), places
    )
    return Response(status_code=204)


@router.post(f"{_INSTANCE}/positions/end", status_code=204, openapi_extra=_PARTITIONS)
async def seek_end(at: At, group: str, instance: str, request: Request) -> Response:
    """Go on behind the last records."""
    member = at.members.get(group, instance)
    places = list(_offsets(_object(read_json(await request.body())), "partitions"))
    await at.members.run(
        at.members.seek_all, member, lambda admin, name: admin.end_offsets(name), places
    )
    return Response(status_code=204)


def _form(content: str, otherwise: str) -> str:
    """The format that a content type names."""
    found = _EMBEDDED.search(content)
    form = otherwise if found is None else found[1]
    if form not in FORMATS:
        raise _bad(f"the content type must name one of {', '.join(FORMATS)}")
    return form


def _outgoing(form: str, record: dict[str, Any], schemas: dict[str, AvroIn]) -> Outgoing:
    made = {
        part: schemas[part].encode(record[part])
        if part in schemas and record.get(part) is not None
        else to_bytes(form, record.get(part))
        for part in ("key", "value")
    }
    partition = _number(record.get("partition"), "partition")
    return Outgoing(made["key"], made["value"], partition=partition)


def _begin(batch: Batch) -> dict[tuple[str, int], int]:
    first: dict[tuple[str, int], int] = {}
    for record in batch.records:
        first.setdefault((record.topic, record.partition), record.offset)
    return first


def _offsets(document: dict[str, Any], name: str) -> dict[tuple[str, int], int]:
    given = document.get(name)
    if not isinstance(given, list):
        raise _bad(f"{name}: a list was expected")
    found = {}
    for one in map(_object, given):
        topic = _text(one.get("topic"))
        partition = _number(one.get("partition"), "partition")
        offset = _number(one.get("offset", 0), "offset")
        if topic is None or partition is None or offset is None:
            raise _bad(f"{name}: each has topic and partition")
        found[topic, partition] = offset
    return found


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise _bad("a JSON object was expected")
    return document


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _bad("a text was expected")
    return value


def _number(value: Any, name: str) -> int | None:
    most = 2**63 - 2 if name == "offset" else 2**31 - 1
    if value is not None and (type(value) is not int or not 0 <= value <= most):
        raise _bad(f"{name}: a whole number was expected")
    return value


def _bad(problem: str) -> MainstemError:
    return MainstemError("BAD_REQUEST", problem=problem)
