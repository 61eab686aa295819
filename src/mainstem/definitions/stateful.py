"""`@stateful` functions: each one defines a stream, read from its source text, never run here."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from mainstem.definitions.annotations import Annotations
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import (
    Definition,
    Flavour,
    FunctionDefinition,
    Kind,
    Parameter,
    Query,
    Stateful,
    TimerClock,
)
from mainstem.definitions.names import plain_name
from mainstem.definitions.python_functions import check_function_name
from mainstem.definitions.python_source import PythonSource, version_of, walk_functions
from mainstem.definitions.query import read_query
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import METADATA_COLUMNS

_MARK = "mainstem.stateful"
_STATE = "mainstem.State"
_TIMER = "mainstem.Timer"
_SHAPE = (
    "Write def name(event: Event, state: State[Kept]) -> Iterator[Row], and for a timer "
    "def name(event: Event | None, state: State[Kept], timer: Timer) -> Iterator[Row]."
)
_NO_KEY = re.compile(r"float|double|array|map|struct")
_OPTIONS = 'It takes stream="...", key="..." and, if need be, timer="event" or timer="wall".'


def read_stateful(source: PythonSource) -> list[Definition]:
    """The streams that functions of one file define, in order."""
    found = []
    for node in walk_functions(source.tree):
        mark = next((d for d in node.decorator_list if _marked(source, d)), None)
        if mark is None:
            continue
        if isinstance(node, ast.AsyncFunctionDef) or node not in source.tree.body:
            raise source.error(
                node,
                f'"{node.name}" cannot make a stream',
                "Make it a plain function (def) at the top of the file.",
            )
        found.append(_read(source, node, mark))
    return found


def check_stateful(
    definition: Definition, stateful: Stateful, inputs: Sequence[Definition]
) -> None:
    """Refuse a function that cannot be called with what it reads."""
    [source] = inputs
    refused: tuple[str, str] | None = None
    bad = [c for c in map(source.column, stateful.key) if c and _NO_KEY.match(c.type)]
    if bad:
        refused = (
            f'column "{bad[0].name}" of type {bad[0].type} as the key',
            "Take columns of texts, whole numbers, decimals, dates or times.",
        )
    if source.kind is not Kind.STREAM:
        refused = f'the table "{source.name}"', "Read a stream: a table has rows, and no events."
    elif stateful.clock is not None and source.pattern is not None:
        refused = (
            f'a timer over the wildcard stream "{source.name}"',
            "Make a stream of it first, with CREATE STREAM ... AS SELECT, and read that one.",
        )
    if refused is not None:
        raise MainstemError(
            "NOT_SUPPORTED",
            location=definition.location,
            what=refused[0],
            where="a stateful function",
            advice=refused[1],
        )
    known = [column.name for column in source.columns]
    fields = [name for name, _ in struct_fields(stateful.function.parameters[0].type).values()]
    for name in (*stateful.key, *fields):
        metadata = name.lower() in METADATA_COLUMNS and name not in stateful.key
        if source.column(name) is None and not metadata:
            raise MainstemError(
                "UNKNOWN_COLUMN",
                location=definition.location,
                column=name,
                known=", ".join(known),
                suggestion=did_you_mean(name, known),
            )


def _read(source: PythonSource, node: ast.FunctionDef, mark: ast.expr) -> Definition:
    check_function_name(source, node)
    options = _options(source, mark)
    clock = options.get("timer", TimerClock.EVENT)
    if clock not in list(TimerClock):
        raise source.error(mark, f'there is no timer "{clock}"', _OPTIONS)
    key = tuple(part.strip() for part in options["key"].split(","))
    if not all(key):
        raise source.error(mark, f'"{options["key"]}" names no column', _OPTIONS)
    parameters, timed = _parameters(source, node)
    if node.returns is None:
        raise source.error(node, f'"{node.name}" does not say what it returns', _SHAPE)
    needed = source.needed(node)
    function = FunctionDefinition(
        name=node.name,
        flavour=Flavour.STATEFUL,
        parameters=parameters,
        returns=Annotations(source).rows(node.returns),
        nullable=False,
        source=source.excerpt(needed),
        location=source.location(node),
        version=version_of(needed),
    )
    return Definition(
        name=node.name,
        kind=Kind.STREAM,
        topic=node.name,
        location=function.location,
        text=source.excerpt([node]).strip(),
        query=_query(source, mark, options["stream"]),
        stateful=Stateful(function, key, TimerClock(clock) if timed else None),
    )


def _parameters(
    source: PythonSource, node: ast.FunctionDef
) -> tuple[tuple[Parameter, Parameter], bool]:
    """Record and state, and whether there is a timer."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    others = (given.vararg, given.kwarg, *given.kwonlyargs, *given.defaults)
    if any(part is not None for part in others) or len(plain) not in (2, 3):
        raise source.error(node, f'"{node.name}" does not take a record and its state', _SHAPE)
    annotations = Annotations(source)
    event, state, *timer = plain
    for parameter in plain:
        if parameter.annotation is None:
            raise source.error(parameter, f'parameter "{parameter.arg}" has no type', _SHAPE)
    assert event.annotation is not None
    record = annotations.read(event.annotation)
    if not record.type.startswith("struct<"):
        raise source.error(event, "a record is a dataclass, NamedTuple or TypedDict", _SHAPE)
    match state.annotation:
        case ast.Subscript(value=outer, slice=inner) if source.dotted(outer) == _STATE:
            kept = annotations.read(inner)
        case _:
            raise source.error(state, f'parameter "{state.arg}" is not a State[...]', _SHAPE)
    for parameter in timer:
        assert parameter.annotation is not None
        if source.dotted(parameter.annotation) != _TIMER:
            raise source.error(parameter, f'parameter "{parameter.arg}" is not a Timer', _SHAPE)
        if not record.nullable:
            raise source.error(
                event, "there is no record when the timer rings", f"Write {event.arg}: ... | None."
            )
    return (
        Parameter(event.arg, record.type, record.nullable),
        Parameter(state.arg, kept.type, nullable=True),
    ), bool(timer)


def _query(source: PythonSource, mark: ast.expr, stream: str) -> Query:
    """All of the stream."""
    try:
        if not plain_name(stream):
            raise MainstemError("INVALID_NAME", name=stream, what="a stream")
        text = Source(f"SELECT * FROM {stream}")  # noqa: S608 - a plain name
        query, _ = read_query(text, text.statements()[0], definition=True)
    except MainstemError:
        raise source.error(mark, f'"{stream}" is not the name of a stream', _OPTIONS) from None
    return replace(query, location=source.location(mark))


def _options(source: PythonSource, mark: ast.expr) -> dict[str, str]:
    options: dict[str, str] = {}
    if isinstance(mark, ast.Call) and not mark.args:
        for keyword in mark.keywords:
            match keyword:
                case ast.keyword(
                    arg="stream" | "key" | "timer" as name, value=ast.Constant(str(v))
                ):
                    options[name] = v
                case _:
                    raise source.error(mark, "@stateful is not understood", _OPTIONS)
    if not {"stream", "key"} <= options.keys():
        raise source.error(mark, "@stateful does not say what it reads", _OPTIONS)
    return options


def _marked(source: PythonSource, decorator: ast.expr) -> bool:
    mark = decorator.func if isinstance(decorator, ast.Call) else decorator
    return source.dotted(mark) == _MARK
