"""A PostgreSQL of somebody else, from which tests capture changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from mainstem.local.ports import LOOPBACK, Ports
from mainstem.local.postgres_place import find_place, settle
from mainstem.local.process import Child, Command, run_once
from mainstem.testing.waiting import eventually

SUPERUSER = "admin"
PASSWORD = "admin secret"  # noqa: S105 - of a server on loopback that ends with the test
_START_SECONDS = 60.0


class SourcePostgres:
    """A server with a database `shop`, on loopback."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._place = find_place(folder)
        self._folder = folder
        self._settings = {"wal_level": "logical", "max_replication_slots": "8", **settings}
        self._child: Child | None = None
        self.port = Ports(folder / "ports.json").take("a source")

    def url(self, user: str = SUPERUSER, password: str = PASSWORD, database: str = "shop") -> str:
        """Where it is, for one of its users."""
        return (
            f"postgresql://{user}:{password.replace(' ', '%20')}@{LOOPBACK}:{self.port}/{database}"
        )

    def start(self) -> SourcePostgres:
        """Starts it, with the data that it had; returns when it answers."""
        place, log = self._place, self._folder / "source-postgres.log"
        if not place.data.exists():
            self._make(log)
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": "40",
            "timezone": "UTC",
            **self._settings,
        }
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        self._child = Child.start(
            Command(
                name="source-postgres",
                argv=[str(place.programs / "postgres"), "-D", str(place.data), *arguments],
                log=log,
                folder=place.base,
                stop="INT",
                user=place.user,
            )
        )
        eventually(self._answers, _START_SECONDS, what="the source's PostgreSQL")
        return self

    def stop(self) -> None:
        """Stops it; the data stays."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """It dies as if its machine did; `start` brings it back, with what it had committed."""
        assert self._child is not None, "it does not run"
        os.kill(self._child.pid, signal.SIGKILL)
        self._child.wait(_START_SECONDS)
        self._child = None

    def remove(self) -> None:
        """Stops it and removes its data, which may lie outside of the test's folder."""
        self.stop()
        shutil.rmtree(self._place.base, ignore_errors=True)

    def _answers(self) -> bool:
        ready = [str(self._place.programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p"]
        return subprocess.run([*ready, str(self.port)], check=False).returncode == 0

    def _make(self, log: Path) -> None:
        place = self._place
        settle(place)
        place.data.mkdir(mode=0o700)
        secret = place.base / "password"
        secret.write_text(PASSWORD)
        if place.user is not None:
            os.chown(place.data, place.user, place.user)
            os.chown(secret, place.user, place.user)
        run_once(
            [
                *(str(place.programs / "initdb"), "-D", str(place.data), "-U", SUPERUSER),
                *("--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--no-sync"),
                f"--pwfile={secret}",
            ],
            name="source-postgres",
            log=log,
            folder=place.base,
            user=place.user,
        )
        single = [str(place.programs / "postgres"), "--single", "-D", str(place.data), "postgres"]
        run_once(
            single,
            name="source-postgres",
            log=log,
            folder=place.base,
            stdin="CREATE DATABASE shop\n",
            user=place.user,
        )
