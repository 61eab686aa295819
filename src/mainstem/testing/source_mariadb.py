"""A MariaDB of somebody else, from which tests capture changes."""

from __future__ import annotations

import getpass
import os
import shutil
from pathlib import Path
from typing import Any

from mainstem.connect.mysql_connection import Server, connected
from mainstem.errors import MainstemError
from mainstem.local.ports import LOOPBACK, Ports
from mainstem.local.process import Child, Command, run_once
from mainstem.testing.waiting import eventually

SUPERUSER = "admin"
PASSWORD = "admin secret"  # noqa: S105 - of a server on loopback that ends with the test
_START_SECONDS = 60.0
_PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_SERVER, _MAKE = "mariadbd", "mariadb-install-db"


def mariadb_there() -> bool:
    """Whether this machine has the programs."""
    return all(shutil.which(program, path=_PLACES) for program in (_SERVER, _MAKE))


class SourceMariaDb:
    """A server with a database `shop`, on loopback."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._settings = {"log-bin": "binlog", "binlog-format": "ROW", "server-id": "7", **settings}
        self._child: Child | None = None
        self.port = Ports(folder / "ports.json").take("a source")

    def url(self, user: str = SUPERUSER, password: str = PASSWORD, database: str = "shop") -> str:
        """Where it is, for one of its users."""
        return f"mariadb://{user}:{password.replace(' ', '%20')}@{LOOPBACK}:{self.port}/{database}"

    def options(self, user: str = SUPERUSER, password: str = PASSWORD) -> dict[str, Any]:
        """What a connection to it needs."""
        return {"url": self.url(user, password), "tls": "disabled"}

    def start(self) -> SourceMariaDb:
        """Starts it, with the data that it had; returns when it answers."""
        log = self._folder / "source-mariadb.log"
        if not self._data.exists():
            self._make(log)
        settings = {
            "datadir": str(self._data),
            "user": getpass.getuser(),
            "bind-address": LOOPBACK,
            "port": str(self.port),
            "socket": str(self._data / "s.sock"),
            "pid-file": str(self._data / "pid"),
            "init-file": str(self._folder / "users.sql"),
            "innodb-buffer-pool-size": "16M",
            "innodb-flush-log-at-trx-commit": "2",
            "default-time-zone": "+00:00",
            **self._settings,
        }
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        self._child = Child.start(
            Command(
                name="source-mariadb",
                argv=[_program(_SERVER), "--no-defaults", "--skip-name-resolve", *arguments],
                log=log,
                folder=self._folder,
            )
        )
        eventually(self._answers, _START_SECONDS, what="the source's MariaDB")
        return self

    def stop(self) -> None:
        """Stops it; the data stays."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def run(self, *statements: str) -> list[dict[str, Any]]:
        """Runs statements as its administrator, each of which commits; the rows of the last."""
        rows: list[dict[str, Any]] = []
        with connected(self.options()) as server:
            for statement in ("USE shop", *statements):
                rows = server.rows(statement)
        return rows

    def connection(self) -> Any:
        """A connection of its administrator's that lasts, with a time zone of its own."""
        return connected(self.options())

    def _answers(self) -> bool:
        try:
            with connected(self.options()) as server:
                return isinstance(server, Server)
        except MainstemError:
            return False

    def _make(self, log: Path) -> None:
        run_once(
            [
                *(_program(_MAKE), "--no-defaults", f"--datadir={self._data}", "--skip-test-db"),
                *(f"--user={getpass.getuser()}", "--auth-root-authentication-method=normal"),
            ],
            name="source-mariadb",
            log=log,
            folder=self._folder,
        )
        (self._folder / "users.sql").write_text(
            f"CREATE USER IF NOT EXISTS '{SUPERUSER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{SUPERUSER}'@'%' WITH GRANT OPTION;\n"
            "CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;\n"
        )


def _program(name: str) -> str:
    found = shutil.which(name, path=_PLACES)
    assert found is not None, f"{name} is not installed"
    return found
