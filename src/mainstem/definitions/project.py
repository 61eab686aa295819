"""The files of a project: read them, and take the definitions out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mainstem.definitions.handlers import read_handlers
from mainstem.definitions.indexes import with_indexes
from mainstem.definitions.lexer import NO_FUNCTIONS
from mainstem.definitions.model import (
    Create,
    CreateIndex,
    Definition,
    FunctionDefinition,
    Index,
    Statement,
)
from mainstem.definitions.parse import parse
from mainstem.definitions.pipelines import MARKS, read_pipelines
from mainstem.definitions.python_functions import (
    FUNCTIONS_FOLDER,
    check_imports,
    is_functions_file,
)
from mainstem.definitions.python_source import PythonSource
from mainstem.definitions.python_streams import marked_functions
from mainstem.definitions.sinks import SINK_MARK, read_sinks
from mainstem.definitions.stateful import read_stateful
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

PIPELINE_FOLDER = "pipeline"
_FUNCTION_MARKS = ("mainstem.function", "mainstem.stateful", "mainstem.on")


def read_files(folder: Path) -> list[tuple[str, str]]:
    """Path (relative to the project) and text of `pipeline/**/*.sql`, `*.py`, `functions/**/*.py`.

    In order of the path within each folder.
    """
    found = []
    paths = sorted((folder / PIPELINE_FOLDER).rglob("*.sql"))
    paths += sorted((folder / PIPELINE_FOLDER).rglob("*.py"))
    paths += sorted((folder / FUNCTIONS_FOLDER).rglob("*.py"))
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise MainstemError(
                "FILE_UNREADABLE",
                location=SourceLocation(name, line, 1),
                file=name,
                problem="it is not UTF-8",
            ) from None
        except OSError as error:
            raise MainstemError(
                "FILE_UNREADABLE", file=name, problem=error.strerror or "it cannot be read"
            ) from None
        found.append((name, text))
    return found


def load_definitions(
    files: Iterable[tuple[str, str]], functions: Mapping[str, FunctionDefinition] = NO_FUNCTIONS
) -> list[Definition]:
    """The definitions in SQL texts (CREATE statements only) and Python texts, in order.

    `functions` are what the SQL may call; `load_functions` reads them.
    """
    definitions: list[Definition] = []
    indexes: list[Index] = []
    places: dict[str, SourceLocation] = {}
    for file, text in files:
        if is_functions_file(file):
            source = PythonSource(file, text)
            _check_marks(source, (*MARKS, SINK_MARK), PIPELINE_FOLDER)
            found = [*read_stateful(source), *read_handlers(source)]
        elif file.endswith(".py"):
            source = PythonSource(file, text)
            _check_marks(source, _FUNCTION_MARKS, FUNCTIONS_FOLDER)
            check_imports(source, {PIPELINE_FOLDER, FUNCTIONS_FOLDER})
            found = [*read_pipelines(source), *read_sinks(source)]
        else:
            statements = parse(text, file, functions)
            indexes += [s.index for s in statements if isinstance(s, CreateIndex)]
            found = [_definition(s) for s in statements if not isinstance(s, CreateIndex)]
        for definition in found:
            other = places.setdefault(definition.name.lower(), definition.location)
            if other is not definition.location:
                raise MainstemError(
                    "DUPLICATE_NAME",
                    location=definition.location,
                    name=definition.name,
                    other=str(other),
                )
            definitions.append(definition)
    return with_indexes(definitions, indexes)


def _check_marks(source: PythonSource, marks: Iterable[str], folder: str) -> None:
    """Refuse a mark in a folder where nobody looks for it."""
    for mark in marks:
        for node, _ in marked_functions(source, mark):
            raise source.error(
                node,
                f"@{mark.removeprefix('mainstem.')} has no meaning in this folder",
                f"Put the function into a file of {folder}/.",
            )


def _definition(statement: Statement) -> Definition:
    if isinstance(statement, Create):
        return statement.definition
    raise MainstemError(
        "SQL_NOT_ALLOWED",
        location=statement.location,
        what="a statement other than CREATE",
        advice="Pipeline files hold definitions only; run other statements with `mainstem sql`.",
    )
