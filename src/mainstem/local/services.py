"""Mainstem's own servers as parts of the stack: the engine and the gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx2

from mainstem.local.endpoints import Endpoints
from mainstem.local.process import Command

READY_FILE = "engine.ready"
"""Written into the state folder by the engine when its session is up and it follows the catalog."""


class _Service:
    """A Python module of Mainstem that runs with the project's folder as its argument."""

    def __init__(self, name: str, project: Path, logs: Path, endpoints: Endpoints) -> None:
        self.name = name
        self._project = project
        self._logs = logs
        self._endpoints = endpoints

    def _command(self, grace: float, **environment: str) -> Command:
        endpoints = self._endpoints
        return Command(
            name=self.name,
            # -P: a file of the user's named like a module of ours must not be imported
            argv=[sys.executable, "-P", "-m", f"mainstem.{self.name}", str(self._project)],
            log=self._logs / f"{self.name}.log",
            folder=endpoints.state_folder,
            environment={
                **endpoints.environment(),
                **_absolute_python_path(),
                "PYTHONUNBUFFERED": "1",
                **environment,
            },
            grace=grace,
        )


class Engine(_Service):
    """The Spark driver with all flows."""

    start_timeout = 180.0

    def __init__(self, project: Path, logs: Path, endpoints: Endpoints) -> None:
        super().__init__("engine", project, logs, endpoints)

    def prepare(self) -> Command:
        """Forget that an earlier run was ready."""
        self._ready_file().unlink(missing_ok=True)
        home = self._endpoints.java_home
        return self._command(20.0, **({"JAVA_HOME": str(home)} if home else {}))

    def ready(self) -> bool:
        """Whether the engine has said that it is."""
        return self._ready_file().exists()

    def answers(self) -> bool:
        """Always, as far as can be seen from outside: it watches its flows itself."""
        return True

    def close(self) -> None:
        """Remove the sign of readiness."""
        self._ready_file().unlink(missing_ok=True)

    def _ready_file(self) -> Path:
        return self._endpoints.state_folder / READY_FILE


class Gateway(_Service):
    """REST, server-sent events, the page, and the writers of the views."""

    start_timeout = 60.0

    def __init__(self, project: Path, logs: Path, endpoints: Endpoints) -> None:
        super().__init__("gateway", project, logs, endpoints)
        self._client = httpx2.Client(timeout=5.0, trust_env=False)

    def prepare(self) -> Command:
        """Nothing has to be made ready."""
        return self._command(10.0)

    def ready(self) -> bool:
        """Whether it says so itself."""
        return self._status("/readyz") == httpx2.codes.OK

    def answers(self) -> bool:
        """Whether it lives; while the broker is away it does, though it is not ready."""
        return self._status("/healthz") is not None

    def _status(self, path: str) -> int | None:
        try:
            return self._client.get(f"{self._endpoints.gateway_url}{path}").status_code
        except httpx2.TransportError:
            return None

    def close(self) -> None:
        """Close the client that looked after the gateway."""
        self._client.close()


def _absolute_python_path() -> dict[str, str]:
    """PYTHONPATH with absolute entries: the child runs in another folder."""
    path = os.environ.get("PYTHONPATH")
    if not path:
        return {}
    return {"PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in path.split(os.pathsep) if p)}
