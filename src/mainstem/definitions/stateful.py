"""`@stateful` functions: each one defines a stream, read from its source text, never run here."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from mainstem.definitions.annotations import Annotations
from mainstem.definitions.model import (
    Definition,
    Flavour,
    FunctionDefinition,
    Kind,
    Parameter,
    Stateful,
    TimerClock,
)
from mainstem.definitions.python_functions import check_function_name
from mainstem.definitions.python_source import PythonSource, version_of
from mainstem.definitions.python_streams import (
    check_input,
    marked_functions,
    query_over,
    refusal,
)

_MARK = "mainstem.stateful"
_STATE = "mainstem.State"
_TIMER = "mainstem.Timer"
_SHAPE = (
    "Write def name(event: Event, state: State[Kept]) -> Iterator[Row], and for a timer "
    "def name(event: Event | None, state: State[Kept], timer: Timer) -> Iterator[Row]."
)
_OPTIONS = 'It takes stream="...", key="..." and, if need be, timer="event" or timer="wall".'
_NO_KEY = re.compile(r"float|double|array|map|struct")


def read_stateful(source: PythonSource) -> list[Definition]:
    """The streams that stateful functions of one file define, in order."""
    return [_read(source, node, mark) for node, mark in marked_functions(source, _MARK)]


def check_stateful(
    definition: Definition, stateful: Stateful, inputs: Sequence[Definition]
) -> None:
    """Refuse a function that cannot be called with what it reads."""
    [source] = inputs
    check_input(definition, stateful.function, source, stateful.key)
    for column in map(source.column, stateful.key):
        if column is not None and _NO_KEY.match(column.type):
            raise refusal(
                definition,
                f'column "{column.name}" of type {column.type} as the key',
                "Take columns of texts, whole numbers, decimals, dates or times.",
            )
    if stateful.clock is not None and source.pattern is not None:
        raise refusal(
            definition,
            f'a timer over the wildcard stream "{source.name}"',
            "Make a stream of it first, with CREATE STREAM ... AS SELECT, and read that one.",
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
        query=query_over(source, mark, options["stream"], _OPTIONS),
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
