"""The source connector `jdbc-poll`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.on_spark import EVENT_TIME, INTERVAL
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "jdbc-poll",
    Role.SOURCE,
    """
    Asks a database for new rows again and again: any that has a JDBC driver.

    The rows of the table or query become records of one STREAM with its columns. What is new is
    told by `incrementing`, a column whose values only grow, as the numbers of rows that are never
    changed; by `timestamp`, a column with the time of the last change of a row; or by both, which
    tell rows with the same time apart. Each row, and each change that is still there when it is
    asked, comes once. Deletes are not seen, nor rows that have NULL in these columns: for these,
    use change data capture.

    A row may be committed after one with a higher number, or a later time. So a number or a time
    that was seen counts only when it was seen for as long as `delay` says: the longest transaction
    that writes the table must be shorter than that. Drivers for PostgreSQL and MariaDB, which
    reads MySQL, too, are there; for others name the jar with `jdbc_drivers` of `[spark]` in
    mainstem.toml.
    """,
    (
        Field(
            "url",
            FieldKind.URL,
            "Where the database is, as JDBC writes it, without user and password.",
            "jdbc:postgresql://db.example.com:5432/shop",
            required=True,
            place=True,
        ),
        Field("user", FieldKind.TEXT, "Who logs in.", "mainstem"),
        Field(
            "password", FieldKind.TEXT, "The user's password.", "${env:DB_PASSWORD}", secret=True
        ),
        Field("table", FieldKind.TEXT, "The table that is read.", "public.orders", place=True),
        Field(
            "query",
            FieldKind.TEXT,
            "A SELECT that is read in the place of a table.",
            "SELECT id, total, changed_at FROM orders WHERE total > 0",
            place=True,
        ),
        Field(
            "incrementing",
            FieldKind.TEXT,
            "The column whose values only grow.",
            "id",
            place=True,
        ),
        Field(
            "timestamp",
            FieldKind.TEXT,
            "The column with the time of the last change.",
            "changed_at",
            place=True,
        ),
        Field(
            "delay",
            FieldKind.INTERVAL,
            "How long a number or a time must have been seen before rows up to it are read.",
            "1 minute",
            default="5 seconds",
        ),
        Field(
            "batch_rows",
            FieldKind.INTEGER,
            "About how many rows are read at a time.",
            "50000",
            default="100000",
            least=1,
            most=1_000_000,
        ),
        Field(
            "parallel",
            FieldKind.INTEGER,
            "In how many parts, side by side, the rows of a batch are read: by the column "
            "`incrementing`, which has to be a whole number.",
            "4",
            default="1",
            least=1,
            most=32,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Columns that are the key of the stream's records; without it the column "
            "`incrementing`, so that the changes of a row stay in their order.",
            "id",
        ),
        EVENT_TIME,
        INTERVAL,
        *OF_STREAM,
    ),
)
