"""The local PostgreSQL: the store of served views, on loopback, with passwords of its own.

Roles: `mainstem` owns the database and fills the tables; `reader` can only look at them; the
superuser has no password, so nobody can log in as it. Roles are made in single-user mode, before
the server listens for the first time.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mainstem.errors import MainstemError
from mainstem.local.ports import LOOPBACK
from mainstem.local.postgres_place import MAJOR, find_place, settle
from mainstem.local.private_files import write_private
from mainstem.local.process import Command, run_once

DATABASE = "mainstem"
OWNER = "mainstem"
READER = "reader"
_SUPERUSER = "postgres"
_HBA = f"""\
host all all {LOOPBACK}/32 scram-sha-256
"""
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "maintenance_work_mem": "64MB",
    "wal_buffers": "4MB",
    "max_wal_size": "512MB",
    "min_wal_size": "80MB",
    # nothing is replicated from here: views come from the log and can be built again
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "io_workers": "1",
    "max_parallel_workers": "2",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    # a failed statement's text may hold a user's data
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}


@dataclass(frozen=True, slots=True)
class Passwords:
    """The passwords of the two roles."""

    owner: str
    reader: str


def role_statements(passwords: Passwords) -> tuple[str, ...]:
    """Statements for the database `postgres`: roles and the database itself."""
    return (
        f"CREATE ROLE {OWNER} LOGIN PASSWORD '{passwords.owner}'",
        f"CREATE ROLE {READER} LOGIN CONNECTION LIMIT 40 PASSWORD '{passwords.reader}'",
        f"ALTER ROLE {READER} SET default_transaction_read_only = on",
        f"ALTER ROLE {READER} SET statement_timeout = '30s'",
        f"ALTER ROLE {READER} SET idle_in_transaction_session_timeout = '5min'",
        f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
        f"REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {DATABASE} TO {READER}",
    )


def schema_statements() -> tuple[str, ...]:
    """Statements for the new database: what the reader may do in it."""
    return (
        f"ALTER SCHEMA public OWNER TO {OWNER}",
        f"GRANT USAGE ON SCHEMA public TO {READER}",
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public "
        f"GRANT SELECT ON TABLES TO {READER}",
        # large objects are the one thing that every role could fill a disk with
        "REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), "
        "lo_from_bytea(oid, bytea) FROM PUBLIC",
    )


class Postgres:
    """PostgreSQL as a part of the stack."""

    name = "postgres"
    start_timeout = 60.0

    def __init__(self, state_folder: Path, logs: Path, port: int) -> None:
        self._state_folder = state_folder
        self._log = logs / "postgres.log"
        self._port = port
        self._place = find_place(state_folder)
        self._secrets = state_folder / "secrets.json"
        self._passwords = self._read_passwords()
        self._known = self._passwords is not None

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def passfile(self) -> Path:
        """A libpq password file for the reader."""
        return self._state_folder / "pgpass"

    def url(self, role: str) -> str:
        """Connection URL of a role, with its password."""
        passwords = self._current()
        password = passwords.owner if role == OWNER else passwords.reader
        return f"postgresql://{role}:{password}@{LOOPBACK}:{self._port}/{DATABASE}"

    def prepare(self) -> Command:
        """Make the database at the first run; write the password file for this port."""
        passwords = self._current()
        place = self._place
        settle(place)
        (place.base / "pg_hba.conf").write_text(_HBA, "utf-8")
        (place.base / "pg_hba.conf").chmod(0o644)
        if not place.data.exists():
            self._create(passwords)
        elif not self._known:  # the file of passwords was lost
            self._alone(place.data, "postgres", _password_statements(passwords))
        self._known = True
        self._check_version()
        line = f"{LOOPBACK}:{self._port}:{DATABASE}:{READER}:{passwords.reader}\n"
        write_private(self.passfile, line)
        settings = {
            **_SETTINGS,
            "port": str(self._port),
            "hba_file": str(place.base / "pg_hba.conf"),
        }
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        return Command(
            name=self.name,
            argv=[str(place.programs / "postgres"), "-D", str(place.data), *arguments],
            log=self._log,
            folder=place.base,
            stop="INT",  # its "fast" stop: clients are let go at once
            user=place.user,
        )

    def ready(self) -> bool:
        """Whether it accepts connections."""
        program = [
            *(str(self._place.programs / "pg_isready"), "-q", "-t", "3"),
            *("-h", LOOPBACK, "-p", str(self._port), "-d", DATABASE, "-U", READER),
        ]
        try:
            asked = subprocess.run(
                program, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        except OSError:  # a machine without memory or files for it: asked again soon
            return False
        return asked.returncode == 0

    def answers(self) -> bool:
        """The same: it has no state between serving and not."""
        return self.ready()

    def close(self) -> None:
        """Nothing is held open."""

    def _current(self) -> Passwords:
        if self._passwords is None:
            self._passwords = Passwords(secrets.token_urlsafe(24), secrets.token_urlsafe(24))
            kept = {OWNER: self._passwords.owner, READER: self._passwords.reader}
            write_private(self._secrets, json.dumps({"postgres": kept}))
        return self._passwords

    def _read_passwords(self) -> Passwords | None:
        try:
            kept = json.loads(self._secrets.read_text("utf-8"))["postgres"]
            return Passwords(kept[OWNER], kept[READER])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _create(self, passwords: Passwords) -> None:
        """Make the database in a folder beside its place, so that half of one is never used."""
        place = self._place
        fresh = place.base / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if place.user is not None:
            os.chown(fresh, place.user, place.user)
        run_once(
            [
                *(str(place.programs / "initdb"), "-D", str(fresh), "-U", _SUPERUSER),
                *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin"),
                *("--builtin-locale=C.UTF-8", "--auth=reject", "--no-instructions"),
            ],
            name=self.name,
            log=self._log,
            folder=place.base,
            user=place.user,
        )
        self._alone(fresh, "postgres", role_statements(passwords))
        self._alone(fresh, DATABASE, schema_statements())
        fresh.rename(place.data)

    def _alone(self, data: Path, database: str, statements: tuple[str, ...]) -> None:
        """Run statements in single-user mode, where the server listens to nobody."""
        output = run_once(
            [
                *(str(self._place.programs / "postgres"), "--single", "-D", str(data)),
                *("-c", "log_min_error_statement=panic", "-c", "log_checkpoints=off", database),
            ],
            name=self.name,
            log=self._log,
            folder=self._place.base,
            stdin="\n".join(statements) + "\n",
            user=self._place.user,
        )
        problems = [line for line in output.splitlines() if "ERROR:" in line or "FATAL:" in line]
        if problems:
            raise MainstemError(
                "PROCESS_FAILED", process=self.name, problem=problems[0], log=str(self._log)
            )

    def _check_version(self) -> None:
        version = (self._place.data / "PG_VERSION").read_text("utf-8").strip()
        if version != str(MAJOR):
            problem = (
                f"its data in {self._place.data} is of PostgreSQL {version}, not {MAJOR}; "
                "move the folder away, and the views are built anew from the log"
            )
            raise MainstemError(
                "PROCESS_FAILED", process=self.name, problem=problem, log=str(self._log)
            )


def _password_statements(passwords: Passwords) -> tuple[str, ...]:
    return (
        f"ALTER ROLE {OWNER} PASSWORD '{passwords.owner}'",
        f"ALTER ROLE {READER} PASSWORD '{passwords.reader}'",
    )


def remove_data(state_folder: Path) -> None:
    """Delete the server's data, wherever it is; the stack must be down."""
    shutil.rmtree(find_place(state_folder).base, ignore_errors=True)
