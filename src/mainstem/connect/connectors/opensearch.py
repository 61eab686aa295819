"""The sink connector `opensearch`: rows as documents of an index."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="opensearch",
    role=Role.SINK,
    doc="""Keeps rows as documents of an index of OpenSearch.

The rows of a stream are added, or upserted by `key`; those of a table are upserted and deleted. A
document's id is the value of the key's column, or a JSON array of several; without a key it is the
record's place in the log. Its version is the record's offset, and OpenSearch refuses older ones:
what comes again, or late, changes nothing. An index that is missing is made; its `_meta` says which
topic it is filled from. A document that OpenSearch does not take, such as one with a text where it
has learnt that a number is, goes to the quarantine.""",
    fields=(
        Field(
            "url",
            FieldKind.URL,
            "Where OpenSearch is.",
            "https://search.example.com:9200",
            required=True,
            place=True,
        ),
        Field(
            "index",
            FieldKind.TEXT,
            "The index, or an alias that has one to write to. Default: the name of what is read, "
            "in small letters.",
            "orders",
            place=True,
        ),
        Field("user", FieldKind.TEXT, "Who logs in.", "mainstem"),
        Field(
            "password",
            FieldKind.TEXT,
            "The user's password.",
            "${env:SEARCH_PASSWORD}",
            secret=True,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns by which rows are upserted. Without it each row is added.",
            "order_id",
            place=True,
        ),
        Field(
            "batch_rows",
            FieldKind.INTEGER,
            "Most documents of a request; it has at most 8 MiB, too, unless one is larger.",
            "500",
            default="2000",
            least=1,
            most=100_000,
        ),
        Field(
            "timeout",
            FieldKind.INTERVAL,
            "How long an answer may take.",
            "30 seconds",
            default="60 seconds",
        ),
    ),
)
