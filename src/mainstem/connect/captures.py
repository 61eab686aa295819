"""Who looks into the system behind a source, by connector."""

from __future__ import annotations

from mainstem.connect.capture import Capture
from mainstem.connect.listening.captures import GeneratorCapture, SyslogCapture, WebhookCapture
from mainstem.connect.mongodb import MongoDbCapture
from mainstem.connect.mysql import MySqlCapture
from mainstem.connect.plugin_config import PluginCapture
from mainstem.connect.postgres import PostgresCapture
from mainstem.connect.sqlserver import SqlServerCapture

_CAPTURES: dict[str, Capture] = {
    "connect": PluginCapture(),
    "generator": GeneratorCapture(),
    "mariadb-cdc": MySqlCapture(mariadb=True),
    "mongodb-cdc": MongoDbCapture(),
    "mysql-cdc": MySqlCapture(mariadb=False),
    "postgres-cdc": PostgresCapture(),
    "sqlserver-cdc": SqlServerCapture(),
    "syslog": SyslogCapture(),
    "webhook": WebhookCapture(),
}


def capture_of(connector: str) -> Capture:
    """What looks into the systems of a source connector that captures changes."""
    return _CAPTURES[connector]
