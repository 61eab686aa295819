"""Confluent REST Proxy v3: records in, and clusters, topics, partitions, groups and lag."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem.errors import MainstemError
from mainstem.gateway.embedded import BINARY, JSON, STRING, check_client_topic, to_bytes
from mainstem.gateway.services import Services, services
from mainstem.gateway.times import milliseconds
from mainstem.log.admin import TopicInfo
from mainstem.log.delivery import Place
from mainstem.log.groups import Group, GroupMember, Lag
from mainstem.log.producer import Outgoing

PREFIX = "/kafka"
"""Before all paths of REST Proxy."""
ERROR: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "`error_code` and `message`, as Confluent's clients read them.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["error_code", "message"],
                    "properties": {
                        "error_code": {"type": "integer"},
                        "message": {"type": "string"},
                    },
                }
            }
        },
    }
}
router = APIRouter(prefix="/v3/clusters", tags=["REST Proxy v3"], responses=ERROR)
At = Annotated[Services, Depends(services)]
_TYPES = {"BINARY": BINARY, "JSON": JSON, "STRING": STRING}
_DATA = {
    "type": "object",
    "properties": {"type": {"enum": [*_TYPES]}, "data": {}},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "partition_id": {"type": "integer"},
                        "headers": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "value": {"type": "string", "format": "byte"},
                                },
                            },
                        },
                        "key": _DATA,
                        "value": _DATA,
                        "timestamp": {"type": "string", "format": "date-time"},
                    },
                },
                "example": {
                    "key": {"type": "STRING", "data": "ann"},
                    "value": {"type": "JSON", "data": {"user": "ann"}},
                },
            }
        },
    }
}


@router.get("")
def clusters(at: At, request: Request) -> dict[str, Any]:
    """The one cluster there is."""
    return _list("KafkaClusterList", request, [_cluster(at)])


@router.get("/{cluster_id}")
def cluster(at: At, cluster_id: str) -> dict[str, Any]:
    """It."""
    _check(at, cluster_id)
    return _cluster(at)


@router.get("/{cluster_id}/topics")
def topics(at: At, cluster_id: str, request: Request) -> dict[str, Any]:
    """All topics but internal ones."""
    _check(at, cluster_id)
    found = [_topic(cluster_id, topic) for topic in at.admin.topics()]
    return _list("KafkaTopicList", request, found)


@router.get("/{cluster_id}/topics/{topic}")
def topic(at: At, cluster_id: str, topic: str) -> dict[str, Any]:
    """One topic."""
    _check(at, cluster_id)
    return _topic(cluster_id, _info(at, topic))


@router.get("/{cluster_id}/topics/{topic}/configs")
def configs(at: At, cluster_id: str, topic: str, request: Request) -> dict[str, Any]:
    """The settings of a topic."""
    _check(at, cluster_id)
    found = [
        {
            "kind": "KafkaTopicConfig",
            "metadata": {},
            "cluster_id": cluster_id,
            "topic_name": topic,
            "name": name,
            "value": value,
        }
        for name, value in sorted(_info(at, topic).config.items())
    ]
    return _list("KafkaTopicConfigList", request, found)


@router.get("/{cluster_id}/topics/{topic}/partitions")
def partitions(at: At, cluster_id: str, topic: str, request: Request) -> dict[str, Any]:
    """The partitions of a topic."""
    _check(at, cluster_id)
    found = [
        {
            "kind": "KafkaPartition",
            "metadata": {},
            "cluster_id": cluster_id,
            "topic_name": topic,
            "partition_id": part.number,
            "leader_id": part.leader,
            "replicas": list(part.replicas),
            "in_sync_replicas": list(part.in_sync),
        }
        for part in at.groups.parts(topic)
    ]
    return _list("KafkaPartitionList", request, found)


@router.post("/{cluster_id}/topics/{topic}/records", openapi_extra=_BODY)
async def write(at: At, cluster_id: str, topic: str, request: Request) -> Response:
    """Write a record, or several: objects one after the other, each answered by one."""
    body = await request.body()

    def work() -> list[dict[str, Any]]:
        _check(at, cluster_id)
        check_client_topic(topic)
        at.admin.metadata_of(topic)
        sent = list(_objects(body))
        records = [_outgoing(document) for document in sent]
        places = at.writer.place(topic, records)
        return [
            _written(cluster_id, document, record, place)
            for document, record, place in zip(sent, records, places, strict=True)
        ]

    done = await run_in_threadpool(work)
    if len(done) == 1:
        return JSONResponse(done[0])
    lines = "".join(json.dumps(each) + "\n" for each in done)
    return Response(lines, media_type="application/json")


@router.get("/{cluster_id}/consumer-groups")
def groups(at: At, cluster_id: str, request: Request) -> dict[str, Any]:
    """All consumer groups."""
    _check(at, cluster_id)
    found = [_group(cluster_id, at.groups.one(name)) for name in at.admin.groups()]
    return _list("KafkaConsumerGroupList", request, found)


@router.get("/{cluster_id}/consumer-groups/{group}")
def group(at: At, cluster_id: str, group: str) -> dict[str, Any]:
    """One group."""
    _check(at, cluster_id)
    return _group(cluster_id, at.groups.one(group))


@router.get("/{cluster_id}/consumer-groups/{group}/consumers")
def consumers(at: At, cluster_id: str, group: str, request: Request) -> dict[str, Any]:
    """The members of a group."""
    _check(at, cluster_id)
    found: list[dict[str, Any]] = [
        {
            "kind": "KafkaConsumer",
            "metadata": {},
            "cluster_id": cluster_id,
            "consumer_group_id": group,
            "consumer_id": member.id,
            "client_id": member.client,
            "instance_id": None,
        }
        for member in at.groups.one(group).members
    ]
    return _list("KafkaConsumerList", request, found)


@router.get("/{cluster_id}/consumer-groups/{group}/lags")
def lags(at: At, cluster_id: str, group: str, request: Request) -> dict[str, Any]:
    """How far behind a group is, by partition."""
    _check(at, cluster_id)
    owners = _owners(at.groups.one(group))
    found = [
        {
            "kind": "KafkaConsumerLag",
            "metadata": {},
            "cluster_id": cluster_id,
            "consumer_group_id": group,
            "topic_name": lag.topic,
            "partition_id": lag.partition,
            "current_offset": lag.committed,
            "log_end_offset": lag.end,
            "lag": lag.lag,
            **_owner(owners, lag),
        }
        for lag in at.groups.lags(group)
    ]
    return _list("KafkaConsumerLagList", request, found)


@router.get("/{cluster_id}/consumer-groups/{group}/lag-summary")
def lag_summary(at: At, cluster_id: str, group: str) -> dict[str, Any]:
    """The largest and the whole lag of a group."""
    _check(at, cluster_id)
    at.groups.one(group)
    found = at.groups.lags(group)
    largest = max(found, key=lambda lag: lag.lag, default=Lag("", 0, 0, 0))
    return {
        "kind": "KafkaConsumerGroupLagSummary",
        "metadata": {},
        "cluster_id": cluster_id,
        "consumer_group_id": group,
        "max_lag_topic_name": largest.topic,
        "max_lag_partition_id": largest.partition,
        "max_lag": largest.lag,
        "total_lag": sum(lag.lag for lag in found),
    }


def _check(at: Services, cluster_id: str) -> None:
    if cluster_id != at.admin.cluster_id():
        raise MainstemError("NO_SUCH_PATH", url=f"/v3/clusters/{cluster_id}")


def _info(at: Services, topic: str) -> TopicInfo:
    at.admin.metadata_of(topic)
    found = at.admin.topic(topic)
    if found is None:
        raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
    return found


def _list(kind: str, request: Request, data: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"self": str(request.url), "next": None}, "data": data}


def _cluster(at: Services) -> dict[str, Any]:
    return {"kind": "KafkaCluster", "metadata": {}, "cluster_id": at.admin.cluster_id()}


def _topic(cluster_id: str, topic: TopicInfo) -> dict[str, Any]:
    return {
        "kind": "KafkaTopic",
        "metadata": {},
        "cluster_id": cluster_id,
        "topic_name": topic.name,
        "is_internal": topic.name.startswith("_"),
        "replication_factor": topic.replication_factor,
        "partitions_count": topic.partitions,
    }


def _group(cluster_id: str, group: Group) -> dict[str, Any]:
    return {
        "kind": "KafkaConsumerGroup",
        "metadata": {},
        "cluster_id": cluster_id,
        "consumer_group_id": group.name,
        "is_simple": not group.assignor,
        "partition_assignor": group.assignor,
        "state": group.state.upper(),
    }


def _owners(group: Group) -> dict[tuple[str, int], GroupMember]:
    return {place: member for member in group.members for place in member.partitions}


def _owner(owners: dict[tuple[str, int], GroupMember], lag: Lag) -> dict[str, Any]:
    member = owners.get((lag.topic, lag.partition))
    return {
        "consumer_id": member.id if member else "",
        "client_id": member.client if member else "",
        "instance_id": None,
    }


def _objects(body: bytes) -> Iterator[dict[str, Any]]:
    """JSON objects, one after the other."""
    try:
        text = body.decode().strip()
        decoder, at = json.JSONDecoder(parse_float=Decimal), 0
        while at < len(text):
            document, at = decoder.raw_decode(text, at)
            if not isinstance(document, dict):
                raise MainstemError("BAD_REQUEST", problem="a JSON object was expected")
            yield document
            while at < len(text) and text[at].isspace():
                at += 1
    except (ValueError, RecursionError) as error:
        raise MainstemError("BAD_REQUEST", problem=f"the body is not JSON: {error}") from None
    if not text:
        raise MainstemError("BAD_REQUEST", problem="a record was expected")


def _outgoing(document: dict[str, Any]) -> Outgoing:
    partition = document.get("partition_id")
    if partition is not None and (type(partition) is not int or not 0 <= partition < 2**31):
        raise MainstemError("BAD_REQUEST", problem="partition_id: a whole number was expected")
    headers = document.get("headers") or []
    if not isinstance(headers, list):
        raise MainstemError("BAD_REQUEST", problem="headers: a list was expected")
    return Outgoing(
        _bytes(document, "key"),
        _bytes(document, "value"),
        partition=partition,
        timestamp=_timestamp(document.get("timestamp")),
        headers=tuple(map(_header, headers)),
    )


def _bytes(document: dict[str, Any], name: str) -> bytes | None:
    given = document.get(name)
    if given is None:
        return None
    form = given.get("type", "BINARY") if isinstance(given, dict) else None
    if not isinstance(form, str) or form.upper() not in _TYPES:
        known = ", ".join(_TYPES)
        raise MainstemError("BAD_REQUEST", problem=f"{name}: its type must be one of {known}")
    return to_bytes(_TYPES[form.upper()], given.get("data"))


def _header(header: Any) -> tuple[str, bytes | None]:
    name = header.get("name") if isinstance(header, dict) else None
    if not isinstance(name, str):
        raise MainstemError("BAD_REQUEST", problem="headers: each has a name and a value")
    return name, to_bytes(BINARY, header.get("value"))


def _timestamp(given: Any) -> int | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise MainstemError("BAD_REQUEST", problem="timestamp: a time was expected")
    found = milliseconds("timestamp", given)
    if found < 0:
        raise MainstemError("BAD_REQUEST", problem="timestamp: it is before 1970")
    return found


def _written(
    cluster_id: str, document: dict[str, Any], record: Outgoing, place: Place
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": place.topic,
        "partition_id": place.partition,
        "offset": place.offset,
    }
    for name, data in (("key", record.key), ("value", record.value)):
        if data is not None:
            told[name] = {"type": document[name].get("type", "BINARY"), "size": len(data)}
    return told
