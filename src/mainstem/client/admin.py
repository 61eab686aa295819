"""Definitions, flows, topics, connectors, quarantine: what a person who looks after them asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mainstem.client.calling import Calls, Event
from mainstem.client.html import preformatted
from mainstem.client.transport import blocking, iterating
from mainstem.client.wire import path

Files = Sequence[Mapping[str, str]]
"""Definitions: `path` and `text` of each file."""


class Plan(dict[str, Any]):
    """What definitions would change; `apply` takes it back. `str()` words it."""

    files: Files

    def __init__(self, answer: Mapping[str, Any], files: Files) -> None:
        super().__init__(answer)
        self.files = files

    def __str__(self) -> str:
        return str(self.get("text", "")).rstrip()

    def _repr_html_(self) -> str:
        return preformatted(str(self))


class AsyncAdmin(Calls):
    """Those calls."""

    async def plan(self, files: Files | str | Path | None = None) -> Plan:
        """What definitions would change.

        Those of a project's folder: the one that is named, or else the one that the working folder
        is in. Or of texts, as `[{"path": ..., "text": ...}]`.
        """
        given = _files(files)
        answer = await self._call("POST", "/v1/plan", json={"files": list(given)})
        return Plan(answer, given)

    async def apply(
        self, files: Plan | Files, digest: str | None = None, revision: int | None = None
    ) -> dict[str, Any]:
        """Carry out exactly this plan (or that of the files with this digest and revision)."""
        if isinstance(files, Plan):
            digest, revision, files = files["digest"], files["revision"], files.files
        body = {"files": list(files), "digest": digest, "revision": revision}
        return await self._call("POST", "/v1/apply", json=body)

    async def status(self) -> dict[str, Any]:
        """Engine, flows, views and quarantine."""
        return await self._call("GET", "/v1/status")

    async def objects(self) -> list[dict[str, Any]]:
        """All streams and tables."""
        return list((await self._call("GET", "/v1/objects"))["objects"])

    async def object(self, name: str) -> dict[str, Any]:
        """One stream or table."""
        return await self._call("GET", path("objects", name))

    async def asyncapi(self, form: str, version: str) -> str:
        """The AsyncAPI document as `json` or `yaml`."""
        params = {"format": form, "version": version}
        return (await self._response("GET", "/v1/asyncapi", params=params)).text

    async def drop(self, name: str, *, cascade: bool = False) -> dict[str, Any]:
        """Drop an object, with CASCADE also all that depend on it."""
        params = {"cascade": str(cascade).lower()}
        return await self._call("DELETE", path("objects", name), params=params)

    async def pause(self, name: str) -> dict[str, Any]:
        """Stop a flow where it is."""
        return await self._call("POST", path("objects", name, "pause"))

    async def resume(self, name: str) -> dict[str, Any]:
        """Let a paused flow go on."""
        return await self._call("POST", path("objects", name, "resume"))

    async def backfills(self) -> list[dict[str, Any]]:
        """The last backfill of each table or stream that had one."""
        return list((await self._call("GET", "/v1/backfills"))["backfills"])

    async def backfill(self, name: str) -> dict[str, Any]:
        """The last backfill of a table or stream."""
        return await self._call("GET", path("backfills", name))

    async def start_backfill(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Compute a table anew, or add older records to a stream."""
        return await self._call("POST", path("backfills", name), json=dict(request))

    async def turn_backfill(
        self, name: str, verb: str, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Pause or resume a backfill."""
        return await self._call("POST", path("backfills", name, verb), json=dict(request or {}))

    async def cancel_backfill(self, name: str) -> dict[str, Any]:
        """Give a backfill up."""
        return await self._call("DELETE", path("backfills", name))

    async def rebuild_sink(self, name: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Fill another target of a sink, which then takes the old one's place."""
        return await self._call("POST", path("sinks", name, "rebuild"), json={"dry_run": dry_run})

    async def connectors(self) -> dict[str, Any]:
        """Every connector of a source, and how Kafka Connect itself is."""
        return await self._call("GET", "/v1/connectors")

    async def connector(self, name: str) -> dict[str, Any]:
        """The connector of a source."""
        return await self._call("GET", path("connectors", name))

    async def restart_connector(self, name: str, *, only_failed: bool = False) -> dict[str, Any]:
        """Start a connector and its tasks again."""
        params = {"only_failed": str(only_failed).lower()}
        return await self._call("POST", path("connectors", name, "restart"), params=params)

    async def turn_connector(self, name: str, verb: str) -> dict[str, Any]:
        """Pause or resume a connector."""
        return await self._call("POST", path("connectors", name, verb))

    async def connector_offsets(self, name: str) -> list[dict[str, Any]]:
        """How far a connector has come."""
        return list((await self._call("GET", path("connectors", name, "offsets")))["offsets"])

    async def reset_connector(self, name: str) -> dict[str, Any]:
        """Forget how far a paused connector has come."""
        return await self._call("DELETE", path("connectors", name, "offsets"))

    async def snapshot_connector(self, name: str, tables: Sequence[str] = ()) -> dict[str, Any]:
        """Have the rows of captured tables read once more; without tables, of all."""
        params = {"table": list(tables)}
        return await self._call("POST", path("connectors", name, "snapshot"), params=params)

    async def forget_connector(self, name: str) -> dict[str, Any]:
        """Remove the connector of a dropped source, though its system does not answer."""
        return await self._call("DELETE", path("connectors", name))

    async def topics(self) -> list[dict[str, Any]]:
        """All topics but the internal ones."""
        return await self._pages("/v1/topics", "topics")

    async def topic(self, name: str) -> dict[str, Any]:
        """A topic with its settings, and leader, replicas and offsets of each partition."""
        return await self._call("GET", path("topics", name))

    async def groups(self, topic: str) -> dict[str, Any]:
        """Consumer groups that have read a topic, and how many were not asked."""
        return await self._call("GET", path("topics", topic, "groups"))

    async def all_groups(self) -> list[str]:
        """The names of all consumer groups, those of flows, too."""
        return await self._pages("/v1/groups", "groups")

    async def group(self, name: str) -> dict[str, Any]:
        """A group with its members, what it has committed, and how far behind it is."""
        return await self._call("GET", path("groups", name))

    async def try_schema(self, topic: str, request: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Would the last records pass a schema? `progress` events, then `found`."""
        where = path("topics", topic, "trial")
        async for event in self._events("POST", where, json=dict(request)):
            yield event

    async def try_definitions(self, request: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Would the last records fit the definitions in a file? `found` for each of them."""
        async for event in self._events("POST", "/v1/trial", json=dict(request)):
            yield event

    async def try_transforms(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What transforms make of sample records."""
        return await self._call("POST", "/v1/transforms/trial", json=dict(request))

    async def quarantine(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """A page of records in quarantine, newest first."""
        return await self._call("GET", "/v1/quarantine", params=dict(filters))

    async def quarantine_summary(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """How many records are in quarantine, by stream or table, stage and cause."""
        answer = await self._call("GET", "/v1/quarantine/summary", params=dict(filters))
        return list(answer["counts"])

    async def quarantined(self, id: int) -> dict[str, Any]:
        """One whole record of the quarantine."""
        return await self._call("GET", f"/v1/quarantine/{id}")

    async def replay(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write records of the quarantine again to where they came from."""
        return await self._call("POST", "/v1/quarantine/replay", json=dict(request))

    async def discard(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Give records of the quarantine up."""
        return await self._call("POST", "/v1/quarantine/discard", json=dict(request))

    async def _pages(self, where: str, name: str) -> list[Any]:
        found: list[Any] = []
        page = await self._call("GET", where)
        while True:
            found += page[name]
            if page.get("next") is None:
                return found
            page = await self._call("GET", where, params={"after": page["next"]})


def _files(files: Files | str | Path | None) -> Files:
    if files is not None and not isinstance(files, (str, Path)):
        return list(files)
    from mainstem.client.connecting import project_of
    from mainstem.definitions.project import read_files

    return [{"path": name, "text": text} for name, text in read_files(project_of(files).folder)]


class Admin:
    """The same calls, each done when it returns."""

    _aio: AsyncAdmin

    plan = blocking(AsyncAdmin.plan)
    apply = blocking(AsyncAdmin.apply)
    status = blocking(AsyncAdmin.status)
    objects = blocking(AsyncAdmin.objects)
    object = blocking(AsyncAdmin.object)
    asyncapi = blocking(AsyncAdmin.asyncapi)
    drop = blocking(AsyncAdmin.drop)
    pause = blocking(AsyncAdmin.pause)
    resume = blocking(AsyncAdmin.resume)
    backfills = blocking(AsyncAdmin.backfills)
    backfill = blocking(AsyncAdmin.backfill)
    start_backfill = blocking(AsyncAdmin.start_backfill)
    turn_backfill = blocking(AsyncAdmin.turn_backfill)
    cancel_backfill = blocking(AsyncAdmin.cancel_backfill)
    rebuild_sink = blocking(AsyncAdmin.rebuild_sink)
    connectors = blocking(AsyncAdmin.connectors)
    connector = blocking(AsyncAdmin.connector)
    restart_connector = blocking(AsyncAdmin.restart_connector)
    turn_connector = blocking(AsyncAdmin.turn_connector)
    connector_offsets = blocking(AsyncAdmin.connector_offsets)
    reset_connector = blocking(AsyncAdmin.reset_connector)
    snapshot_connector = blocking(AsyncAdmin.snapshot_connector)
    forget_connector = blocking(AsyncAdmin.forget_connector)
    topics = blocking(AsyncAdmin.topics)
    topic = blocking(AsyncAdmin.topic)
    groups = blocking(AsyncAdmin.groups)
    all_groups = blocking(AsyncAdmin.all_groups)
    group = blocking(AsyncAdmin.group)
    try_schema = iterating(AsyncAdmin.try_schema)
    try_definitions = iterating(AsyncAdmin.try_definitions)
    try_transforms = blocking(AsyncAdmin.try_transforms)
    quarantine = blocking(AsyncAdmin.quarantine)
    quarantine_summary = blocking(AsyncAdmin.quarantine_summary)
    quarantined = blocking(AsyncAdmin.quarantined)
    replay = blocking(AsyncAdmin.replay)
    discard = blocking(AsyncAdmin.discard)
