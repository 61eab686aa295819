"""Options that sources of Debezium share."""

from __future__ import annotations

from mainstem.connect.spec import Field, FieldKind

USER = Field("user", FieldKind.TEXT, "Who logs in, if the URL does not say it.", "replicator")
PASSWORD = Field(
    "password",
    FieldKind.TEXT,
    "The password, if the URL does not have it.",
    "${env:SHOP_PASSWORD}",
    secret=True,
)
PREFIX = Field(
    "prefix",
    FieldKind.TEXT,
    "What the names of the streams and tables begin with; without it the source's name and `_`.",
    "crm_",
    place=True,
)
SNAPSHOT = Field(
    "snapshot",
    FieldKind.TEXT,
    "`initial`: the rows that are there are read first; `none`: only changes from now on.",
    "none",
    default="initial",
    choices=("initial", "none"),
)
HEARTBEAT = Field(
    "heartbeat",
    FieldKind.INTERVAL,
    "How often the position moves on while the captured tables are quiet, so that it is not behind "
    "what the server still has.",
    "30 seconds",
    default="10 seconds",
)
