"""`mainstem schema from-sql`: the schema that a definition's own records have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.output import read_json, to_json
from mainstem.cli.schema_options import Type
from mainstem.errors import MainstemError, did_you_mean

if TYPE_CHECKING:
    from mainstem.definitions.model import Definition
    from mainstem.schemas.model import Schema

app = typer.Typer()


@command(
    app,
    name="from-sql",
    data=False,
    examples=(
        "mainstem schema from-sql clicks                    of an object that is running",
        "mainstem schema from-sql pipeline/streams.sql --name clicks",
        "mainstem schema from-sql - --type protobuf < clicks.sql > schemas/clicks-value.proto",
    ),
)
def from_sql(
    session: Session,
    what: Annotated[
        str,
        typer.Argument(metavar="NAME|FILE", help="A stream or table, or a file; - reads stdin."),
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Which of the file's definitions.")
    ] = None,
    kind: Type = None,
) -> None:
    """Print the schema of the records that a definition writes.

    It is the one that the definition registers when it is applied; --type gives it in
    another type than that of the definition's format, which is JSON Schema for those without one.
    An object that is running also tells the columns of its query, and keeps the numbers that the
    fields of a registered Protobuf schema have.
    """
    from mainstem.cli.schema_files import STDIN
    from mainstem.schemas.known import next_schema, own_schema

    if what == STDIN or Path(what).is_file():
        show_schema(own_schema(_written_as(_in_file(what, name), kind)))
        return
    definition = _written_as(_running(session, what), kind)
    show_schema(next_schema(definition, session.registry))


def show_schema(schema: Schema) -> None:
    """The text of a schema, in a form for people."""
    from mainstem.schemas.model import SchemaType

    if schema.type is SchemaType.PROTOBUF:
        typer.echo(schema.text, nl=False)
    else:
        typer.echo(to_json(read_json(schema.text), indent=2))


def _written_as(definition: Definition, kind: str | None) -> Definition:
    """The definition in a format that has a schema."""
    from mainstem.cli.schema_files import type_of
    from mainstem.definitions.formats import check_format
    from mainstem.definitions.model import Format
    from mainstem.schemas.model import SchemaType
    from mainstem.schemas.to_sql import FORMATS

    if kind is not None:
        given = Format(FORMATS[type_of("", kind)])
    elif definition.format.registered:
        given = definition.format
    else:
        given = Format(FORMATS[SchemaType.JSON])
    definition = replace(definition, format=given)
    check_format(definition)
    return definition


def _in_file(file: str, name: str | None) -> Definition:
    from mainstem.cli.schema_files import read_text
    from mainstem.definitions.model import Create
    from mainstem.definitions.parse import parse

    statements = parse(read_text(file), file, None)
    found = [each.definition for each in statements if isinstance(each, Create)]
    wanted = [d for d in found if name is None or d.name.lower() == name.lower()]
    if name is not None and not wanted:
        suggestion = did_you_mean(name, [definition.name for definition in found])
        raise MainstemError("UNKNOWN_RELATION", name=name, suggestion=suggestion)
    if len(wanted) != 1:
        names = ", ".join(definition.name for definition in found) or "none"
        raise typer.BadParameter(f"say which; {file} has {names}", param_hint="--name")
    if not wanted[0].columns:
        problem = "its columns are those of a query, which only a running object tells"
        raise MainstemError("SCHEMA_NOT_DERIVED", where=wanted[0].name, problem=problem)
    return wanted[0]


def _running(session: Session, name: str) -> Definition:
    """The definition of an object of the catalog, as far as its schema goes."""
    from mainstem.definitions.model import Definition, Format, Kind, SubjectStrategy
    from mainstem.vocabulary import Column, SourceLocation

    found = session.client.object(name)
    return Definition(
        found["name"],
        Kind(found["kind"]),
        found["topic"],
        SourceLocation(found["file"], found["line"], 1),
        found["sql"],
        tuple(Column(column["name"], column["type"]) for column in found["columns"]),
        format=Format(found["format"]),
        record=found["record"],
        subject_strategy=SubjectStrategy(found["subject_strategy"]),
    )
