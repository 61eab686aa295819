"""The sink connector `duckdb`: rows into a table of a DuckDB file."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="duckdb",
    role=Role.SINK,
    doc="""Writes rows to a table of a DuckDB file, exactly once.

The rows of a stream are added, or upserted by `key`; those of a table are upserted and deleted. A
file or table that is missing is made, and so are missing columns. Which records are in the table is
kept in the same file, in `_mainstem_sinks`, and changes in the same transaction: a record that
comes again changes nothing. DuckDB lets one process at a time write a file, and nobody read it
meanwhile: the sink opens it for each batch and closes it again, and while others have it open it
waits, and tries again. With `trigger = '1 minute'` there is time for others in between. Needs the
package `duckdb`: `pip install 'mainstem[duckdb]'`.""",
    fields=(
        Field(
            "file",
            FieldKind.TEXT,
            "The file, from the root on; Spark's workers have to be on the machine that has it.",
            "/data/shop.duckdb",
            required=True,
            place=True,
        ),
        Field(
            "table",
            FieldKind.TEXT,
            "The table. Default: as what is read.",
            "orders",
            place=True,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns by which rows are upserted. Without it each row is added.",
            "order_id",
            place=True,
        ),
    ),
)
