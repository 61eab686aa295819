"""`mainstem produce` and `consume`: records in and out of the log."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer()

Target = Annotated[
    str, typer.Argument(metavar="TOPIC_OR_STREAM", help="A stream, a declared table or a topic.")
]


@command(
    app,
    data=False,
    examples=(
        'echo \'{"user_id":"u1","page":"/home"}\' | mainstem produce clicks',
        "mainstem produce clicks -f clicks.jsonl           a file of JSON objects, one a line",
        "mainstem produce clicks -f c.jsonl --key user_id  the key from a field",
        "kcat ... | mainstem produce web.raw --raw         lines as they are, to any topic",
        "mainstem produce web.raw --raw --separator '\\t'   key<TAB>value lines",
    ),
)
def produce(
    session: Session,
    target: Target,
    *,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read it instead of stdin.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FIELD", help="Field that holds the key.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write lines as they are, straight to a topic.")
    ] = False,
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator", metavar="TEXT", help="With --raw: what stands between key and value."
        ),
    ] = None,
) -> None:
    """Write records from JSON lines.

    Each line is checked against the columns of the stream before anything of its batch of 1,000
    is written; the first bad line is named and ends the command.
    """
    from mainstem.cli import produce as work

    if raw and key:
        raise typer.BadParameter("it has no meaning with --raw", param_hint="--key")
    if separator is not None and not raw:
        raise typer.BadParameter("it needs --raw", param_hint="--separator")
    name = str(file) if file else "<stdin>"
    if file is None and sys.stdin.isatty():
        session.say("Type one JSON object a line; Ctrl-D ends." if not raw else "Ctrl-D ends.")
    with _open_lines(file) as lines:
        if raw:
            work.write_raw(session, target, lines, separator=separator)
        else:
            work.write_objects(session, target, lines, file=name, key=key)


@command(
    app,
    examples=(
        "mainstem consume orders                           all that is there, as JSON lines",
        "mainstem consume orders -F                        the last ten, then what comes",
        "mainstem consume orders --from -5 -o table        the last five",
        "mainstem consume orders --from time:2026-11-15T09:00:00Z -n 100",
        "mainstem consume orders --format '%k %v\\n'        key and value as they are",
        "mainstem consume orders --group audit -F          as a member of a consumer group",
    ),
)
def consume(
    session: Session,
    target: Target,
    *,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION",
            help="earliest, latest, offset:N, -N (the last N) or time:ISO (UTC without a zone). "
            "Default: earliest; -10 with --follow.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", metavar="N", min=1, help="End after N records.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Wait for more.")] = False,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="GROUP", help="Share the work and remember the place."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="TEXT",
            help="%k key, %v value, %t topic, %p partition, %o offset, %d time, %T milliseconds, "
            "%h headers, %% percent; \\n \\t \\xNN.",
        ),
    ] = None,
) -> None:
    """Read records of a stream or topic.

    Without --follow it ends where the topic ended when it began. Records of open or aborted
    transactions are not shown.
    """
    from mainstem.cli import consume as work

    if format is not None and session.options.output is not None:
        raise typer.BadParameter("give --format or --output, not both", param_hint="--format")
    if group and start not in (None, "earliest", "latest"):
        raise typer.BadParameter(
            "a group begins at earliest or latest, and then remembers", param_hint="--from"
        )
    sink = work.sink_for(session, format)
    began = time.monotonic()
    reader = work.Consumption(session, target, count=count, follow=follow)
    try:
        with sink:
            if group:
                reader.as_group(group, start or "earliest", sink)
            else:
                reader.alone(start or ("-10" if follow else "earliest"), sink)
    finally:
        reader.close()
        seconds = time.monotonic() - began
        session.say_more(f"{reader.shown} records in {seconds:.1f} s, next: {reader.position}")


@contextmanager
def _open_lines(file: Path | None) -> Iterator[BinaryIO]:
    if file is None or str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise MainstemError("FILE_UNREADABLE", file=str(file), problem=error.strerror) from None
    with stream:
        yield stream
