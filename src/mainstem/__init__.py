"""Mainstem: an event-streaming platform for Python people, on Kafka, Spark and PostgreSQL."""

from typing import TYPE_CHECKING, Any

from mainstem.decorators import function, on, sink, stateful, stream, table
from mainstem.keyed import State, Timer

if TYPE_CHECKING:
    from mainstem.client import AsyncClient, Client, connect, connect_async

__all__ = [
    "AsyncClient",
    "Client",
    "State",
    "Timer",
    "connect",
    "connect_async",
    "function",
    "on",
    "sink",
    "stateful",
    "stream",
    "table",
]
__version__ = "0.1.0"

_OF_CLIENT = ("AsyncClient", "Client", "connect", "connect_async")


def __getattr__(name: str) -> Any:
    # functions of a project import this package in every worker, which has no use for HTTP
    if name not in _OF_CLIENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mainstem import client

    return getattr(client, name)
