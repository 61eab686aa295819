"""Sources that run in the engine, on Spark: which they are, and the options that they share."""

from __future__ import annotations

from mainstem.connect.spec import Field, FieldKind

_CONNECTORS = frozenset(("files", "jdbc-poll", "kafka", "spark"))


def runs_on_spark(connector: str) -> bool:
    """Whether a flow of the engine carries the sources of a connector."""
    return connector in _CONNECTORS


INTERVAL = Field(
    "interval",
    FieldKind.INTERVAL,
    "How often it is asked for news; while there is more, it goes on without a pause.",
    "1 minute",
    default="5 seconds",
)
KEY = Field(
    "key",
    FieldKind.NAMES,
    "Columns that are the key of the stream's records.",
    "id",
)
EVENT_TIME = Field(
    "event_time",
    FieldKind.TEXT,
    "The column with the event time; without it, when the record was written.",
    "at",
)
