"""Tools that look: objects, what is late or failing, quarantine, schemas. None changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from mainstem.errors import MainstemError
from mainstem.mcp.tool import Arguments, Place, Tool
from mainstem.schemas.diff import diff

_LISTED = ("name", "kind", "topic", "key", "comment", "inputs", "connector", "paused")
_WELL = ("running", "idle", "paused", "starting")
Name = Annotated[str, Field(min_length=1, max_length=200)]


class ObjectsArguments(Arguments):
    """What `list_objects` takes."""

    kind: Annotated[
        Literal["stream", "table", "source", "sink"] | None, Field(description="Only these.")
    ] = None


class ObjectArguments(Arguments):
    """What `describe_object` takes."""

    name: Name


class StatusArguments(Arguments):
    """What `status` takes."""

    late_seconds: Annotated[
        float, Field(ge=0, description="A flow that is so far behind is late.")
    ] = 10.0


class QuarantineArguments(Arguments):
    """What `quarantine_list` takes."""

    stream: Annotated[str | None, Field(description="Of this stream or table.")] = None
    stage: Annotated[str | None, Field(description="Refused there: decode, view, ...")] = None
    cause: Annotated[str | None, Field(description="An error code, or text in the cause.")] = None
    state: Literal["held", "replayed", "discarded", "any"] = "held"
    limit: Annotated[int, Field(ge=1, le=200)] = 20
    before: Annotated[int | None, Field(ge=0, description="`next` of the page before.")] = None


class QuarantinedArguments(Arguments):
    """What `quarantine_show` takes."""

    id: Annotated[int, Field(ge=0, description="As quarantine_list shows it.")]


class SchemaArguments(Arguments):
    """What `schema_show` takes."""

    subject: Annotated[Name, Field(description="As describe_object shows it: orders-value.")]
    version: Annotated[int | None, Field(ge=1, description="Else the newest.")] = None


class DiffArguments(Arguments):
    """What `schema_diff` takes."""

    subject: Name
    older: Annotated[int | None, Field(ge=1, description="Else the one before.")] = None
    newer: Annotated[int | None, Field(ge=1, description="Else the newest.")] = None


def list_objects(place: Place, asked: ObjectsArguments) -> dict[str, Any]:
    """Names and kinds."""
    shown = []
    for one in place.client.objects():
        kind = "sink" if one.get("sink") else one["kind"]
        if asked.kind in (None, kind):
            brief = {part: one[part] for part in _LISTED if one.get(part)}
            state = (one.get("status") or {}).get("state")
            shown.append({**brief, "kind": kind, **({"state": state} if state else {})})
    return {"objects": shown}


def describe_object(place: Place, asked: ObjectArguments) -> dict[str, Any]:
    """All that is known of one; a table with the state of its view."""
    found = place.client.object(asked.name)
    view = next((v for v in place.client.status()["views"] if v["name"] == found["name"]), None)
    return found if view is None else {**found, "view": view}


def status(place: Place, asked: StatusArguments) -> dict[str, Any]:
    """What needs a look; how many there are of what does not."""
    document = place.client.status()
    flows, views = document["flows"], document.get("views") or []
    connectors = document.get("connectors") or []
    failing = [
        _brief(one, "flow", "state", "error", "restarts")
        for one in flows
        if one.get("error") or one["state"] not in _WELL
    ]
    failing += [_brief(one, "name", "error") for one in views if one.get("error")]
    failing += [_brief(one, "name", "state", "error") for one in connectors if one.get("error")]
    late = [
        _brief(one, "flow", "state", "lag_seconds", "lag_records")
        for one in flows
        if (one.get("lag_seconds") or 0) >= asked.late_seconds
    ]
    behind = [
        _brief(one, "name", "lag_records", "offsets", "end_offsets", "updated_at")
        for one in views
        if one.get("lag_records")
    ]
    waiting = [
        _brief(one, "flow", "late_waiting", "late_sample")
        for one in flows
        if one.get("late_sample")
    ]
    quarantine = document.get("quarantine") or {}
    engine = (document.get("engine") or {}).get("state", "unknown")
    held = quarantine.get("records") or 0
    return {
        "citation": f"As of {document.get('at', 'now')}: engine {engine}, {len(flows)} flows, "
        f"{len(failing)} failing, {len(late)} late; {len(views)} views, {len(behind)} behind; "
        f"{held} records in quarantine.",
        "project": document.get("project"),
        "checks": document.get("checks"),
        "engine": engine,
        "failing": failing,
        "late": late,
        "views_behind": behind,
        "came_too_late": waiting,
        "paused": [one["flow"] for one in flows if one["state"] == "paused"],
        "broken_rules": [one for one in document.get("rules") or () if one.get("records")],
        "quarantine": quarantine,
    }


def quarantine_list(place: Place, asked: QuarantineArguments) -> dict[str, Any]:
    """A page of records, and how many there are by cause."""
    chosen = {"stream": asked.stream, "stage": asked.stage, "cause": asked.cause}
    filters = {name: text for name, text in chosen.items() if text is not None}
    page = {"state": asked.state, "limit": str(asked.limit)}
    if asked.before is not None:
        page["before"] = str(asked.before)
    found = place.client.quarantine({**filters, **page})
    return {
        "counts": place.client.quarantine_summary(filters),
        "records": found["records"],
        "next": found.get("next"),
    }


def quarantine_show(place: Place, asked: QuarantinedArguments) -> dict[str, Any]:
    """One whole record."""
    return place.client.quarantined(asked.id)


def schema_show(place: Place, asked: SchemaArguments) -> dict[str, Any]:
    """The text of a schema, and what the registry says of it."""
    registry, subject, version = place.registry, asked.subject, asked.version
    found = registry.latest(subject) if version is None else registry.version(subject, version)
    return {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "type": found.schema.type.value,
        "level": registry.level(subject).value,
        "versions": registry.versions(subject),
        "references": [vars(one) for one in found.schema.references],
        "schema": found.schema.text,
    }


def schema_diff(place: Place, asked: DiffArguments) -> dict[str, Any]:
    """What has changed between two versions, and what of it breaks the rule of the subject."""
    registry, subject = place.registry, asked.subject
    known = registry.versions(subject)
    newer = known[-1] if asked.newer is None else asked.newer
    earlier = [version for version in known if version < newer]
    if asked.older is None and not earlier:
        problem = f"{subject} has no version before {newer}"
        raise MainstemError("INVALID_ARGUMENTS", problem=problem)
    older = earlier[-1] if asked.older is None else asked.older
    level = registry.level(subject)
    changes = diff(
        registry.version(subject, older).schema,
        registry.version(subject, newer).schema,
        registry.resolve,
    )
    return {
        "subject": subject,
        "older": older,
        "newer": newer,
        "level": level.value,
        "compatible": not any(change.breaking(level) for change in changes),
        "changes": [change.as_dict(level) for change in changes],
    }


def _brief(one: Mapping[str, Any], *parts: str) -> dict[str, Any]:
    return {part: one[part] for part in parts if one.get(part) is not None}


LOOKING = (
    Tool(
        "list_objects",
        "List objects",
        "Streams, tables, sources and sinks: name, kind, what each reads, and its state.",
        ObjectsArguments,
        list_objects,
    ),
    Tool(
        "describe_object",
        "Describe an object",
        "One stream, table, source or sink: definition, columns with types, key, topic, rules, the "
        "state of its flow, and the offsets of its view.",
        ObjectArguments,
        describe_object,
    ),
    Tool(
        "status",
        "What is late or failing",
        "How the platform is: which flows fail or are late and why, which views are behind, what "
        "is in quarantine, which rules were broken.",
        StatusArguments,
        status,
    ),
    Tool(
        "quarantine_list",
        "List the quarantine",
        "Records that could not be used, newest first, with cause and origin; and counts by cause.",
        QuarantineArguments,
        quarantine_list,
    ),
    Tool(
        "quarantine_show",
        "Show a record in quarantine",
        "One whole record: its value, where it came from, why it is here, what became of it.",
        QuarantinedArguments,
        quarantine_show,
    ),
    Tool(
        "schema_show",
        "Show a schema",
        "A registered schema: its text, id, versions, and the compatibility level of its subject.",
        SchemaArguments,
        schema_show,
    ),
    Tool(
        "schema_diff",
        "Compare two versions of a schema",
        "What has changed between two versions, and what of it breaks readers or writers.",
        DiffArguments,
        schema_diff,
    ),
)
