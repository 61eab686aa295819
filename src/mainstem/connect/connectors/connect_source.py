"""The source connector `connect`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.on_spark import EVENT_TIME, KEY
from mainstem.connect.plugin_options import CLASS, PASSED_ON, TASKS
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "connect",
    Role.SOURCE,
    """
    Runs any source connector of Kafka Connect, by its class.

    Its records become one STREAM: with `columns`, those of its JSON; without, what the plugin
    writes as a text, in the column `value`. Whatever topics the plugin names, all goes to the
    stream's own. How often a record comes is up to the plugin; one that knows it is asked for
    exactly once by `"option.exactly.once.support" = 'required'`.

    Options of the plugin are written with `option.` before them, in quotes. Only classes of jars in
    the folder `plugins` of the project can be named; for a cluster by URL, those that `classes` of
    `[connect]` in mainstem.toml lists.
    """,
    (
        CLASS,
        Field(
            "columns",
            FieldKind.TEXT,
            "The columns of the stream, as in CREATE STREAM. Connect's own times come as numbers of"
            " milliseconds: BIGINT, or use its TimestampConverter.",
            "id BIGINT, name STRING",
        ),
        KEY,
        EVENT_TIME,
        TASKS,
        *OF_STREAM,
    ),
    passed_on=PASSED_ON,
)
