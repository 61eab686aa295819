"""The source connector `files`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.on_spark import EVENT_TIME, INTERVAL
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "files",
    Role.SOURCE,
    """
    Reads the files of a folder, each once: JSON lines, CSV, Parquet, or plain lines.

    They become one STREAM. Behind the columns of a record it has `file`, the path inside of the
    folder, and `position`, the number of the line (of Parquet, of the row), from 1 on. Without
    `columns` they are found by a look at the first files; with `lines` there is one, `line`.

    A file is read when it has not been changed for as long as `settle` says, and never again: one
    that is changed later is told in the status. With `tail`, files of lines are read as they grow,
    up to the last end of a line, and stay known when they are renamed: let the pattern match the
    names of before and behind a rotation. Names that begin with a dot or an underscore are passed
    over. A line that does not fit the columns goes to the quarantine with its file and number, and
    so does the name of a file that cannot be read at all.
    """,
    (
        Field(
            "folder",
            FieldKind.TEXT,
            "The folder, which all of Spark's workers reach: below one of `source_folders` of "
            "`[spark]` in mainstem.toml, which are `data` of the project without it.",
            "data/incoming",
            required=True,
            place=True,
        ),
        Field(
            "pattern",
            FieldKind.TEXT,
            "Which files of it: `*` and `?` stand for parts of a name, `**` for folders.",
            "**/*.jsonl",
            default="*",
        ),
        Field(
            "format",
            FieldKind.TEXT,
            "What the files are.",
            "jsonl",
            required=True,
            choices=("jsonl", "csv", "parquet", "lines"),
            place=True,
        ),
        Field(
            "columns",
            FieldKind.TEXT,
            "The columns of a record, as in CREATE STREAM.",
            "id BIGINT, name STRING",
        ),
        Field(
            "header",
            FieldKind.BOOLEAN,
            "Of CSV: the first line of each file has the names of the columns.",
            "true",
            default="false",
            place=True,
        ),
        Field(
            "delimiter",
            FieldKind.TEXT,
            "Of CSV: the character between the fields of a line.",
            ";",
            default=",",
        ),
        Field(
            "tail",
            FieldKind.BOOLEAN,
            "Read files as they grow. Not for Parquet.",
            "true",
            default="false",
            place=True,
        ),
        Field(
            "settle",
            FieldKind.INTERVAL,
            "How long a file must not have been changed before it is read, without `tail`.",
            "1 minute",
            default="2 seconds",
        ),
        Field(
            "batch_bytes",
            FieldKind.INTEGER,
            "About how many bytes of files are read at a time.",
            "10000000",
            default="33554432",
            least=1,
            most=268_435_456,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Columns that are the key of the stream's records; without it the file, so that its "
            "lines stay in their order.",
            "id",
        ),
        EVENT_TIME,
        INTERVAL,
        *OF_STREAM,
    ),
)
