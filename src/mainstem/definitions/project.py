"""The pipeline files of a project: read them, and take the definitions out of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mainstem.definitions.model import Create, Definition, Statement
from mainstem.definitions.parse import parse
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

PIPELINE_FOLDER = "pipeline"


def read_files(folder: Path) -> list[tuple[str, str]]:
    """Path (relative to the project) and text of each `pipeline/**/*.sql`, in order of the path."""
    found = []
    for path in sorted((folder / PIPELINE_FOLDER).rglob("*.sql")):
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


def load_definitions(files: Iterable[tuple[str, str]]) -> list[Definition]:
    """The definitions in the texts, in order; only CREATE statements may stand there."""
    definitions: list[Definition] = []
    places: dict[str, SourceLocation] = {}
    for file, text in files:
        for statement in parse(text, file):
            definition = _definition(statement)
            other = places.setdefault(definition.name.lower(), definition.location)
            if other is not definition.location:
                raise MainstemError(
                    "DUPLICATE_NAME",
                    location=definition.location,
                    name=definition.name,
                    other=str(other),
                )
            definitions.append(definition)
    return definitions


def _definition(statement: Statement) -> Definition:
    if isinstance(statement, Create):
        return statement.definition
    raise MainstemError(
        "SQL_NOT_ALLOWED",
        location=statement.location,
        what="a statement other than CREATE STREAM or CREATE TABLE",
        advice="Pipeline files hold definitions only; run other statements with `mainstem sql`.",
    )
