"""Connections to a MySQL or MariaDB of somebody else, and what is wrong when there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mainstem.connect.server_address import Address, read_address
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from pymysql.connections import Connection

_PORT = 3306
_SECONDS = 15.0
_CONNECT_SECONDS = 5
_TLS: dict[str, dict[str, Any]] = {
    "disabled": {"ssl_disabled": True},
    "preferred": {},
    "required": {"ssl": {"check_hostname": False, "verify_mode": False}},
}
_LOGIN_REFUSED = (1045, 1698)
NOT_ALLOWED = (1044, 1142, 1143, 1227, 1370, 3118)
"""Numbers of the errors that say so."""


class Server:
    """A connection: statements and their rows, by the names of the columns in small letters."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rows of a query; `values` take the places of `%s`."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            names = [column[0].lower() for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def refusal(self, statement: str) -> int:
        """The number of the error with which a statement is refused; 0: it is not."""
        from pymysql import MySQLError

        try:
            self.rows(statement)
        except MySQLError as error:
            return _number(error)
        return 0


def address(options: Mapping[str, Any]) -> Address:
    """What the options say of it; INVALID_OPTION for a bad URL."""
    return read_address(options, ("mysql", "mariadb"), _PORT, "MySQL or MariaDB")


def place(options: Mapping[str, Any]) -> str:
    """The server in words, without who logs in."""
    at = address(options)
    return f"the database server at {at.host}:{at.port}"


@contextmanager
def connected(options: Mapping[str, Any]) -> Iterator[Server]:
    """A connection that commits each statement; what fails becomes an error of ours."""
    try:
        import pymysql
    except ImportError:
        problem = "the package pymysql is not installed (pip install 'mainstem[mysql]')"
        raise MainstemError("CONNECTOR_UNREACHABLE", what=place(options), problem=problem) from None
    at = address(options)
    try:
        connection = pymysql.connect(
            host=at.host,
            port=at.port,
            user=at.user,
            password=(at.password or "").encode(),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_SECONDS,
            write_timeout=_SECONDS,
            program_name="mainstem",
            **_TLS[options["tls"]],
        )
    except pymysql.MySQLError as error:
        raise _told(error, options, at.user) from None
    try:
        with connection:
            yield Server(connection)
    except pymysql.MySQLError as error:
        raise _told(error, options, at.user) from None


def _number(error: Exception) -> int:
    """The number of an error of the server's; -1: it has none."""
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else -1


def _told(error: Exception, options: Mapping[str, Any], user: str) -> MainstemError:
    number, where = _number(error), place(options)
    text = str(error.args[-1]) if error.args else type(error).__name__
    if number in _LOGIN_REFUSED:
        return MainstemError("SOURCE_LOGIN_REFUSED", where=where, user=user)
    if number in NOT_ALLOWED:
        return MainstemError(
            "SOURCE_NOT_ALLOWED",
            user=user,
            what="do that",
            problem=f" ({text})",
            grant="grant the user what the message names",
        )
    return MainstemError("CONNECTOR_UNREACHABLE", what=where, problem=text)
