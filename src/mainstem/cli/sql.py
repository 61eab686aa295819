"""`mainstem sql`: statements from the command line, files, stdin or the shell."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.cli.output import Format
    from mainstem.cli.statements import Piece

app = typer.Typer()


@command(
    app,
    examples=(
        "mainstem sql                                                 a shell",
        'mainstem sql -e "SELECT * FROM page_visits"                  rows',
        'mainstem sql -e "SELECT * FROM orders EMIT CHANGES"          live, until Ctrl-C',
        'mainstem sql -e "SELECT * FROM visits WHERE page = :page" --param page=/home',
        'mainstem sql --stream -o jsonl -e "SELECT * FROM visits"     all rows, as they come',
        'mainstem sql -e "SELECT * FROM t AS OF TIMESTAMP now() - INTERVAL 1 HOUR"   as it was',
        """mainstem sql -e "EXPLAIN ROW t WHERE id = 7" -o json         the events behind a row""",
        "mainstem sql -f report.sql -o csv > report.csv               a file",
        'echo "SHOW TABLES" | mainstem sql -o jsonl                   stdin',
    ),
)
def sql(
    session: Session,
    *,
    execute: Annotated[
        list[str] | None,
        typer.Option("--execute", "-e", metavar="SQL", help="Run it; may be given several times."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Run a file, after all -e; - is stdin."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="End after N rows or changes."),
    ] = None,
    snapshot: Annotated[
        bool,
        typer.Option("--snapshot/--no-snapshot", help="Begin a push query with what is there."),
    ] = True,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="POSITION", help="Go on where a push query stopped."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE",
            help="The value of :NAME in a query; for ? the names are 1, 2 and so on.",
        ),
    ] = None,
    wait_for: Annotated[
        str | None,
        typer.Option(
            "--wait-for", metavar="RECEIPT", help="Answer when the tables have these records."
        ),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="All rows of a query over tables, as they come."),
    ] = False,
) -> None:
    """Run SQL: queries, definitions, SHOW, DESCRIBE, EXPLAIN and the rest.

    Statements are run one by one; the first error stops. A push query (EMIT CHANGES) runs until
    Ctrl-C, exits with 130 then and says the position from which --after goes on.
    """
    texts = [(text, "<-e>") for text in execute or ()]
    texts += [read_text(path) for path in file or ()]
    if not texts:
        if sys.stdin.isatty():
            from mainstem.cli.shell import Shell

            Shell(session).run()
            return
        texts = [read_text(Path("-"))]

    from mainstem.cli.statements import split

    # all texts are read before anything runs, so that a misspelt file changes nothing
    pieces = [piece for text, name in texts for piece in split(text, name)]
    asked = Asked(read_parameters(param or ()), wait_for, stream)
    for piece in pieces:
        run_piece(
            session,
            piece,
            session.form(),
            limit=limit,
            snapshot=snapshot,
            after=after,
            asked=asked,
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What is said beside a query."""

    parameters: Sequence[str] | Mapping[str, str] = ()
    wait_for: str | None = None
    stream: bool = False


def read_parameters(given: Sequence[str]) -> list[str] | dict[str, str]:
    """Values by name; in order when the names are numbers."""
    values: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name or name in values:
            problem = f'--param "{text}" is not a name, = and a value, or it is given twice'
            raise MainstemError("BAD_REQUEST", problem=problem)
        values[name] = value
    places = [str(number) for number in range(1, len(values) + 1)]
    return [values[place] for place in places] if set(values) == set(places) else values


def read_text(path: Path) -> tuple[str, str]:
    """The text of a file and its name for messages; `-` is stdin."""
    name = "<stdin>" if str(path) == "-" else str(path)
    try:
        return (sys.stdin.read() if name == "<stdin>" else path.read_text("utf-8")), name
    except UnicodeDecodeError:
        raise MainstemError("FILE_UNREADABLE", file=name, problem="it is not UTF-8 text") from None
    except OSError as error:
        raise MainstemError("FILE_UNREADABLE", file=name, problem=error.strerror) from None


def run_piece(
    session: Session,
    piece: Piece,
    form: Format,
    *,
    limit: int | None = None,
    snapshot: bool = True,
    after: str | None = None,
    expanded: bool = False,
    asked: Asked | None = None,
) -> None:
    """Run one statement and show its answer; its errors are placed in the text it came from."""
    from mainstem.cli.answers import show_answer, show_stream

    asked = asked or Asked()
    said: dict[str, Any] = {"wait_for": asked.wait_for, "limit": limit} if piece.query else {}
    parameters = asked.parameters if piece.query else ()
    try:
        if piece.push:
            run_push(session, piece, form, limit=limit, snapshot=snapshot, after=after)
        elif piece.query and asked.stream:
            show_stream(session.client.stream(piece.text, parameters, **said), form)
        else:
            answer = session.client.sql(piece.text, parameters, **said)
            show_answer(session, answer, form, expanded=expanded, message_is_data=piece.explain)
    except MainstemError as error:
        placed = error.exit_code == 3 or error.location is not None
        raise (piece.relocated(error) if placed else error) from None


def run_push(
    session: Session,
    piece: Piece,
    form: Format,
    *,
    limit: int | None,
    snapshot: bool,
    after: str | None,
) -> None:
    """Show changes until the limit or Ctrl-C; then say where to go on."""
    from mainstem.cli.answers import Changes

    changes = Changes(session, form)
    events = session.client.subscribe(
        piece.text,
        snapshot=snapshot,
        limit=limit,
        after=after,
        on_retry=lambda error: session.warn(f"{error}; trying again"),
    )
    try:
        changes.show(events)
    finally:
        if changes.position is not None:
            session.say(f"stopped after {changes.count} changes, position {changes.position}")
