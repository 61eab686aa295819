"""The sink connector `python`: rows to a class of the project."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="python",
    role=Role.SINK,
    doc="""Hands rows to a class of the project, at least once.

The class is made with a dictionary: of the definition's options those that begin with `option.`,
such as `'option.url' = 'https://crm.example.com'`, secrets by reference. Its method `write(rows)`
is called with some rows at a time, those of a partition in their order, as a `pyarrow.Table`: the
columns of what is read, then `_topic`, `_partition`, `_offset` and `_time`; of a table also
`_deleted`, and of a deleted row only the key says something. It returns nothing, or pairs of a
row's number and a cause for rows that go to the quarantine. `open(sink, batch)` before, `finish()`
behind the last rows of a batch, where it has to see to it that they are safe, and `close()` in any
case: a class has those that it needs.

After a failure, rows come again that were written before; their offsets tell which. An `OSError`
(`ConnectionError` and `TimeoutError` are some) means that what it writes to is away, and the sink
tries again. Whatever else it raises stops the sink, or puts aside the row, as `on_error` says; to
find the row, `write` is then called with fewer and fewer. A changed file is taken with the next
batch. It runs in Spark's workers, which need the packages that it imports.""",
    fields=(
        Field(
            "file",
            FieldKind.FILE,
            "The file with the class.",
            "connectors/crm.py",
            required=True,
            place=True,
        ),
        Field("class", FieldKind.TEXT, "The class.", "Crm", required=True, place=True),
        Field(
            "on_error",
            FieldKind.TEXT,
            "What becomes of a row that `write` raises something for: the sink stops there until "
            "the code is corrected, or the row goes to the quarantine.",
            "quarantine",
            default="stop",
            choices=("stop", "quarantine"),
        ),
    ),
    passed_on="option.",
)
