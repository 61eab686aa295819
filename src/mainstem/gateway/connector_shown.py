"""A connector as the interface shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem.catalog.connectors import of_source
from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.care import Care
from mainstem.connect.carrier import Wanted
from mainstem.connect.client import State, Task
from mainstem.errors import MainstemError
from mainstem.views.times import iso_utc


def connector_shown(name: str, care: Care) -> dict[str, Any]:
    """What it is to be, what it is, and what is wrong with it."""
    wanted, found, system = care.wanted, care.found, care.system
    made_for = wanted or (Wanted.from_config(found.config) if found is not None else None)
    return {
        **_head(name, made_for, care.error),
        "state": _state(care),
        "tasks": [_task(task) for task in found.tasks] if found is not None else [],
        "restarts": care.restarts,
        "position": system.confirmed if system is not None else None,
        "held_bytes": system.held_bytes if system is not None else None,
        "snapshots": dict(care.snapshots()),
        "last_error": care.last_error.problem() if care.last_error is not None else None,
        "last_error_at": iso_utc(care.last_error_at) if care.last_error_at else None,
    }


def not_run(wanted: Wanted, error: MainstemError) -> dict[str, Any]:
    """One that nobody can run."""
    return {
        **_head(wanted.name, wanted, error),
        "state": "failed",
        "tasks": [],
        "restarts": 0,
        "position": None,
        "held_bytes": None,
        "snapshots": {},
        "last_error": None,
        "last_error_at": None,
    }


def flow_shown(catalog: Catalog, entry: Entry, said: Mapping[str, Any]) -> dict[str, Any]:
    """A source that runs in the engine, by what its flow has said last."""
    captures = entry.definition.captures
    mine = said if said.get("generation") == entry.generation else {}
    return {
        "name": entry.name,
        "connector": captures.connector if captures is not None else None,
        "runs_in": "engine",
        "state": "paused" if entry.paused else mine.get("state", "starting"),
        "stream": next((d.name for d in of_source(catalog, entry.name)), None),
        "tables": [],
        "tasks": [],
        "restarts": mine.get("restarts", 0),
        "position": (mine.get("source") or {}).get("position"),
        "held_bytes": None,
        "records": mine.get("rows_out_total", 0),
        "quarantined": mine.get("quarantined", 0),
        "lost": 0,
        "detail": dict(mine.get("source") or {}),
        "error": mine.get("error"),
        "next_retry": mine.get("next_retry"),
        "last_error": mine.get("error"),
        "last_error_at": None,
    }


def _head(name: str, wanted: Wanted | None, error: MainstemError | None) -> dict[str, Any]:
    return {
        "name": wanted.name if wanted is not None else name,
        "connector": wanted.connector if wanted is not None else None,
        "tables": list(wanted.tables) if wanted is not None else [],
        "error": error.problem() if error is not None else None,
    }


def _state(care: Care) -> str:
    """One word: removing, failed, waiting (for Connect), pausing, paused, running or starting."""
    wanted, found = care.wanted, care.found
    if wanted is None:
        return "removing"
    if care.error is not None:
        return "failed"
    if found is None:
        return "waiting"
    if wanted.paused:
        return "pausing" if found.tasks else "paused"
    running = found.tasks and all(task.state is State.RUNNING for task in found.tasks)
    return "running" if running else "starting"


def _task(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "state": task.state.value.lower(),
        "worker": task.worker,
        "trace": task.trace,
    }
