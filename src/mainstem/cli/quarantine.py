"""`mainstem quarantine`: look at the records that could not be used, mend and replay them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session, interactive
from mainstem.cli.editor import edited
from mainstem.cli.output import Format, RowWriter, write, write_pairs
from mainstem.cli.quarantine_records import (
    Choice,
    clipped,
    given_value,
    pages,
    properties,
    settle,
    since_time,
    value_of,
)
from mainstem.errors import MainstemError

app = typer.Typer()
quarantine = typer.Typer(
    help=help_text(
        (
            "mainstem quarantine list            what could not be used, and why",
            "mainstem quarantine replay 17 --edit",
        ),
        "Records that could not be used: list, show, mend and replay, or discard them.",
    ),
    short_help="Look at records that could not be used, mend and replay them.",
    no_args_is_help=True,
)
app.add_typer(quarantine, name="quarantine")

Id = Annotated[int, typer.Argument(metavar="ID", min=0, help="As `quarantine list` shows it.")]
Ids = Annotated[list[int] | None, typer.Argument(metavar="ID", min=0, help="Only these records.")]
Stream = Annotated[
    str | None, typer.Option("--stream", metavar="NAME", help="Of this stream or table.")
]
Stage = Annotated[
    str | None, typer.Option("--stage", metavar="STAGE", help="Refused there: decode, view, ...")
]
Cause = Annotated[
    str | None,
    typer.Option("--cause", metavar="TEXT", help="With this error code, or text in the cause."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Since a time (ISO 8601), or 30m, 2h, 7d ago."),
]
All = Annotated[bool, typer.Option("--all", help="All that are held.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

_LISTED = ("id", "at", "object", "stage", "origin", "cause", "value")
_COUNTED = ("object", "stage", "code", "cause", "held", "replayed", "discarded")


@command(
    quarantine,
    name="list",
    examples=(
        "mainstem quarantine list                         the newest that are held",
        "mainstem quarantine list --stream orders --since 2h",
        "mainstem quarantine list --cause 'not JSON' -o jsonl",
        "mainstem quarantine list --summary               counts by stream and cause",
    ),
)
def list_records(
    session: Session,
    stream: Stream = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    state: Annotated[
        str,
        typer.Option("--state", metavar="STATE", help="held, replayed, discarded or any."),
    ] = "held",
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")
    ] = 50,
    summary: Annotated[
        bool, typer.Option("--summary", help="Counts by stream, stage and cause instead.")
    ] = False,
) -> None:
    """Show the records in quarantine, newest first."""
    chosen = {"stream": stream, "stage": stage, "cause": cause}
    filters = {name: text for name, text in chosen.items() if text is not None}
    if summary:
        counts = session.client.quarantine_summary(filters)
        rows = [[count[column] for column in _COUNTED] for count in counts]
        write(session.form(), _COUNTED, rows, document=counts, colour=session.colour)
        return
    asked = {**filters, "state": state}
    if since is not None:
        asked["since"] = since_time(since)
    table = session.form() is Format.TABLE
    shown = 0
    with RowWriter(session.form(), _LISTED) as writer:
        for record in pages(session, asked, limit):
            cells = [record[column] for column in _LISTED]
            writer.row([clipped(cell) for cell in cells] if table else cells)
            shown += 1
    if table:
        held = sum(count["held"] for count in session.client.quarantine_summary(filters))
        session.say(f"{shown} shown; {held} are held in all")


@command(
    quarantine,
    examples=("mainstem quarantine show 17", "mainstem quarantine show 17 -o json"),
)
def show(session: Session, id: Id) -> None:
    """Show a whole record: where it came from, why it is here, what became of it."""
    document = session.client.quarantined(id)
    write_pairs(session.form(), properties(document), document=document, colour=session.colour)


@command(
    quarantine,
    examples=(
        "mainstem quarantine replay --stream orders --dry-run     would they fit now?",
        "mainstem quarantine replay 17 18                         as they are",
        "mainstem quarantine replay 17 --edit                     mend it in $EDITOR first",
        "mainstem quarantine replay 17 --value '{\"id\": 7}'",
        "mainstem quarantine replay --cause '\"id\" is not' \\",
        "    --sql \"SELECT replace(value, 'seven', '7') AS value FROM quarantine\"",
    ),
)
def replay(
    session: Session,
    ids: Ids = None,
    stream: Stream = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    every: All = False,
    dry_run: DryRun = False,
    edit: Annotated[bool, typer.Option("--edit", help="Open $EDITOR on the value first.")] = False,
    value: Annotated[
        str | None, typer.Option("--value", metavar="TEXT", help="The new value of one record.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql",
            metavar="SELECT",
            help="A SELECT of value, and key if it changes, over key, value, cause, _topic, "
            "_partition, _offset and _timestamp of each record.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also records that would be refused again.")
    ] = False,
) -> None:
    """Write records again to the topics that they came from, each once.

    They keep their keys and times, so they come late in event time. Those that would be refused
    again stay in quarantine.
    """
    choice = Choice.of(ids, stream, stage, cause, since, every)
    request: dict[str, Any] = {"force": force, "dry_run": dry_run}
    if edit:
        if len(ids or ()) != 1 or value is not None or sql is not None:
            problem = "--edit takes one ID, and neither --value nor --sql"
            raise MainstemError("BAD_REQUEST", problem=problem)
        _replay_edited(session, choice, request)
        return
    if value is not None:
        request["value"] = value
    if sql is not None:
        request["sql"] = sql
    refused, count = settle(session, choice, request, "replayed", session.client.replay)
    if refused:
        raise MainstemError("REPLAY_REFUSED", refused=refused, count=count)


def _replay_edited(session: Session, choice: Choice, request: dict[str, Any]) -> None:
    """Edit and replay one record; a person may correct what is refused."""
    id = choice.ids[0]
    original = value_of(session.client.quarantined(id)["record"])
    value = original
    while True:
        value = edited(f"record-{id}.json", value)
        if value == original:
            raise MainstemError("NOT_EDITED", id=id)
        mended = {**request, **given_value(value)}
        refused, count = settle(session, choice, mended, "replayed", session.client.replay)
        if not refused:
            return
        if not (interactive() and typer.confirm("Edit it again?", default=True, err=True)):
            raise MainstemError("REPLAY_REFUSED", refused=refused, count=count)


@command(
    quarantine,
    examples=(
        "mainstem quarantine discard 17 18                asks first",
        "mainstem quarantine discard --stream orders --since 1d --dry-run",
        "mainstem quarantine discard --cause 'not JSON' --yes",
    ),
)
def discard(
    session: Session,
    ids: Ids = None,
    stream: Stream = None,
    stage: Stage = None,
    cause: Cause = None,
    since: Since = None,
    every: All = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Give records up: they are not counted any more, and can only be shown."""
    choice = Choice.of(ids, stream, stage, cause, since, every)
    if not (yes or dry_run):
        what = f"discard {choice}"
        if not interactive():
            raise MainstemError("CONFIRMATION_NEEDED", what=what)
        if not typer.confirm(f"{what.capitalize()}?", err=True):
            raise MainstemError("NOT_CONFIRMED")
    settle(session, choice, {"dry_run": dry_run}, "discarded", session.client.discard)
