"""`@stream` and `@table` functions: DataFrames in and out, in place of a SELECT; never run here."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.event_time import read_event_time
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import (
    Definition,
    Flavour,
    FlowKind,
    FunctionDefinition,
    Kind,
    Lane,
    Parameter,
    Query,
)
from mainstem.definitions.names import check_object_name, plain_name
from mainstem.definitions.options import Option, settings
from mainstem.definitions.python_source import PythonSource, narrowed, version_of
from mainstem.definitions.python_streams import marked_functions
from mainstem.errors import MainstemError
from mainstem.vocabulary import RESERVED_COLUMNS

MARKS = {"mainstem.stream": Kind.STREAM, "mainstem.table": Kind.TABLE}
_FRAME = "dataframe"
_SHAPE = (
    "Write def name(orders: DataFrame, customers: DataFrame) -> DataFrame: a parameter is named "
    'after the stream or table that it reads; for others use inputs={"orders": "shop.orders"}.'
)
_OPTIONS = "Options are written out: texts, numbers, True, and lists of texts."
_WORD = re.compile(r"\w+")
_WRITES = ("writeStream", "writeTo")


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


def refusal(definition: Definition, what: str, advice: str) -> MainstemError:
    """NOT_SUPPORTED at the function."""
    return MainstemError(
        "NOT_SUPPORTED",
        location=definition.location,
        what=what,
        where="a function over DataFrames",
        advice=advice,
    )


def _read(source: PythonSource, node: ast.FunctionDef, mark: ast.expr, kind: Kind) -> Definition:
    text = Source(source.text, source.file)
    given = _given(source, mark)
    read = _inputs(source, node, given.pop("inputs", None))
    name, name_at = node.name, source.offset(node)
    if (named := given.pop("name", None)) is not None:
        name, name_at = _constant(source, named, str), source.offset(named.value)
    check_object_name(text, name, name_at)
    final = given.pop("final", None)
    options = _options(source, kind, given)
    fields = settings(text, options, kind, derived=True)
    fields |= read_event_time(text, options, fields.pop("event_time", None))
    key: tuple[str, ...] = fields.pop("key", ())
    for number, column in enumerate(key):
        if column.lower() in (earlier.lower() for earlier in key[:number]):
            place = options["key"].value_at
            raise text.error("DUPLICATE_COLUMN", place, column=column, name=name)
    needed = source.needed(node)
    _check_writes(source, needed)
    function = FunctionDefinition(
        name=node.name,
        flavour=Flavour.PIPELINE,
        parameters=tuple(Parameter(parameter, _FRAME) for parameter in read),
        returns=_FRAME,
        nullable=False,
        source=source.excerpt(needed),
        location=source.location(node),
        version=version_of(narrowed([_unmarked(s, node, mark) for s in needed])),
    )
    words = source.excerpt([node]).strip()
    query = Query(
        text=words,
        canonical=f"{function.signature} {', '.join(read.values())} {function.version}",
        inputs=tuple(read.values()),
        location=function.location,
        columns_read=("*", *_metadata(needed)),
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
        final=final is not None and _constant(source, final, bool),
        **fields,
    )


def _given(source: PythonSource, mark: ast.expr) -> dict[str, ast.keyword]:
    if not isinstance(mark, ast.Call):
        return {}
    if mark.args:
        raise source.error(mark, "options have names", _OPTIONS)
    found: dict[str, ast.keyword] = {}
    for keyword in mark.keywords:
        if keyword.arg is None:
            raise source.error(keyword.value, "options behind ** cannot be read", _OPTIONS)
        found[keyword.arg] = keyword
    return found


def _inputs(
    source: PythonSource, node: ast.FunctionDef, renamed: ast.keyword | None
) -> dict[str, str]:
    """Parameter -> the stream or table that it reads."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    others = (given.vararg, given.kwarg, *given.kwonlyargs, *given.defaults)
    if not plain or any(part is not None for part in others):
        raise source.error(node, f'"{node.name}" does not take DataFrames', _SHAPE)
    names: dict[str, str] = {}
    if renamed is not None:
        if not isinstance(renamed.value, ast.Dict):
            raise source.error(renamed.value, "inputs is not understood", _SHAPE)
        for key, value in zip(renamed.value.keys, renamed.value.values, strict=True):
            match key, value:
                case ast.Constant(str(parameter)), ast.Constant(str(name)) if plain_name(name):
                    names[parameter] = name
                case _:
                    raise source.error(value, "inputs is not understood", _SHAPE)
    for parameter in names:
        if parameter not in (argument.arg for argument in plain):
            raise source.error(node, f'"{node.name}" has no parameter "{parameter}"', _SHAPE)
    read = {argument.arg: names.get(argument.arg, argument.arg) for argument in plain}
    if len({name.lower() for name in read.values()}) < len(read):
        advice = "Use the one parameter as often as you need it, each time under another .alias()."
        raise source.error(node, f'"{node.name}" has two parameters for one input', advice)
    return read


def _options(source: PythonSource, kind: Kind, given: dict[str, ast.keyword]) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for name, keyword in given.items():
        known = "key" if name == "primary_key" and kind is Kind.TABLE else name
        if known in options:
            raise source.error(keyword.value, "key and primary_key are given", "Give one of them.")
        place = source.offset(keyword.value)
        options[known] = Option(_text(source, keyword.value), source.offset(keyword), place)
    return options


def _text(source: PythonSource, value: ast.expr) -> str:
    """An option's value as it would stand in WITH (...)."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return str(number)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if parts:
            return ", ".join(_text(source, part) for part in parts)
    raise source.error(value, "the value of an option cannot be read", _OPTIONS)


def _constant(source: PythonSource, keyword: ast.keyword, kind: type) -> Any:
    match keyword.value:
        case ast.Constant(value=value) if type(value) is kind:
            return value
    raise source.error(keyword.value, f"{keyword.arg} is not understood", _OPTIONS)


def _unmarked(statement: ast.stmt, node: ast.FunctionDef, mark: ast.expr) -> ast.stmt:
    """The function without its mark: options are no part of what it does."""
    if statement is not node:
        return statement
    plain = copy.copy(node)
    plain.decorator_list = [d for d in node.decorator_list if d is not mark]
    return plain


def _metadata(statements: Sequence[ast.stmt]) -> list[str]:
    """The metadata columns that the text mentions, in a string or as an attribute."""
    words = set[str]()
    for inner in (inner for statement in statements for inner in ast.walk(statement)):
        match inner:
            case ast.Constant(value=str(text)):
                words |= set(RESERVED_COLUMNS).intersection(_WORD.findall(text))
            case ast.Attribute(attr=name) if name in RESERVED_COLUMNS:
                words.add(name)
    return sorted(words)


def _check_writes(source: PythonSource, statements: Sequence[ast.stmt]) -> None:
    """What a function wrote by itself would be written again with each replay."""
    for inner in (inner for statement in statements for inner in ast.walk(statement)):
        match inner:
            case ast.Attribute(attr=name) if name in _WRITES:
                pass
            case ast.Attribute(value=ast.Attribute(attr="write" as name)):
                pass
            case _:
                continue
        raise source.error(
            inner,
            f"a function over DataFrames does not write by itself (.{name})",
            "Return the DataFrame: Mainstem writes its rows, exactly once.",
        )
