"""A Connect cluster in memory, behind its REST interface, which can be told to misbehave."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx2

URL = "http://connect.example:8083"


@dataclass
class Made:
    """A connector of the cluster."""

    config: dict[str, str]
    state: str = "RUNNING"
    task: str = "RUNNING"
    trace: str | None = None
    offsets: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class FakeConnect:
    """What it has, and what it was asked."""

    made: dict[str, Made] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    complaints: dict[str, str] = field(default_factory=dict)
    """By setting: what is said of each configuration."""
    answers: list[httpx2.Response | Exception] = field(default_factory=list)
    """To be given first, one by one."""

    @property
    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self._answer)

    @property
    def changes(self) -> list[str]:
        """Requests that are no questions, since the last time."""
        found = [asked for asked in self.asked if not asked.startswith(("GET", "PUT /connector-"))]
        self.asked.clear()
        return found

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = str(request.url).removeprefix(URL)
        self.asked.append(f"{request.method} {path}")
        body = json.loads(request.content) if request.content else None
        self.bodies.append(body)
        if self.answers:
            first = self.answers.pop(0)
            if isinstance(first, Exception):
                raise first
            return first
        steps = [unquote(step) for step in path.partition("?")[0].strip("/").split("/")]
        match request.method, steps:
            case "GET", ["connectors"]:
                return _ok({name: _shown(one) for name, one in self.made.items()})
            case "PUT", ["connector-plugins", _, "config", "validate"]:
                return _ok({"configs": [_complaint(*item) for item in self.complaints.items()]})
            case "POST", ["connectors"]:
                if body["name"] in self.made:
                    return httpx2.Response(409, json={"message": "exists"})
                stopped = body["initial_state"] == "STOPPED"
                self.made[body["name"]] = Made(
                    {**body["config"]}, body["initial_state"], "" if stopped else "RUNNING"
                )
                return httpx2.Response(201, json={})
            case method, ["connectors", name, *rest] if name in self.made:
                return self._of(method, name, rest, body)
        return httpx2.Response(404, json={"message": "no such thing"})

    def _of(self, method: str, name: str, rest: list[str], body: Any) -> httpx2.Response:
        one = self.made[name]
        match method, rest:
            case "PUT", ["config"]:
                one.config = body
            case "PUT", ["stop"]:
                one.state, one.task = "STOPPED", ""
            case "PUT", ["resume"]:
                one.state = one.task = "RUNNING"
            case "POST", ["restart"]:
                one.task, one.trace = "RUNNING", None
            case "GET", ["offsets"]:
                return _ok({"offsets": one.offsets})
            case "DELETE", ["offsets"]:
                if one.state != "STOPPED":
                    return httpx2.Response(400, json={"message": "must be in the STOPPED state"})
                one.offsets = []
            case "DELETE", []:
                del self.made[name]
                return httpx2.Response(204)
        return _ok({})


def _ok(document: Any) -> httpx2.Response:
    return httpx2.Response(200, json=document)


def _shown(one: Made) -> dict[str, Any]:
    task = {"id": 0, "state": one.task, "worker_id": "w:1", "trace": one.trace}
    return {
        "info": {"config": one.config},
        "status": {
            "connector": {"state": one.state, "worker_id": "w:1"},
            "tasks": [task] if one.task else [],
        },
    }


def _complaint(name: str, problem: str) -> dict[str, Any]:
    return {"value": {"name": name, "errors": [problem, problem]}}
