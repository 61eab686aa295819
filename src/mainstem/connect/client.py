"""Kafka Connect by its REST interface: what runs there, and how it is told to run something else.

Errors never quote a configuration; what the server says of one goes through `mask` first, which
takes secrets out of it (see `Secrets.mask`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import httpx2

from mainstem.connect.trace import short_trace
from mainstem.errors import MainstemError

_TIMEOUT_SECONDS = 30.0
"""The worker connects to the database while it looks at a configuration."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_AWAY = (408, 429, 502, 503, 504)
_UNAUTHORIZED = (401, 403)
_BUSY, _UNKNOWN, _INVALID = 409, 404, 400
_STARTING = 500
"""Also what a worker says that did not find time for a request."""


class State(StrEnum):
    """States of a connector and of its tasks, as Connect names them."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    UNASSIGNED = "UNASSIGNED"
    RESTARTING = "RESTARTING"
    UNKNOWN = "UNKNOWN"
    """What a newer worker may say."""

    @classmethod
    def _missing_(cls, value: object) -> State:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a connector; or the connector's own part, which plans the tasks."""

    id: int | None
    """None: the connector's own part."""
    state: State
    worker: str
    trace: str | None
    """Why it failed, in a line or two."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector as the cluster has it."""

    name: str
    config: Mapping[str, str]
    own: Task | None
    """None while no worker has taken it up."""
    tasks: tuple[Task, ...]

    @property
    def failed(self) -> list[Task]:
        """What of it has failed."""
        parts = (*self.tasks, *((self.own,) if self.own else ()))
        return [part for part in parts if part.state is State.FAILED]


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with one setting of a configuration."""

    field: str
    problem: str


class ConnectClient:
    """A Connect cluster. Threads may share it. Redirects are not followed: they may lead away."""

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        *,
        mask: Callable[[str], str] = lambda text: text,
        timeout: float = _TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._mask = mask
        self._http = httpx2.Client(
            auth=(user, password) if user or password else None,
            headers={"Accept": "application/json"},
            timeout=timeout,
            transport=transport,
            # a proxy of the environment never leads to a server on this machine
            trust_env=httpx2.URL(self.url).host not in _LOOPBACK,
        )

    def close(self) -> None:
        """End its connections; safe to call twice."""
        self._http.close()

    def version(self) -> str:
        """The version of the worker that answers."""
        return str(self._object("GET", "/").get("version"))

    def plugins(self) -> list[str]:
        """Classes of the connectors that can be run."""
        return [str(item.get("class")) for item in self._list("GET", "/connector-plugins")]

    def validate(self, config: Mapping[str, str]) -> list[Complaint]:
        """What the connector's own check says of a configuration; it may connect to its system."""
        kind = _quoted(config["connector.class"])
        path = f"/connector-plugins/{kind}/config/validate"
        answer = self._object("PUT", path, body=dict(config))
        found = []
        for item in answer.get("configs") or ():
            value = item.get("value") or {}
            # the same complaint may come twice, by two of the checks
            for problem in dict.fromkeys(value.get("errors") or ()):
                found.append(Complaint(str(value.get("name")), self._mask(str(problem))))
        return found

    def connectors(self) -> dict[str, Connector]:
        """All connectors of the cluster, by name."""
        answer = self._object("GET", "/connectors?expand=info&expand=status")
        return {name: self._connector(name, item) for name, item in answer.items()}

    def create(self, name: str, config: Mapping[str, str], *, stopped: bool = False) -> None:
        """Make a connector, running or stopped; CONNECT_BUSY when there is one of that name."""
        first = State.STOPPED if stopped else State.RUNNING
        body = {"name": name, "config": dict(config), "initial_state": first}
        self._ask("POST", "/connectors", name=name, body=body)

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Give a connector another configuration, by which it is started anew."""
        self._ask("PUT", f"{_path(name)}/config", name=name, body=dict(config))

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """Start a connector and its tasks again."""
        asked = f"includeTasks=true&onlyFailed={str(only_failed).lower()}"
        self._ask("POST", f"{_path(name)}/restart?{asked}", name=name)

    def resume(self, name: str) -> None:
        """Let a stopped or paused connector run."""
        self._ask("PUT", f"{_path(name)}/resume", name=name)

    def pause(self, name: str) -> None:
        """Let it rest with its tasks and connections open."""
        self._ask("PUT", f"{_path(name)}/pause", name=name)

    def stop(self, name: str) -> None:
        """End its tasks; the connector and its offsets stay."""
        self._ask("PUT", f"{_path(name)}/stop", name=name)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """How far it has come: pairs of a `partition` of the source and an `offset` in it."""
        found = self._object("GET", f"{_path(name)}/offsets", name=name).get("offsets") or []
        return [dict(item) for item in found]

    def reset_offsets(self, name: str) -> None:
        """Forget how far it has come; CONNECTOR_NOT_STOPPED while it runs."""
        try:
            self._ask("DELETE", f"{_path(name)}/offsets", name=name)
        except MainstemError as error:
            if error.code != "CONNECTOR_INVALID":
                raise
            raise MainstemError("CONNECTOR_NOT_STOPPED", name=name) from None

    def delete(self, name: str) -> None:
        """Remove a connector; its offsets stay. Harmless when there is none."""
        try:
            self._ask("DELETE", _path(name), name=name)
        except MainstemError as error:
            if error.code != "CONNECTOR_UNKNOWN":
                raise

    # -- requests and answers

    def _connector(self, name: str, item: Mapping[str, Any]) -> Connector:
        status = item.get("status") or {}
        own = status.get("connector")
        return Connector(
            name,
            dict((item.get("info") or {}).get("config") or {}),
            self._task(own) if own else None,
            tuple(self._task(task) for task in status.get("tasks") or ()),
        )

    def _task(self, said: Mapping[str, Any]) -> Task:
        trace = said.get("trace")
        return Task(
            said.get("id"),
            State(str(said.get("state"))),
            str(said.get("worker_id")),
            self._mask(short_trace(str(trace))) if trace else None,
        )

    def _object(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self._ask(method, path, **more)
        if not isinstance(answer, dict):
            raise self._strange()
        return answer

    def _list(self, method: str, path: str) -> list[dict[str, Any]]:
        answer = self._ask(method, path)
        if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
            raise self._strange()
        return answer

    def _ask(self, method: str, path: str, *, name: str = "", body: Any = None) -> Any:
        try:
            answer = self._http.request(method, f"{self.url}{path}", json=body)
        except httpx2.TransportError as error:
            raise self._unreachable(str(error) or type(error).__name__) from None
        if answer.is_success:
            if not answer.content:
                return None
            try:
                return answer.json()
            except ValueError:
                raise self._strange() from None
        raise self._refused(answer, name)

    def _refused(self, answer: httpx2.Response, name: str) -> MainstemError:
        status = answer.status_code
        problem = self._mask(_message(answer))
        if status in _AWAY or (status == _STARTING and "timed out" in problem):
            return self._unreachable(f"it answered {status}")
        if status in _UNAUTHORIZED:
            return MainstemError("CONNECT_FAILED", problem="it refuses user and password")
        if status == _BUSY:
            return MainstemError("CONNECT_BUSY")
        if status == _UNKNOWN and name:
            return MainstemError("CONNECTOR_UNKNOWN", name=name, suggestion="")
        if status == _INVALID and name:
            return MainstemError("CONNECTOR_INVALID", name=name, problem=problem)
        return MainstemError("CONNECT_FAILED", problem=f"{problem} ({status})")

    def _unreachable(self, problem: str) -> MainstemError:
        return MainstemError("CONNECT_UNREACHABLE", url=self.url, problem=problem)

    def _strange(self) -> MainstemError:
        return MainstemError("CONNECT_FAILED", problem=f"{self.url} is not Kafka Connect")


def _path(name: str) -> str:
    return f"/connectors/{_quoted(name)}"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _message(answer: httpx2.Response) -> str:
    """What an error says, on one line."""
    try:
        said = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        said = answer.reason_phrase
    return short_trace(str(said))
