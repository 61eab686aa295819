"""The registry that a project uses: its own, kept in the log, or one elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainstem.config import Settings
from mainstem.log.connection import Connection
from mainstem.schemas.external import ExternalRegistry
from mainstem.schemas.registry import Registry, topic_log
from mainstem.schemas.source import SchemaSource


@contextmanager
def open_registry(settings: Settings, connection: Connection) -> Iterator[SchemaSource]:
    """The registry, ready to be asked; the log must be there if it is our own."""
    schemas = settings.schemas
    if schemas.registry:
        with closing(ExternalRegistry.from_settings(schemas)) as elsewhere:
            yield elsewhere
        return
    replicas = settings.kafka.replication_factor
    with closing(Registry(topic_log(connection, schemas.topic, replicas))) as own:
        own.start()
        yield own
