"""`@on` functions: called for events, for what they do; read from source text, never run here."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.annotations import Annotations
from mainstem.definitions.model import (
    Definition,
    Flavour,
    FunctionDefinition,
    Handler,
    Kind,
    Parameter,
)
from mainstem.definitions.python_functions import check_function_name
from mainstem.definitions.python_source import PythonSource, version_of
from mainstem.definitions.python_streams import check_input, marked_functions, query_over

_MARK = "mainstem.on"
RECEIPTS = "struct<id:string,tries:bigint>"
"""What the stream of a function holds that returns nothing."""
_DEFAULTS: dict[str, Any] = {
    "batch": False,
    "tries": 5,
    "pause": 1.0,
    "most": 500,
    "start": "latest",
}
_SHAPE = (
    "Write def name(event: Event) -> None, or with a second parameter for the record's id: "
    "def name(event: Event, id: str) -> None; with batch=True both are lists. In place of None it "
    "may give rows: list[Row]."
)
_OPTIONS = (
    '@on("a stream") may have batch=True, tries=5 (0: without end), pause=1.0 (seconds before the '
    'second try), most=500 (records at once), start="latest" or start="earliest".'
)


def read_handlers(source: PythonSource) -> list[Definition]:
    """The streams of the event functions of one file, in order."""
    return [_read(source, node, mark) for node, mark in marked_functions(source, _MARK)]


def check_handler(definition: Definition, handler: Handler, inputs: Sequence[Definition]) -> None:
    """Refuse a function that cannot be called with what it reads."""
    [source] = inputs
    check_input(definition, handler.function, source)


def _read(source: PythonSource, node: ast.FunctionDef, mark: ast.expr) -> Definition:
    check_function_name(source, node)
    stream, options = _options(source, mark)
    batch = options["batch"]
    parameters = _parameters(source, node, batch=batch)
    receipts = isinstance(node.returns, ast.Constant) and node.returns.value is None
    if node.returns is None:
        raise source.error(node, f'"{node.name}" does not say what it returns', _SHAPE)
    needed = source.needed(node)
    function = FunctionDefinition(
        name=node.name,
        flavour=Flavour.EVENT,
        parameters=parameters,
        returns=RECEIPTS if receipts else Annotations(source).rows(node.returns),
        nullable=receipts,
        source=source.excerpt(needed),
        location=source.location(node),
        version=version_of(needed),
    )
    handler = Handler(function, batch, options["tries"], options["pause"], options["most"])
    return Definition(
        name=node.name,
        kind=Kind.STREAM,
        topic=node.name,
        location=function.location,
        text=source.excerpt([node]).strip(),
        query=query_over(source, mark, stream, _OPTIONS),
        start=options["start"],
        handler=handler,
    )


def _parameters(
    source: PythonSource, node: ast.FunctionDef, *, batch: bool
) -> tuple[Parameter, ...]:
    """The record or records and, if wanted, the id or ids."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    others = (given.vararg, given.kwarg, *given.kwonlyargs, *given.defaults)
    if any(part is not None for part in others) or len(plain) not in (1, 2):
        raise source.error(node, f'"{node.name}" does not take a record', _SHAPE)
    annotations = Annotations(source)
    found = []
    for parameter, inner in zip(plain, ("struct<", "string"), strict=False):
        if parameter.annotation is None:
            raise source.error(parameter, f'parameter "{parameter.arg}" has no type', _SHAPE)
        kind = annotations.read(parameter.annotation).type
        if not kind.startswith(f"array<{inner}" if batch else inner):
            raise source.error(parameter, f'"{parameter.arg}" is not of a fitting type', _SHAPE)
        if batch:
            kind = kind.removeprefix("array<")[:-1]
        found.append(Parameter(parameter.arg, kind))
    return tuple(found)


def _options(source: PythonSource, mark: ast.expr) -> tuple[str, dict[str, Any]]:
    match mark:
        case ast.Call(args=[ast.Constant(str(stream))], keywords=keywords):
            options = dict(_DEFAULTS)
        case _:
            raise source.error(mark, "@on does not say what it reads", _OPTIONS)
    for keyword in keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg is None or not _fits(keyword.arg, value):
            raise source.error(mark, f"{keyword.arg} of @on is not understood", _OPTIONS)
        options[keyword.arg] = value
    return stream, options


def _fits(name: str, value: object) -> bool:
    match name, value:
        case "batch", bool():
            return True
        case "tries", int(number):
            return 0 <= number <= 1000 and not isinstance(value, bool)
        case "most", int(number):
            return 1 <= number <= 100_000 and not isinstance(value, bool)
        case "pause", int(number) | float(number):
            return 0 <= number <= 3600 and not isinstance(value, bool)
        case "start", str(text):
            return text in ("earliest", "latest")
    return False
