"""`mainstem transform test`: what transforms make of sample records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session
from mainstem.cli.lines import numbered
from mainstem.cli.output import write
from mainstem.cli.pipeline import count
from mainstem.errors import MainstemError

app = typer.Typer()
transform = typer.Typer(
    help=help_text(
        ("mainstem transform test 'drop(card)' --from orders < orders.jsonl",),
        "Try the transforms of sources and sinks before they are applied.",
    ),
    short_help="Try transforms on sample records.",
    no_args_is_help=True,
)
app.add_typer(transform, name="transform")
REFUSED_EXIT = 4
_STDIN = "-"


@command(
    transform,
    name="test",
    examples=(
        "mainstem transform test 'mask(email, hash), drop(card)' --from orders < orders.jsonl",
        "mainstem transform test 'filter(n > 0)' --columns 'n INT' --file sample.jsonl",
        "mainstem consume orders -n 10 --format '%v\\n' | mainstem transform test --sink search",
        "mainstem transform test --sink search --file sample.jsonl -o json",
    ),
)
def test(
    session: Session,
    transforms: Annotated[
        str | None,
        typer.Argument(metavar="[TRANSFORMS]", help="A list as in TRANSFORM (...)."),
    ] = None,
    sink: Annotated[
        str | None, typer.Option("--sink", metavar="NAME", help="Its list, and what it reads.")
    ] = None,
    object_: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="The stream or table with the columns."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="COLUMNS", help="Columns as in CREATE STREAM."),
    ] = None,
    file: Annotated[
        str, typer.Option("--file", metavar="FILE", help="JSON lines; - is stdin.")
    ] = _STDIN,
) -> None:
    """Show what transforms make of records, before and after.

    The engine does it, as it would in a sink; nothing is written. Exit code 4: a record is refused
    and would go to the quarantine, or does not hold the columns.
    """
    if transforms is None and sink is None:
        raise typer.BadParameter("give a list of transforms, or --sink")
    if sum(given is not None for given in (object_, columns)) > 1:
        raise typer.BadParameter("--from and --columns exclude each other")
    if sink is None and object_ is None and columns is None:
        raise typer.BadParameter("say which columns the records have: --from or --columns")
    request = {"records": list(_records(file)), "transforms": transforms, "sink": sink}
    found = session.client.try_transforms({**request, "object": object_, "columns": columns})
    shown = ("record", "result", "before", "after", "cause")
    rows = [[record[name] for name in shown] for record in found["records"]]
    write(session.form(), shown, rows, document=found, colour=session.colour)
    failed = sum(record["result"] in ("refused", "bad") for record in found["records"])
    if failed:
        session.say(f"{count(failed, 'record')} would not reach the target")
        raise typer.Exit(REFUSED_EXIT)


def _records(file: str) -> Iterator[str]:
    if file == _STDIN:
        yield from _texts(sys.stdin.buffer, "<stdin>")
        return
    try:
        with Path(file).open("rb") as lines:
            yield from _texts(lines, file)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise MainstemError("FILE_UNREADABLE", file=file, problem=problem) from None


def _texts(lines: IO[bytes], file: str) -> Iterator[str]:
    for line in numbered(lines):
        try:
            yield line.data.decode()
        except UnicodeDecodeError:
            problem = "it is not UTF-8 text"
            raise MainstemError("BAD_LINE", file=file, line=line.number, problem=problem) from None
