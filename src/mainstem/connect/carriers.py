"""Which sources Kafka Connect carries, and how."""

from __future__ import annotations

from mainstem.connect import postgres_slots
from mainstem.connect.carrier import Carrier
from mainstem.connect.debezium_mysql import mariadb_config, mysql_config
from mainstem.connect.debezium_postgres import connector_config
from mainstem.connect.mysql_logs import log_state, nothing_left

_CARRIERS = {
    "mariadb-cdc": Carrier("debezium-mariadb", mariadb_config, log_state, nothing_left),
    "mysql-cdc": Carrier("debezium-mysql", mysql_config, log_state, nothing_left),
    "postgres-cdc": Carrier(
        "debezium-postgres",
        connector_config,
        lambda name, options, _: postgres_slots.slot_state(name, options),
        postgres_slots.remove,
    ),
}


def carrier_of(connector: str) -> Carrier:
    """How the sources of a connector are carried."""
    return _CARRIERS[connector]


def is_carried(connector: str) -> bool:
    """Whether Kafka Connect carries the sources of a connector."""
    return connector in _CARRIERS
