"""`@stream` and `@table` functions: DataFrames in and out, in place of a SELECT; never run here."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mainstem.definitions.event_time import read_event_time
from mainstem.definitions.frame_marks import (
    FRAME,
    constant_of,
    function_of,
    given_of,
    inputs_of,
    metadata_of,
    name_of,
    options_of,
)
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import (
    Definition,
    Flavour,
    FlowKind,
    Kind,
    Lane,
    Query,
)
from mainstem.definitions.options import settings
from mainstem.definitions.python_source import PythonSource
from mainstem.definitions.python_streams import marked_functions
from mainstem.errors import MainstemError

MARKS = {"mainstem.stream": Kind.STREAM, "mainstem.table": Kind.TABLE}


def read_pipelines(source: PythonSource) -> list[Definition]:
    """The streams and tables that functions over DataFrames of one file make, in order."""
    found = [
        (node, mark, kind)
        for name, kind in MARKS.items()
        for node, mark in marked_functions(source, name)
    ]
    found.sort(key=lambda part: part[0].lineno)
    return [_read(source, node, mark, kind) for node, mark, kind in found]


def check_pipeline(definition: Definition, kind: FlowKind, inputs: Sequence[Definition]) -> None:
    """Refuse what cannot be, whatever the function gives."""
    if kind is FlowKind.TABLE and definition.kind is Kind.STREAM:
        raise refusal(
            definition,
            "a stream that reads tables only",
            "Make it a @table; or make a stream of a table's changes with CREATE STREAM ... AS "
            "SELECT * FROM that_table, and read that one.",
        )
    if kind is not FlowKind.STREAM:
        if definition.final or definition.deduplicate:
            what = "final" if definition.final else "deduplicate"
            advice = "Leave it out: it is for functions that read streams only."
            raise refusal(definition, f"{what} over a table", advice)
        if definition.lane is Lane.REAL_TIME:
            raise MainstemError(
                "REALTIME_NOT_POSSIBLE",
                location=definition.location,
                name=definition.name,
                reason="it reads tables",
            )
    for source in inputs:
        if definition.final and source.watermark is None:
            raise refusal(
                definition,
                f'final over the stream "{source.name}", which has no watermark,',
                f"Say how late its records may be: CREATE STREAM {source.name} ... "
                "WITH (watermark = '10 minutes').",
            )


def refusal(
    definition: Definition, what: str, advice: str, where: str = "a function over DataFrames"
) -> MainstemError:
    """NOT_SUPPORTED at the function."""
    return MainstemError(
        "NOT_SUPPORTED", location=definition.location, what=what, where=where, advice=advice
    )


def _read(source: PythonSource, node: ast.FunctionDef, mark: ast.expr, kind: Kind) -> Definition:
    text = Source(source.text, source.file)
    given = given_of(source, mark)
    read = inputs_of(source, node, given.pop("inputs", None))
    name = name_of(source, node, given.pop("name", None))
    final = given.pop("final", None)
    options = options_of(source, kind, given)
    fields = settings(text, options, kind, derived=True)
    fields |= read_event_time(text, options, fields.pop("event_time", None))
    key: tuple[str, ...] = fields.pop("key", ())
    for number, column in enumerate(key):
        if column.lower() in (earlier.lower() for earlier in key[:number]):
            place = options["key"].value_at
            raise text.error("DUPLICATE_COLUMN", place, column=column, name=name)
    needed = source.needed(node)
    _check_alone(source, needed)
    function = function_of(source, node, mark, read, Flavour.PIPELINE, FRAME)
    words = source.excerpt([node]).strip()
    query = Query(
        text=words,
        canonical=f"{function.signature} {', '.join(read.values())} {function.version}",
        inputs=tuple(read.values()),
        location=function.location,
        columns_read=("*", *metadata_of(needed)),
        python=function,
    )
    return Definition(
        name=name,
        kind=kind,
        topic=fields.pop("topic", name),
        location=function.location,
        text=words,
        key=key,
        query=query,
        final=final is not None and constant_of(source, final, bool),
        **fields,
    )


def _check_alone(source: PythonSource, statements: Sequence[ast.stmt]) -> None:
    """A function only puts its inputs together: a replay could not repeat what it did beside."""
    for inner in (inner for statement in statements for inner in ast.walk(statement)):
        match inner:
            case ast.Attribute(attr="readStream" | "writeStream" | "writeTo" as name):
                pass
            case ast.Attribute(value=ast.Attribute(attr="read" | "write" as name)):
                pass
            case _:
                continue
        writes = name.startswith("write")
        raise source.error(
            inner,
            f"a function over DataFrames does not use .{name} by itself",
            "Return the DataFrame: Mainstem writes its rows, exactly once."
            if writes
            else "Make a stream or a table of it, and take that as a parameter.",
        )
