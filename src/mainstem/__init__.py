"""Mainstem: an event-streaming platform for Python people, on Kafka, Spark and PostgreSQL."""

from mainstem.decorators import function

__all__ = ["function"]
__version__ = "0.1.0"
