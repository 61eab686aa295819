"""`mainstem schema infer`, `to-sql` and `to-python`: from records to schemas to definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.schema_from_sql import show_schema
from mainstem.cli.schema_options import Type
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.schemas.parse import Parsed

app = typer.Typer()
Record = Annotated[
    str | None,
    typer.Option(
        "--record", metavar="NAME", help="The records of that name; of Protobuf, else the first."
    ),
]
_NOT_SPACE = re.compile(r"[^ \t\r\n]")


@command(
    app,
    data=False,
    examples=(
        "mainstem schema infer clicks.jsonl > schemas/clicks-value.avsc",
        "mainstem schema infer clicks.jsonl --type json > schemas/clicks-value.json",
        "mainstem schema infer clicks.jsonl --type protobuf > schemas/clicks-value.proto",
        "mainstem consume clicks -n 1000 --format '%v\\n' | mainstem schema infer - --name Click",
    ),
)
def infer(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON objects; - reads stdin.")],
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="avro, json or protobuf.")
    ] = "avro",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of the record; else the file's.")
    ] = None,
) -> None:
    """Make a schema out of sample records.

    All samples fit it; a field that some of them lack, or have as null, may be absent. Look at it
    before it is registered: samples cannot show everything.
    """
    from mainstem.cli.schema_files import STDIN, read_text, type_of
    from mainstem.schemas.infer import infer as inferred

    given = type_of(file, kind)
    plain = "Record" if file == STDIN else Path(file).stem
    found = inferred(_samples(read_text(file), file), given, name or plain)
    show_schema(found)


@command(
    app,
    name="to-sql",
    data=False,
    examples=(
        "mainstem schema to-sql clicks-value              from the registry",
        "mainstem schema to-sql clicks-value >> pipeline/streams.sql",
        "mainstem schema to-sql click.avsc --topic clicks",
        "mainstem schema to-sql shop.OrderPaid --topic orders   named after the record",
    ),
)
def to_sql(
    session: Session,
    what: Annotated[
        str, typer.Argument(metavar="SUBJECT|FILE", help="A subject, or a schema's file.")
    ],
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="Else as the subject says.")
    ] = None,
    record: Record = None,
    kind: Type = None,
) -> None:
    """Print the CREATE STREAM that reads records of a schema.

    What no column type can hold is left out, and said: in comments, and on stderr. With --record,
    or when the subject is named after its record, the stream has the records of that name only.
    """
    from mainstem.cli.schema_files import subject_of
    from mainstem.cli.schema_users import topic_of
    from mainstem.schemas.record_names import named_after
    from mainstem.schemas.to_sql import to_sql as statement

    in_file = Path(what).is_file()
    subject = subject_of(what) if in_file else what
    topic = topic or topic_of(subject) or subject
    parsed = _parsed_at(session, what, kind)
    # a file may be called like anything
    found, strategy = named_after(parsed, "" if in_file else subject, topic)
    text = statement(parsed, topic, record or found, strategy)
    typer.echo(text)
    for line in text.splitlines():
        if line.startswith("-- "):
            session.warn(line.removeprefix("-- "))


@command(
    app,
    name="to-python",
    data=False,
    examples=(
        "mainstem schema to-python clicks-value > click.py    from the registry",
        "mainstem schema to-python click.avsc",
    ),
)
def to_python(
    session: Session,
    what: Annotated[
        str, typer.Argument(metavar="SUBJECT|FILE", help="A subject, or a schema's file.")
    ],
    record: Record = None,
    kind: Type = None,
) -> None:
    """Print typed Python classes (pydantic) for the records of a schema."""
    from mainstem.schemas.to_python import to_python as module

    typer.echo(module(_parsed_at(session, what, kind), Path(what).name, record), nl=False)


def _parsed_at(session: Session, what: str, kind: str | None) -> Parsed:
    """The schema in a file of that name, or else the newest of that subject."""
    from mainstem.cli.schema_files import no_references, read_schema
    from mainstem.schemas.parse import parse

    if Path(what).is_file():
        return parse(read_schema(what, kind), no_references)
    return parse(session.registry.latest(what).schema, session.registry.resolve)


def _samples(text: str, file: str) -> Iterator[Any]:
    """JSON values one after the other, however they are broken into lines; an array's are taken."""
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)
    at = 0
    while (begin := _NOT_SPACE.search(text, at)) is not None:
        at = begin.start()
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            why = getattr(error, "msg", None) or "it is nested too deep"
            problem = f"line {line} is not JSON: {why}"
            raise MainstemError("FILE_UNREADABLE", file=file, problem=problem) from None
        yield from value if isinstance(value, list) else [value]


def _no_number(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not a number of JSON", name, 0)
