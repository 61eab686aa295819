"""The source connector `mysql-cdc`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.debezium_options import PASSWORD, PREFIX, SNAPSHOT, USER
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role


def spec(name: str, product: str, other: str, tls: tuple[str, ...]) -> ConnectorSpec:
    """The description for one of the two products, which differ in the plugin that reads them.

    `tls` are the choices of that option, the default first.
    """
    return ConnectorSpec(
        name,
        Role.SOURCE,
        f"""
        Captures the changes of {product} tables, from its binary log with Debezium.

        Each captured table becomes a TABLE with its rows as they are, and a STREAM with each of its
        changes: `op` (`c` created, `u` updated, `d` deleted, `t` truncated, `r` read when the
        source began, or in a snapshot), the row `before` and `after`, the `position` in the binary
        log, the `transaction` (its GTID, where the server has them), and the time `at` which it was
        committed. The server needs `log_bin`, `binlog_format = ROW` and `binlog_row_image = FULL`,
        the user SELECT on the tables, RELOAD, REPLICATION SLAVE and REPLICATION CLIENT. For
        {other} there is a connector of its own.
        """,
        (
            Field(
                "url",
                FieldKind.URL,
                "The server, the database that is meant where none is named, and who logs in: "
                "`mysql://user@host:3306/database`.",
                "${env:SHOP_URL}",
                place=True,
                required=True,
            ),
            USER,
            PASSWORD,
            Field(
                "tables",
                FieldKind.NAMES,
                "The tables, each with its database, else that is the one of the URL; `*` stands "
                "for any letters.",
                "orders, sales.*",
                required=True,
            ),
            Field(
                "exclude",
                FieldKind.NAMES,
                "Columns that are left out, with database and table; `*` stands for any letters.",
                "shop.customers.password, *.*.search_text",
            ),
            PREFIX,
            SNAPSHOT,
            Field(
                "server_id",
                FieldKind.INTEGER,
                "The number by which the server knows the reader of its log; no other reader or "
                "replica may have it. Without it one is made from the names of project and source.",
                "5400",
                least=1,
                most=2**32 - 1,
            ),
            Field(
                "tls",
                FieldKind.TEXT,
                f"Whether the connections are encrypted: {' or '.join(f'`{how}`' for how in tls)}.",
                "required",
                default=tls[0],
                choices=tls,
            ),
            Field(
                "heartbeat",
                FieldKind.INTERVAL,
                "How often the position moves on while the captured tables are quiet, so that it "
                "is not in a binary log that the server has removed.",
                "30 seconds",
                default="10 seconds",
            ),
        ),
    )


SPEC = spec("mysql-cdc", "MySQL", "MariaDB", ("preferred", "required", "disabled"))
