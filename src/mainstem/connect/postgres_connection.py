"""Connections to a PostgreSQL of somebody else, and what is wrong when there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row

from mainstem.errors import MainstemError

Connected = psycopg.Connection[Any]

_CONNECT_SECONDS = 5
_SESSION = "-c statement_timeout=15s -c lock_timeout=5s -c client_min_messages=warning"


def address(options: Mapping[str, Any]) -> dict[str, str]:
    """Where the database is and who logs in, in libpq's words; INVALID_OPTION for a bad URL."""
    try:
        given = conninfo_to_dict(options["url"])
    except psycopg.ProgrammingError:
        raise MainstemError(
            "INVALID_OPTION",
            option="url",
            value="...",  # it may hold a password
            problem="it is not the URL of a PostgreSQL",
            advice="Write for example postgresql://user@host:5432/database.",
        ) from None
    found = {key: str(value) for key, value in given.items() if value is not None}
    found |= {key: str(options[key]) for key in ("user", "password") if options.get(key)}
    return {"host": "localhost", "port": "5432", "dbname": found.get("user", ""), **found}


def place(options: Mapping[str, Any]) -> str:
    """The database in words, without who logs in."""
    at = address(options)
    return f"PostgreSQL at {at['host']}:{at['port']}/{at['dbname']}"


@contextmanager
def connected(options: Mapping[str, Any]) -> Iterator[Connected]:
    """A connection that commits each statement; what fails becomes an error of ours."""
    at = address(options)
    try:
        given: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, **at, "options": _SESSION}
        text = make_conninfo(**{"application_name": "mainstem", **given})
        connection = psycopg.connect(text, autocommit=True, row_factory=namedtuple_row)
    except psycopg.OperationalError as error:
        raise _no_connection(error, options, at.get("user", "")) from None
    try:
        with connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise MainstemError(
            "SOURCE_NOT_ALLOWED",
            user=at.get("user", ""),
            what="do that",
            problem=f" ({_first_line(error)})",
            grant="grant the user what the message names",
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise _unreachable(error, options) from None


def _no_connection(
    error: psycopg.OperationalError, options: Mapping[str, Any], user: str
) -> MainstemError:
    """Why there is no connection. libpq tells no code, only whether a password was in play."""
    tried = error.pgconn
    text = str(error)
    refused = tried is not None and (tried.used_password or tried.needs_password)
    if refused or re.search(r"authentication failed|no pg_hba\.conf entry", text):
        return MainstemError("SOURCE_LOGIN_REFUSED", where=place(options), user=user)
    return _unreachable(error, options)


def _unreachable(error: psycopg.Error, options: Mapping[str, Any]) -> MainstemError:
    return MainstemError("CONNECTOR_UNREACHABLE", what=place(options), problem=_first_line(error))


def _first_line(error: psycopg.Error) -> str:
    told = (line.strip() for line in str(error).splitlines())
    lines = [line for line in told if line and not line.startswith("Is the server running")]
    return lines[-1 if "connection" in lines[0] else 0] if lines else type(error).__name__
