"""The mark of a function over DataFrames as it is written: what it reads, and its options."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Flavour, FunctionDefinition, Kind, Parameter
from mainstem.definitions.names import check_object_name, plain_name
from mainstem.definitions.options import Option
from mainstem.definitions.python_source import PythonSource, narrowed, version_of
from mainstem.vocabulary import RESERVED_COLUMNS

FRAME = "dataframe"
"""The type of what such a function takes and gives."""
SHAPE = (
    "Write def name(orders: DataFrame, customers: DataFrame) -> DataFrame: a parameter is named "
    'after the stream or table that it reads; for others use inputs={"orders": "shop.orders"}.'
)
OPTIONS = "Options are written out: texts, numbers, True, and lists of texts."
_WORD = re.compile(r"\w+")


def given_of(source: PythonSource, mark: ast.expr) -> dict[str, ast.keyword]:
    """The options that stand in the mark's brackets."""
    if not isinstance(mark, ast.Call):
        return {}
    if mark.args:
        raise source.error(mark, "options have names", OPTIONS)
    found: dict[str, ast.keyword] = {}
    for keyword in mark.keywords:
        if keyword.arg is None:
            raise source.error(keyword.value, "options behind ** cannot be read", OPTIONS)
        found[keyword.arg] = keyword
    return found


def inputs_of(
    source: PythonSource, node: ast.FunctionDef, renamed: ast.keyword | None
) -> dict[str, str]:
    """Parameter -> the stream or table that it reads."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    others = (given.vararg, given.kwarg, *given.kwonlyargs, *given.defaults)
    if not plain or any(part is not None for part in others):
        raise source.error(node, f'"{node.name}" does not take DataFrames', SHAPE)
    names: dict[str, str] = {}
    if renamed is not None:
        if not isinstance(renamed.value, ast.Dict):
            raise source.error(renamed.value, "inputs is not understood", SHAPE)
        for key, value in zip(renamed.value.keys, renamed.value.values, strict=True):
            match key, value:
                case ast.Constant(str(parameter)), ast.Constant(str(name)) if plain_name(name):
                    names[parameter] = name
                case _:
                    raise source.error(value, "inputs is not understood", SHAPE)
    for parameter in names:
        if parameter not in (argument.arg for argument in plain):
            raise source.error(node, f'"{node.name}" has no parameter "{parameter}"', SHAPE)
    read = {argument.arg: names.get(argument.arg, argument.arg) for argument in plain}
    if len({name.lower() for name in read.values()}) < len(read):
        advice = "Use the one parameter as often as you need it, each time under another .alias()."
        raise source.error(node, f'"{node.name}" has two parameters for one input', advice)
    return read


def options_of(
    source: PythonSource, kind: Kind, given: dict[str, ast.keyword]
) -> dict[str, Option]:
    """The options that SQL has, too, as they would stand there."""
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
    raise source.error(value, "the value of an option cannot be read", OPTIONS)


def constant_of(source: PythonSource, keyword: ast.keyword, kind: type) -> Any:
    """The value of an option that is exactly of this type."""
    match keyword.value:
        case ast.Constant(value=value) if type(value) is kind:
            return value
    raise source.error(keyword.value, f"{keyword.arg} is not understood", OPTIONS)


def _unmarked(statement: ast.stmt, node: ast.FunctionDef, mark: ast.expr) -> ast.stmt:
    """The function without its mark: options are no part of what it does."""
    if statement is not node:
        return statement
    plain = copy.copy(node)
    plain.decorator_list = [d for d in node.decorator_list if d is not mark]
    return plain


def metadata_of(statements: Sequence[ast.stmt]) -> list[str]:
    """The metadata columns that the text mentions, in a string or as an attribute."""
    words = set[str]()
    for inner in (inner for statement in statements for inner in ast.walk(statement)):
        match inner:
            case ast.Constant(value=str(text)):
                words |= set(RESERVED_COLUMNS).intersection(_WORD.findall(text))
            case ast.Attribute(attr=name) if name in RESERVED_COLUMNS:
                words.add(name)
    return sorted(words)


def name_of(source: PythonSource, node: ast.FunctionDef, named: ast.keyword | None) -> str:
    """The name of what the function makes: that of the option `name`, or its own."""
    name, place = node.name, source.offset(node)
    if named is not None:
        name, place = constant_of(source, named, str), source.offset(named.value)
    check_object_name(Source(source.text, source.file), name, place)
    return name


def function_of(
    source: PythonSource,
    node: ast.FunctionDef,
    mark: ast.expr,
    parameters: Iterable[str],
    flavour: Flavour,
    returns: str,
) -> FunctionDefinition:
    """The function, with all that it uses in its file; its mark is no part of its version."""
    needed = source.needed(node)
    return FunctionDefinition(
        name=node.name,
        flavour=flavour,
        parameters=tuple(Parameter(parameter, FRAME) for parameter in parameters),
        returns=returns,
        nullable=flavour is Flavour.SINK,
        source=source.excerpt(needed),
        location=source.location(node),
        version=version_of(narrowed([_unmarked(s, node, mark) for s in needed])),
    )
