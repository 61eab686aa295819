"""Which sources Kafka Connect carries, and how."""

from __future__ import annotations

from mainstem.connect.carrier import Carrier
from mainstem.connect.debezium import connector_config
from mainstem.connect.postgres_slots import remove, slot_state

_CARRIERS = {
    "postgres-cdc": Carrier("debezium-postgres", connector_config, slot_state, remove),
}


def carrier_of(connector: str) -> Carrier:
    """How the sources of a connector are carried."""
    return _CARRIERS[connector]


def is_carried(connector: str) -> bool:
    """Whether Kafka Connect carries the sources of a connector."""
    return connector in _CARRIERS
