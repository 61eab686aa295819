"""A database that Spark reads by JDBC: SQL in its own dialect, and its errors as ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mainstem.connect.listening.options import invalid
from mainstem.definitions.keywords import words
from mainstem.engine.java import java_class
from mainstem.engine.spark_errors import short
from mainstem.errors import MainstemError

VENDORS = (
    "postgresql", "mariadb", "mysql", "sqlserver", "oracle", "db2", "redshift", "snowflake",
    "clickhouse", "trino", "teradata", "vertica", "sap",
)  # fmt: skip
"""Databases that are servers: what a driver for files or scripts could do is not for a source."""
_PARAMETERS = words(
    """
    ssl sslmode sslrootcert usessl requiressl encrypt trustservercertificate sslprotocol
    currentschema searchpath applicationname connecttimeout logintimeout sockettimeout
    databasename database db schema warehouse role tcpkeepalive targetservertype
    loadbalancehosts timezone connectiontimezone servertimezone forceconnectiontimezonetosession
    characterencoding permitmysqlscheme
    """
)
"""What may be said in a URL. Drivers know others, by which they load classes or read files."""
_URL = re.compile(r"jdbc:(\w+):\S+", re.ASCII)
_PARAMETER = re.compile(r"[?&;]([^=&;]+)=")
_LOGIN = ("28",)
_AWAY = ("08", "57P")
_FETCHED = "10000"
_NO_DRIVER = "No suitable driver"
"""What Java itself says, with the state of a server that is away."""


def check_url(url: str) -> None:
    """INVALID_OPTION for what is not the address of a database server."""
    example = "'jdbc:postgresql://db.example.com:5432/shop'"
    match = _URL.fullmatch(url)
    if match is None:
        raise invalid("url", "...", "it does not begin with jdbc: and a database", example)
    if match[1].lower() not in VENDORS:
        raise invalid("url", "...", f"{match[1]} is none of {', '.join(VENDORS)}", example)
    for name in _PARAMETER.findall(url):
        if name.strip().lower() not in _PARAMETERS:
            raise invalid("url", "...", f'the parameter "{name}" is not for a source', example)


class Database:
    """The database of a source. `session` reads it, in the thread that asks."""

    def __init__(self, session: SparkSession, options: Mapping[str, Any]) -> None:
        self._session = session
        self._options = options
        self._url, self._driver = _address(options["url"])
        dialects = java_class("org.apache.spark.sql.jdbc.JdbcDialects")
        self._dialect = dialects.get(self._url)

    def rows(self, query: str, *, parts: Sequence[str] = ()) -> DataFrame:
        """The rows of a query, in one partition, or one for each condition of `parts`."""
        options = self._options
        properties = {"fetchsize": _FETCHED, **self._driver}
        for name in ("user", "password"):
            if options[name] is not None:
                properties[name] = options[name]
        table = f"({query}) mainstem_rows"
        given: dict[str, Any] = {"predicates": list(parts)} if parts else {}
        try:
            return self._session.read.jdbc(self._url, table, properties=properties, **given)
        except (PySparkException, Py4JJavaError) as error:
            raise self._translated(error) from None

    def collected(self, rows: DataFrame) -> list[Any]:
        """What is made of some rows, if it is little."""
        try:
            return rows.collect()
        except (PySparkException, Py4JJavaError) as error:
            raise self._translated(error) from None

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        query = self._options["query"]
        return str(self._options["table"]) if query is None else f"({query}) mainstem_query"

    def quoted(self, column: str) -> str:
        """A column's name in quotes."""
        return str(self._dialect.quoteIdentifier(column))

    def literal(self, text: str, type_: str) -> str:
        """A value of Spark's text, as the database writes values of the type."""
        if type_.startswith("timestamp"):
            return str(self._dialect.compileValue(java_class("java.sql.Timestamp").valueOf(text)))
        if type_ == "date":
            return str(self._dialect.compileValue(java_class("java.sql.Date").valueOf(text)))
        return text

    def first(self, count: int) -> str:
        """What stands at the end of a query that gives only so many rows."""
        clause = str(self._dialect.getLimitClause(count)).strip()
        return clause or f"OFFSET 0 ROWS FETCH NEXT {count} ROWS ONLY"

    def _translated(self, error: PySparkException | Py4JJavaError) -> MainstemError:
        state, said = _sql_state(error)
        where = str(self._options["url"]).partition("?")[0].partition(";")[0]
        if _NO_DRIVER in said:
            problem = "there is no driver for it: name its jar in [spark] jdbc_drivers"
            return invalid("url", "...", problem, "'jdbc:postgresql://db.example.com:5432/shop'")
        if state is not None and state.startswith(_LOGIN):
            user = self._options["user"]
            return MainstemError("SOURCE_LOGIN_REFUSED", where=where, user=user, option="password")
        if state is not None and state.startswith(_AWAY):
            return MainstemError("CONNECTOR_UNREACHABLE", what=where, problem=said, option="url")
        option = "table" if self._options["query"] is None else "query"
        what = self._options["table"] or "the rows of the query"
        return MainstemError(
            "SOURCE_NOT_READABLE", where=where, what=what, problem=said, option=option
        )


def _address(url: str) -> tuple[str, dict[str, str]]:
    """The URL by which Spark knows the dialect, and more that the driver has to be told."""
    _, vendor, rest = url.split(":", 2)
    if vendor.lower() not in ("mariadb", "mysql"):
        return url, {}
    # to Spark both are MySQL, and MariaDB's driver serves both if the URL says so
    mark = "&" if "?" in rest else "?"
    return f"jdbc:mysql:{rest}{mark}permitMysqlScheme", {"driver": "org.mariadb.jdbc.Driver"}


def _sql_state(error: PySparkException | Py4JJavaError) -> tuple[str | None, str]:
    """The state that the driver's error has, and what it says."""
    kind = java_class("java.lang.Class").forName("java.sql.SQLException")
    for cause in _causes(error):
        if kind.isInstance(cause):
            state = cause.getSQLState()
            said = str(cause.getMessage()).splitlines()[0]
            return None if state is None else str(state), said
    return None, short(error)


def _causes(error: PySparkException | Py4JJavaError) -> Iterator[Any]:
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()
