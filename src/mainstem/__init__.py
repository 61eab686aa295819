"""Mainstem: an event-streaming platform for Python people, on Kafka, Spark and PostgreSQL."""

from mainstem.decorators import function, on, sink, stateful, stream, table
from mainstem.keyed import State, Timer

__all__ = ["State", "Timer", "function", "on", "sink", "stateful", "stream", "table"]
__version__ = "0.1.0"
