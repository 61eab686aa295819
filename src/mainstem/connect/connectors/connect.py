"""The sink connector `connect`: what it is for, and its options."""

from __future__ import annotations

from dataclasses import replace

from mainstem.connect.plugin_options import CLASS, PASSED_ON
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "connect",
    Role.SINK,
    """
    Gives rows to any sink connector of Kafka Connect, by its class.

    Rows are written exactly once to a topic of their own, with one partition, from which a task of
    the plugin takes them in their order; what it has taken is removed there. They are JSON objects;
    of a table each delete is a record without a value, and the key is a JSON text of the primary
    key's columns, or with `schemas` a struct of them. How often a row comes to the target is up to
    the plugin: at least once.

    Options of the plugin are written with `option.` before them, in quotes. Only classes of jars in
    the folder `plugins` of the project can be named; for a cluster by URL, those that `classes` of
    `[connect]` in mainstem.toml lists.
    """,
    (
        replace(CLASS, example="org.apache.kafka.connect.file.FileStreamSinkConnector"),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns that make the key of the records, as a text for one column and a "
            "JSON array for several. Without it they have none.",
            "order_id",
            place=True,
        ),
        Field(
            "schemas",
            FieldKind.BOOLEAN,
            "Whether rows and keys carry a schema of Connect's, for a plugin that wants to know "
            "columns and types, as those for databases do; dates and times are texts in it.",
            "true",
            default="false",
            place=True,
        ),
    ),
    passed_on=PASSED_ON,
)
