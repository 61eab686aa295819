"""Which sources and sinks Kafka Connect carries, and how."""

from __future__ import annotations

from mainstem.connect import postgres_slots
from mainstem.connect.carrier import Carrier
from mainstem.connect.debezium_common import own_topics
from mainstem.connect.debezium_mysql import mariadb_config, mysql_config
from mainstem.connect.debezium_postgres import connector_config
from mainstem.connect.mongodb import mongodb_config
from mainstem.connect.mysql_logs import log_state, nothing_left
from mainstem.connect.plugin_config import plugin_config, plugin_state, rows_topic
from mainstem.connect.plugins import OF_PROJECT
from mainstem.connect.sqlserver import sqlserver_config

_CARRIERS = {
    "connect": Carrier(OF_PROJECT, plugin_config, plugin_state, nothing_left, rows_topic),
    "mariadb-cdc": Carrier("debezium-mariadb", mariadb_config, log_state, nothing_left, own_topics),
    "mongodb-cdc": Carrier(
        "debezium-mongodb", mongodb_config, plugin_state, nothing_left, own_topics
    ),
    "mysql-cdc": Carrier("debezium-mysql", mysql_config, log_state, nothing_left, own_topics),
    "postgres-cdc": Carrier(
        "debezium-postgres",
        connector_config,
        lambda name, options, _: postgres_slots.slot_state(name, options),
        postgres_slots.remove,
        own_topics,
    ),
    "sqlserver-cdc": Carrier(
        "debezium-sqlserver", sqlserver_config, plugin_state, nothing_left, own_topics
    ),
}


def carrier_of(connector: str) -> Carrier:
    """How the sources and sinks of a connector are carried."""
    return _CARRIERS[connector]


def is_carried(connector: str) -> bool:
    """Whether Kafka Connect carries the sources and sinks of a connector."""
    return connector in _CARRIERS
