"""Captures the changes of collections of MongoDB; the definition declares their fields.

A document has no schema: each declared field is read from it by its name (`schemas/documents.py`),
the others stay in the log. There is no driver here by which we could ask the server itself: what is
wrong there, Debezium says when Kafka Connect checks the connector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from mainstem.connect.capture import Captured
from mainstem.connect.carrier import Around, PutAway
from mainstem.connect.debezium_common import VALIDATION, records_config
from mainstem.connect.declared_tables import declared_tables
from mainstem.connect.server_address import bad_url, check_reachable
from mainstem.schemas.documents import ID
from mainstem.vocabulary import Column

EXAMPLE = "orders (_id STRING, item STRING, price DECIMAL(10, 2), at TIMESTAMP)"
_PORT = 27017
_NESTED = re.compile(r"(?:array|struct|map)<.*")
_IN_NESTED = re.compile(r"\b(?:timestamp|timestamp_ntz|date|smallint|tinyint|variant)\b")
_TYPES = re.compile(r"string|boolean|int|bigint|float|double|timestamp|binary|decimal\(\d+,\d+\)")


@dataclass(frozen=True, slots=True)
class _Place:
    servers: tuple[tuple[str, int], ...]
    """None of an address that names a cluster."""
    database: str
    url: str
    """Without who logs in."""
    user: str
    password: str


class MongoDbCapture:
    """A `Capture`."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The collections as they are declared; the server must be there."""
        at = _place(options)
        found = []
        for table, _, columns in declared_tables(options, at.database, EXAMPLE, _fits):
            typed = columns
            if ID not in [column.name for column in columns]:
                typed = (Column(ID, "string"), *columns)
            found.append(Captured(table, f"{name}.{table}", typed, (ID,), home=at.database))
        if at.servers:
            check_reachable(at.servers)
        return tuple(found)


def mongodb_config(
    name: str,
    options: Mapping[str, Any],
    tables: Sequence[str],
    put_away: PutAway,
    around: Around,
) -> dict[str, str]:
    """The configuration of the connector of a `mongodb-cdc` source: a `Configure`."""
    at, databases = _place(options), {table.partition(".")[0] for table in tables}
    config = {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": at.url,
        "collection.include.list": ",".join(map(re.escape, sorted(tables))),
        # an update tells the document as it is when it is looked up
        "capture.mode": "change_streams_update_full",
        "snapshot.mode": "initial" if options["snapshot"] == "initial" else "no_data",
        "mongodb.server.selection.timeout.ms": "10000",
        **VALIDATION,
        **records_config(name, options),
    }
    if len(databases) == 1:  # for the whole deployment the user would need more rights
        config |= {"capture.scope": "database", "capture.target": databases.pop()}
    if user := options["user"] or at.user:
        config |= {"mongodb.user": user, "mongodb.authsource": options["auth_source"]}
    if password := options["password"] or at.password:
        config["mongodb.password"] = put_away("mongodb.password", password)
    return config


def _place(options: Mapping[str, Any]) -> _Place:
    url = urlsplit(options["url"])
    database = unquote(url.path.removeprefix("/"))
    login, _, hosts = url.netloc.rpartition("@")
    user, _, password = map(unquote, login.partition(":"))
    if url.scheme not in ("mongodb", "mongodb+srv") or not hosts or not database:
        raise bad_url("mongodb", _PORT, "MongoDB")
    servers = []
    for server in hosts.split(",") if url.scheme == "mongodb" else ():
        host, colon, port = server.rpartition(":")
        if not colon:
            host, port = server, str(_PORT)
        if not host or not (port.isascii() and port.isdigit()):
            raise bad_url("mongodb", _PORT, "MongoDB")
        servers.append((host.strip("[]"), int(port)))
    bare = url._replace(netloc=hosts).geturl()
    return _Place(tuple(servers), database, bare, user, password)


def _fits(type_: str) -> bool:
    if _NESTED.fullmatch(type_):
        return _IN_NESTED.search(type_) is None
    return _TYPES.fullmatch(type_) is not None
