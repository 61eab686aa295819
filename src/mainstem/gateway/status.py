"""What runs and how it is: flows, views, engine and the quarantine, in one document."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mainstem.errors import MainstemError
from mainstem.gateway.contracts import all_rules
from mainstem.gateway.registry_app import PREFIX
from mainstem.views.times import iso_utc

if TYPE_CHECKING:
    from mainstem.gateway.services import Services

ENGINE = "engine"
_SILENT_SECONDS = 15.0
"""An engine that has said nothing for so long is not there."""


def flow_statuses(at: Services) -> dict[str, dict[str, Any]]:
    """The latest word of each flow of the catalog, by name."""
    try:
        catalog = at.catalog()
    except MainstemError:
        return {}
    said = at.statuses()
    return {
        entry.name: said.get(entry.name)
        or {"flow": entry.name, "state": "starting", "generation": entry.generation}
        for entry in catalog.flows()
    }


def rule_statuses(at: Services) -> list[dict[str, Any]]:
    """The rules of all streams, and how often they were broken."""
    try:
        return all_rules(at.catalog(), at.broken)
    except MainstemError:
        return []


def engine_status(at: Services) -> dict[str, Any]:
    """What the engine said of itself last; `silent` when that was too long ago."""
    said = at.statuses().get(ENGINE)
    if said is None:
        return {"state": "unknown", "updated_at": None}
    updated = said.get("updated_at")
    age = time.time() - datetime.fromisoformat(updated).timestamp() if updated else None
    state = "silent" if age is None or age > _SILENT_SECONDS else said.get("state", "running")
    return {**said, "state": state}


async def status_document(at: Services) -> dict[str, Any]:
    """All of it; what cannot be asked now is left out, not an error."""
    checks = await at.health()
    return {
        "project": at.settings.name,
        "at": iso_utc(time.time()),
        "checks": checks,
        "engine": engine_status(at),
        "flows": list(flow_statuses(at).values()),
        "connectors": at.connectors.all(),
        "connect": at.connectors.worker(),
        "views": await _views(at, postgres=checks["postgres"]["ok"]),
        "quarantine": at.quarantine.status(),
        "rules": rule_statuses(at),
        "schemas": _schemas(at),
        "subscriptions": at.push.open_subscriptions,
    }


def _schemas(at: Services) -> dict[str, Any]:
    """Where the schema registry is (below the gateway when it is ours), and what it holds."""
    if at.registry is None:
        return {"registry": at.settings.schemas.registry, "subjects": None}
    try:
        subjects = len(at.registry.state.subjects())
    except MainstemError:
        subjects = None
    return {"registry": PREFIX.rstrip("/"), "subjects": subjects}


async def _views(at: Services, *, postgres: bool) -> list[dict[str, Any]]:
    try:
        rows = await at.pull.row_estimates() if postgres else {}
    except MainstemError:
        rows = {}
    problems = at.materialiser.problems()
    views: list[dict[str, Any]] = [
        {
            "name": view.name,
            "topic": view.topic,
            "lag_records": view.lag_records,
            "offsets": view.offsets,
            "end_offsets": view.end_offsets,
            "rows": rows.get(view.name),
            "quarantined": view.quarantined,
            "updated_at": view.updated_at,
            "error": None,
        }
        for view in at.materialiser.progress()
    ]
    return views + [
        {"name": name, "lag_records": None, "rows": rows.get(name), "error": error.problem()}
        for name, error in sorted(problems.items())
    ]
