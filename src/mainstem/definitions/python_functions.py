"""The Python functions of a project: read from the source text, never run here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from mainstem.definitions.annotations import ARRAYS, Annotation, Annotations
from mainstem.definitions.functions import functions
from mainstem.definitions.keywords import RESERVED, SYNTAX_WORDS
from mainstem.definitions.model import Flavour, FunctionDefinition, Parameter
from mainstem.definitions.python_source import PythonSource, version_of, walk_functions
from mainstem.errors import MainstemError

FUNCTIONS_FOLDER = "functions"
_MARK = "mainstem.function"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_ARROW = (Flavour.VECTORISED, Flavour.AGGREGATE)


def is_functions_file(path: str) -> bool:
    """True for `functions/**/*.py`, by its path in the project."""
    pure = PurePosixPath(path)
    return pure.suffix == ".py" and pure.parts[:1] == (FUNCTIONS_FOLDER,)


def load_functions(files: Iterable[tuple[str, str]]) -> dict[str, FunctionDefinition]:
    """The functions in the Python files among `files`, by lower-case name."""
    texts = [(path, text) for path, text in files if is_functions_file(path)]
    siblings = {PurePosixPath(path).stem for path, _ in texts} | {FUNCTIONS_FOLDER}
    found: dict[str, FunctionDefinition] = {}
    for path, text in texts:
        source = PythonSource(path, text)
        check_imports(source, siblings)
        for function in read_functions(source):
            other = found.setdefault(function.name.lower(), function)
            if other is not function:
                raise MainstemError(
                    "DUPLICATE_NAME",
                    location=function.location,
                    name=function.name,
                    other=str(other.location),
                )
    return found


def read_functions(source: PythonSource) -> list[FunctionDefinition]:
    """The functions of one file that carry the mark, in order."""
    found = []
    for node in walk_functions(source.tree):
        mark = next((d for d in node.decorator_list if _marked(source, d)), None)
        if mark is None:
            continue
        if isinstance(node, ast.AsyncFunctionDef) or node not in source.tree.body:
            raise source.error(
                node,
                f'"{node.name}" cannot be used in SQL',
                "Make it a plain function (def) at the top of the file.",
            )
        found.append(_read(source, node, _flavour(source, mark)))
    return found


def _read(source: PythonSource, node: ast.FunctionDef, flavour: Flavour) -> FunctionDefinition:
    check_function_name(source, node)
    annotations = Annotations(source)
    parameters = _parameters(source, annotations, node, flavour)
    if node.returns is None:
        raise source.error(
            node, f'"{node.name}" does not say what it returns', "Add an annotation: -> type."
        )
    if flavour is Flavour.TABLE:
        returns, nullable = annotations.rows(node.returns), False
    else:
        given = annotations.read(node.returns)
        # an aggregate takes arrays, and gives one value
        _check_array(source, node.returns, given, array=flavour is Flavour.VECTORISED)
        returns, nullable = given.type, given.nullable
    needed = source.needed(node)
    return FunctionDefinition(
        name=node.name,
        flavour=flavour,
        parameters=parameters,
        returns=returns,
        nullable=nullable,
        source=source.excerpt(needed),
        location=source.location(node),
        version=version_of(needed),
    )


def _parameters(
    source: PythonSource, annotations: Annotations, node: ast.FunctionDef, flavour: Flavour
) -> tuple[Parameter, ...]:
    given = node.args
    for part in (given.vararg, given.kwarg, *given.kwonlyargs):
        if part is not None:
            raise source.error(
                part,
                f'parameter "{part.arg}" cannot be given in SQL',
                "Use plain parameters only, without *, ** and keyword-only ones.",
            )
    plain = [*given.posonlyargs, *given.args]
    first_default = len(plain) - len(given.defaults)
    found = []
    for index, parameter in enumerate(plain):
        if parameter.annotation is None:
            raise source.error(
                parameter,
                f'parameter "{parameter.arg}" has no type',
                f"Add an annotation: {parameter.arg}: type.",
            )
        read = annotations.read(parameter.annotation)
        _check_array(source, parameter.annotation, read, array=flavour in _ARROW)
        optional = index >= first_default
        found.append(Parameter(parameter.arg, read.type, read.nullable, optional))
    if not found:
        raise source.error(
            node,
            f'"{node.name}" has no parameter',
            "A function in SQL takes at least one argument; write a constant into the query.",
        )
    return tuple(found)


def _check_array(source: PythonSource, node: ast.expr, given: Annotation, *, array: bool) -> None:
    if array and given.python not in ARRAYS:
        raise source.error(
            node,
            "a function over arrays takes pyarrow arrays",
            'Write Annotated[pa.Array, "bigint"], with the SQL type of the values.',
        )
    if not array and given.python in ARRAYS:
        raise source.error(
            node,
            "an array stands where one value is meant",
            "Mark the function with @function(vectorised=True), or annotate the value itself.",
        )


def check_function_name(source: PythonSource, node: ast.FunctionDef) -> None:
    """Refuse a name that SQL could not use."""
    known = functions()
    folded = node.name.lower()
    taken = folded in known.names | known.random or folded in known.refused
    if taken or node.name.upper() in SYNTAX_WORDS | RESERVED:
        raise source.error(
            node, f'"{node.name}" is a name of SQL itself', "Give the function another name."
        )
    if not _NAME.fullmatch(node.name):
        raise source.error(
            node,
            f'"{node.name}" cannot be called in SQL',
            "Begin with a letter; use ASCII letters, digits and underscores only.",
        )


def _marked(source: PythonSource, decorator: ast.expr) -> bool:
    mark = decorator.func if isinstance(decorator, ast.Call) else decorator
    return source.dotted(mark) == _MARK


def _flavour(source: PythonSource, mark: ast.expr) -> Flavour:
    chosen = []
    if isinstance(mark, ast.Call):
        for keyword in mark.keywords:
            flags = ("vectorised", "table", "aggregate")
            literal = isinstance(keyword.value, ast.Constant)
            if keyword.arg not in flags or not literal or mark.args:
                raise source.error(
                    mark, "@function is not understood", f"It takes {', '.join(flags)} = True."
                )
            if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
                chosen.append(Flavour(keyword.arg))
    if len(chosen) > 1:
        names = " and ".join(chosen)
        raise source.error(mark, f"a function cannot be {names}", "Choose one of them.")
    return chosen[0] if chosen else Flavour.SCALAR


def check_imports(source: PythonSource, siblings: set[str]) -> None:
    """Refuse imports of other files: each one stands alone in the engine, beside packages only."""
    for node in ast.walk(source.tree):
        names: list[str] = []
        match node:
            case ast.ImportFrom(level=level) if level:
                names = [FUNCTIONS_FOLDER]
            case ast.ImportFrom(module=str(module)):
                names = [module]
            case ast.Import(names=imported):
                names = [name.name for name in imported]
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(
            name.split(".")[0] in siblings for name in names
        ):
            raise source.error(
                node,
                "a file of the project cannot import another one",
                "Put what they share into this file, or into an installed package.",
            )
