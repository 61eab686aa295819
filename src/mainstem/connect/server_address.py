"""Where a database server is, by a URL, and whether anybody is there."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from mainstem.errors import MainstemError

_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is, who logs in, and the database that is meant where none is named."""

    host: str
    port: int
    user: str
    password: str | None
    database: str


def read_address(
    options: Mapping[str, Any], schemes: Sequence[str], port: int, product: str
) -> Address:
    """What the options url, user and password say; INVALID_OPTION for a bad URL."""
    try:
        url = urlsplit(options["url"])
        given = url.port or port
    except ValueError:
        raise bad_url(schemes[0], port, product) from None
    database = unquote(url.path.removeprefix("/"))
    if url.scheme not in schemes or not url.hostname or not database:
        raise bad_url(schemes[0], port, product)
    user = options.get("user") or unquote(url.username or "")
    password = options.get("password") or (None if url.password is None else unquote(url.password))
    return Address(url.hostname, given, user, password, database)


def bad_url(scheme: str, port: int, product: str) -> MainstemError:
    """INVALID_OPTION about a URL."""
    return MainstemError(
        "INVALID_OPTION",
        option="url",
        value="...",  # it may hold a password
        problem=f"it is not the URL of a database of {product}",
        advice=f"Write for example {scheme}://user@host:{port}/database.",
    )


def check_reachable(servers: Sequence[tuple[str, int]]) -> None:
    """CONNECTOR_UNREACHABLE when nobody listens at any of these."""
    problem = ""
    for host, port in servers:
        try:
            socket.create_connection((host, port), _SECONDS).close()
        except OSError as error:
            problem = error.strerror or str(error)
        else:
            return
    shown = ", ".join(f"{host}:{port}" for host, port in servers)
    what = f"the database server at {shown}"
    raise MainstemError("CONNECTOR_UNREACHABLE", what=what, problem=problem, option="url")
