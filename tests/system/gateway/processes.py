"""Gateways as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from mainstem.local.endpoints import Endpoints
from mainstem.local.stack import Stack
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually


class Gateway:
    """One gateway process and a client for it."""

    def __init__(self, folder: Path, endpoints: Endpoints) -> None:
        self.folder = folder
        self.endpoints = endpoints
        self.process: subprocess.Popen[bytes] | None = None
        self.http = httpx2.Client(base_url=endpoints.gateway_url, timeout=120, trust_env=False)

    def start(self) -> None:
        with (self.folder / "gateway.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mainstem.gateway", str(self.folder)],
                env={**os.environ, **self.endpoints.environment()},
                stdout=log,
                stderr=log,
            )

    def stop(self, sign: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(sign)
        return self.process.wait(120)

    def status(self, path: str) -> int | None:
        try:
            return self.http.get(path).status_code
        except httpx2.TransportError:
            return None

    def ready(self) -> None:
        eventually(lambda: self.status("/readyz") == 200)

    def sql(self, text: str) -> Any:
        return self.http.post("/v1/sql", json={"sql": text}).json()

    def write(self, name: str, *values: Any) -> Any:
        body = {"records": [{"value": value} for value in values]}
        return self.http.post(f"/v1/streams/{name}/records", json=body).json()

    def rows(self, text: str) -> Any:
        return self.sql(text).get("rows")

    def log(self) -> str:
        return (self.folder / "gateway.log").read_text()


def made(servers: Stack, folder: Path) -> Gateway:
    """A gateway, not started, of the servers that all tests share."""
    (folder / "mainstem.toml").write_text('name = "tests"\n')
    update = {"gateway_host": "127.0.0.1", "gateway_port": free_port()}
    return Gateway(folder, servers.endpoints.model_copy(update=update))
