"""Mainstem: an event-streaming platform for Python people, on Kafka, Spark and PostgreSQL."""

__version__ = "0.1.0"
