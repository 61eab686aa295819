"""The source connector `generator`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "generator",
    Role.SOURCE,
    """
    Makes records up, for demonstrations and load tests.

    They become one STREAM with the columns that are given, each with what makes it:
    `sequence(start, step)`, `uniform(low, high)`, `normal(mean, deviation)`, `pick(a, b, c)`,
    `chance(0.1)` for booleans, `text(length)`, `numbered("user-", 100)` for `user-1` to
    `user-100`, `uuid()` and `now()`. A column without AS is made by its type.

    The values of a record depend on `seed` and on its number alone, but for `now()`. Started again,
    it goes on behind the last record that the stream has, and never makes one twice; of several
    gateways one makes the records.
    """,
    (
        Field(
            "columns",
            FieldKind.TEXT,
            "Columns with their types, as in CREATE STREAM, and what makes them.",
            'id BIGINT AS sequence(), user STRING AS numbered("user-", 100), '
            "amount DOUBLE AS uniform(1, 100), at TIMESTAMP AS now()",
            required=True,
        ),
        Field(
            "rate",
            FieldKind.NUMBER,
            "Records per second.",
            "100",
            default="1",
            least=0.001,
            most=1_000_000,
        ),
        Field(
            "count",
            FieldKind.INTEGER,
            "How many records there are to be in all; without it, there is no end.",
            "10000",
            least=1,
        ),
        Field(
            "seed",
            FieldKind.INTEGER,
            "Another number makes other records.",
            "42",
            default="1",
            least=0,
            most=2**63 - 1,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Columns that are the key of the stream's records.",
            "user",
        ),
        Field(
            "event_time",
            FieldKind.TEXT,
            "The column with the event time; without it, when the record was made.",
            "at",
        ),
        *OF_STREAM,
    ),
)
