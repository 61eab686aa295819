"""Servers that the settings give by address, not started here: whether they answer."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from mainstem.config import PROJECT_FILE, Settings
from mainstem.errors import MainstemError, catalogue
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection

_POSTGRES_PORT = 5432


def broker_problem(connection: Connection, timeout: float) -> MainstemError | None:
    """Why the broker cannot be used; None when it answers."""
    admin = Admin(connection)
    try:
        admin.ping(timeout=timeout)
    except MainstemError as error:
        return error
    finally:
        admin.close()
    return None


def postgres_address(settings: Settings) -> tuple[str, int]:
    """Host and port in the URL of the settings."""
    try:
        url = urlsplit(settings.postgres.url.get_secret_value())
        return url.hostname or "localhost", url.port or _POSTGRES_PORT
    except ValueError:  # its text would repeat the password
        problem = "postgres.url is not a URL such as postgresql://user:password@host:5432/database"
        raise MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=problem) from None


def postgres_problem(host: str, port: int, timeout: float) -> str | None:
    """Why PostgreSQL cannot be used; None when something listens there."""
    try:
        socket.create_connection((host, port), timeout=timeout).close()
    except OSError:
        return f"{catalogue()['VIEW_STORE_UNREACHABLE'].message} at {host}:{port}"
    return None
