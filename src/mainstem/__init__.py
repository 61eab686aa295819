"""Mainstem: an event-streaming platform for Python people, on Kafka, Spark and PostgreSQL."""

from typing import TYPE_CHECKING, Any

from mainstem.decorators import function, on, sink, stateful, stream, table
from mainstem.keyed import State, Timer

if TYPE_CHECKING:
    from mainstem.client import Client

__all__ = ["Client", "State", "Timer", "function", "on", "sink", "stateful", "stream", "table"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # functions of a project import this package in every worker, which has no use for HTTP
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mainstem.client import Client

    return Client
