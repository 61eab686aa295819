"""`mainstem backfill`: a table computed anew from history, or a stream given its older part."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session
from mainstem.cli.output import Format, write
from mainstem.cli.pipeline import confirm_losses
from mainstem.cli.quarantine_records import since_time
from mainstem.errors import MainstemError

app = typer.Typer()
backfill = typer.Typer(
    help=help_text(
        (
            "mainstem backfill start visits      compute it anew from the beginning",
            "mainstem backfill list              how far it is",
        ),
        "Compute a table anew from history, which is served as it is until the new result is there;"
        " or add to a stream what its flow did not read, because it began later.",
    ),
    short_help="Compute a table anew from history, or add its older part to a stream.",
    no_args_is_help=True,
)
app.add_typer(backfill, name="backfill")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A table or stream over streams.")]
Rate = Annotated[
    int | None, typer.Option("--rate", metavar="N", min=1, help="At most N records a second.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done.")]
_COLUMNS = (
    "name", "state", "since", "rate", "records_done", "records_total", "records_per_second",
    "eta_seconds",
)  # fmt: skip
_POLL_SECONDS = 0.5
_SAY_SECONDS = 5.0


@command(
    backfill,
    examples=(
        "mainstem backfill start visits                       from the beginning, at full speed",
        "mainstem backfill start visits --from 7d --rate 5000",
        "mainstem backfill start visits --from 2026-01-31T12:00:00Z --wait",
        'mainstem backfill start visits --from \'{"clicks": {"0": 1200, "1": 980}}\'',
    ),
)
def start(
    session: Session,
    name: Name,
    since: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="beginning, a time (ISO 8601, or 2h, 7d ago), or offsets as JSON.",
        ),
    ] = "beginning",
    rate: Rate = None,
    wait: Wait = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be read.")
    ] = False,
) -> None:
    """Begin to compute a table anew, or to add older records to a stream.

    It goes on by itself after any crash. What older records alone have brought into a table is not
    in the new result: that is asked for first.
    """
    request: dict[str, Any] = {"since": _place(since), "rate": rate}
    told = session.client.start_backfill(name, {**request, "dry_run": True})
    if not dry_run:
        if not told["whole"] and not told["appends"]:
            losses = f"drop from {told['name']} what older records alone have brought into it"
            confirm_losses([losses], yes=yes)
        told = session.client.start_backfill(name, request)
    columns = ("name", "since", "rate", "records")
    if session.form() is Format.TABLE:
        verb = "would read" if dry_run else "reads"
        older = "older " if told["appends"] else ""
        records = f"{told['records']:,} {older}records, from {told['since']}"
        session.say(f"{told['name']}: {verb} {records}")
    else:
        write(session.form(), columns, [[told[c] for c in columns]], document=told)
    if wait and not dry_run:
        wait_for(session, told["name"])


@command(
    backfill,
    name="list",
    examples=("mainstem backfill list", "mainstem backfill list visits -o json"),
)
def list_backfills(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only that of this one.")
    ] = None,
) -> None:
    """Show backfills: records done and left, speed, and the time it will take."""
    found = session.client.backfills() if name is None else [session.client.backfill(name)]
    rows = [[one[column] for column in _COLUMNS] for one in found]
    write(session.form(), _COLUMNS, rows, document=found, colour=session.colour)
    for one in found:
        if one["error"] is not None:
            session.warn(f"{one['name']}: {one['error']['detail']}")


@command(backfill, examples=("mainstem backfill pause visits",), data=False)
def pause(session: Session, name: Name) -> None:
    """Stop a backfill where it is."""
    told = session.client.turn_backfill(name, "pause")
    session.say(f"backfill of {told['name']} paused")


@command(
    backfill,
    examples=("mainstem backfill resume visits", "mainstem backfill resume visits --rate 20000"),
    data=False,
)
def resume(session: Session, name: Name, rate: Rate = None) -> None:
    """Let a backfill go on; with --rate, at another speed, also one that is running."""
    told = session.client.turn_backfill(name, "resume", {"rate": rate})
    session.say(f"backfill of {told['name']} goes on")


@command(backfill, examples=("mainstem backfill cancel visits",), data=False)
def cancel(
    session: Session,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Give a backfill up.

    A table stays as it is. A stream keeps what was added to it, and never gets the rest: that is
    asked for first.
    """
    if session.client.backfill(name)["appends"]:
        confirm_losses([f"give up what has not been added to {name} yet"], yes=yes)
    told = session.client.cancel_backfill(name)
    session.say(f"backfill of {told['name']} cancelled")


def wait_for(session: Session, name: str) -> None:
    """Return when the result of a backfill is there; tell how far it is meanwhile."""
    said = time.monotonic()
    while True:
        told = session.client.backfill(name)
        if told["state"] == "done":
            session.say(f"{name} has {'all of it' if told['appends'] else 'the new result'}")
            return
        if told["state"] == "cancelled":
            raise MainstemError("BACKFILL_ENDED", name=name, state="cancelled")
        if time.monotonic() - said > _SAY_SECONDS and told["records_total"] is not None:
            said = time.monotonic()
            eta = told["eta_seconds"]
            left = "" if eta is None else f", about {eta} s left"
            session.say(f"{told['records_done']:,} of {told['records_total']:,} records{left}")
        time.sleep(_POLL_SECONDS)


def _place(text: str) -> Any:
    """What the gateway takes for a place to begin."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise MainstemError("BAD_REQUEST", problem=f"--from is not JSON: {error}") from None
    return text if text == "beginning" else since_time(text)
