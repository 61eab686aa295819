"""The source connector `sqlserver-cdc`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.debezium_options import HEARTBEAT, PASSWORD, PREFIX, SNAPSHOT, USER
from mainstem.connect.declared_tables import tables_field
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role
from mainstem.connect.sqlserver import EXAMPLE, HOME, TLS

SPEC = ConnectorSpec(
    "sqlserver-cdc",
    Role.SOURCE,
    """
    Captures the changes of SQL Server tables, from its change tables with Debezium.

    Each table becomes a TABLE with its rows as they are, and a STREAM with each of its changes:
    `op` (`c` created, `u` updated, `d` deleted, `r` read when the source began), the row `before`
    and `after`, the `position` (commit, change and number in it), the `transaction` (its commit),
    and the time `at` which it was committed. The columns are declared in the definition, and others
    are not captured; a column whose type does not hold its values stops the table, and is told.
    MONEY, TIME and XML are STRING, TINYINT is SMALLINT, DATETIME is TIMESTAMP_NTZ, DATETIMEOFFSET
    is TIMESTAMP.

    Change data capture has to be enabled for the database and each table (`sys.sp_cdc_enable_db`,
    `sys.sp_cdc_enable_table`), and SQL Server's Agent has to run. Not tested against a server yet.
    """,
    (
        Field(
            "url",
            FieldKind.URL,
            "The server, the database, spelled as there, and who logs in: "
            "`sqlserver://user@host:1433/database`.",
            "${env:SHOP_URL}",
            place=True,
            required=True,
        ),
        USER,
        PASSWORD,
        tables_field("tables", f"the schema `{HOME}`", EXAMPLE),
        PREFIX,
        SNAPSHOT,
        Field(
            "tls",
            FieldKind.TEXT,
            "Whether connections are encrypted, and the server's certificate is checked: "
            "`verified`, `required` (encrypted, by any certificate) or `disabled`.",
            "required",
            default=TLS[0],
            choices=TLS,
        ),
        HEARTBEAT,
    ),
)
