"""Who would feel a change of a subject's schema: streams, flows and sinks, and consumer groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.cli.context import Session
from mainstem.errors import MainstemError

Objects = Sequence[Mapping[str, Any]]
_SUFFIXES = ("-value", "-key")
_KINDS = {"sink": "sink", "event": "event function"}
"""Python functions that write no records of their own."""


def topic_of(subject: str) -> str | None:
    """The topic whose records a subject is about, as serializers name subjects by default."""
    for suffix in _SUFFIXES:
        if subject.endswith(suffix) and subject != suffix:
            return subject.removesuffix(suffix)
    return None


def catalog_objects(session: Session) -> Objects | None:
    """What the catalog holds, with the topics of wildcard streams; None when nobody tells."""
    try:
        found = session.client.objects()
        return [
            session.client.object(one["name"])
            if one["wildcard"]
            else {**one, "topics": [one["topic"]]}
            for one in found
        ]
    except MainstemError as error:
        session.say_more(f"who uses a field is not known: {error.message}")
        return None


def consumers(session: Session, topic: str) -> list[str] | None:
    """Consumer groups of other programs that have read a topic; None when nobody tells."""
    try:
        told = session.client.groups(topic)
    except MainstemError as error:
        session.say_more(f"who consumes {topic} is not known: {error.message}")
        return None
    more = [f"{told['not_asked']} groups that were not asked"] if told["not_asked"] else []
    return [*told["groups"], *more]


def users(objects: Objects, subject: str, field: str | None) -> list[str]:
    """Names and kinds of those that read the field of the subject's records, the nearest first.

    None stands for the record as a whole. A flow uses what its query mentions; what it hands on
    under the same name is followed further. A Python flow whose columns are not known counts.
    """
    found: dict[str, str] = {}
    todo = [one for one in objects if is_about(one, subject) and _has(one, field)]
    while todo:
        one = todo.pop(0)
        if one["name"] in found:
            continue
        kind = _KINDS.get(one["function"], one["kind"])
        found[one["name"]] = f"{one['name']} ({kind})"
        todo += [
            flow
            for flow in objects
            if one["name"] in flow["inputs"] and _has(one, field) and _reads(flow, field)
        ]
    return list(found.values())


def is_about(one: Mapping[str, Any], subject: str) -> bool:
    """True when records of the object have the subject's schemas, by its topic or by their name."""
    if one["subject"] == subject:
        return True
    whole = one["subject"] is None or subject.endswith(_SUFFIXES[1])
    return whole and topic_of(subject) in one["topics"]


def _has(one: Mapping[str, Any], field: str | None) -> bool:
    return field is None or field.lower() in (c["name"].lower() for c in one["columns"])


def _reads(flow: Mapping[str, Any], field: str | None) -> bool:
    read = flow["columns_read"]
    return field is None or not read or "*" in read or field.lower() in read
