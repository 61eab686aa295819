"""`@sink` functions: called with the rows of each micro-batch, for what they do; never run here."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from mainstem.definitions.frame_marks import (
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
    Kind,
)
from mainstem.definitions.options import settings
from mainstem.definitions.pipelines import refusal
from mainstem.definitions.python_source import PythonSource
from mainstem.definitions.python_streams import marked_functions, query_over
from mainstem.errors import did_you_mean

SINK_MARK = "mainstem.sink"
RECEIPTS = "struct<batch:bigint,records:bigint>"
"""What the stream of a sink holds: one row for each micro-batch that it has taken."""
_SHAPE = "Write def name(orders: DataFrame) -> None: the parameter is named after what it reads."
_KNOWN = ("comment", "partitions", "retention", "start", "topic", "trigger")


def read_sinks(source: PythonSource) -> list[Definition]:
    """The streams of receipts of the sinks of one file, in order."""
    return [_read(source, node, mark) for node, mark in marked_functions(source, SINK_MARK)]


def check_sink(definition: Definition, inputs: Sequence[Definition]) -> None:
    """Refuse a function that cannot be called with what it reads."""
    [source] = inputs
    if source.kind is not Kind.STREAM:
        raise refusal(
            definition,
            f'a sink of the table "{source.name}"',
            "Make a stream of the table's changes in SQL, and read that one.",
        )


def _read(source: PythonSource, node: ast.FunctionDef, mark: ast.expr) -> Definition:
    text = Source(source.text, source.file)
    given = given_of(source, mark)
    read = inputs_of(source, node, given.pop("inputs", None))
    if len(read) != 1:
        raise source.error(node, f'"{node.name}" takes more than one DataFrame', _SHAPE)
    name = name_of(source, node, given.pop("name", None))
    options = options_of(source, Kind.STREAM, given)
    for option, written in options.items():
        if option not in _KNOWN:
            raise text.error(
                "UNKNOWN_OPTION",
                written.name_at,
                option=option,
                what="a sink",
                known=", ".join(("inputs", "name", *_KNOWN)),
                suggestion=did_you_mean(option, _KNOWN),
            )
    fields = settings(text, options, Kind.STREAM, derived=True)
    needed = source.needed(node)
    function = function_of(source, node, mark, read, Flavour.SINK, RECEIPTS)
    [input_] = read.values()
    query = query_over(source, mark, input_, _SHAPE)
    return Definition(
        name=name,
        kind=Kind.STREAM,
        topic=fields.pop("topic", name),
        location=function.location,
        text=source.excerpt([node]).strip(),
        query=replace(query, columns_read=("*", *metadata_of(needed))),
        sink=function,
        **fields,
    )
