"""`mainstem sink`: the targets that sinks write to, built anew."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.backfill import Wait, wait_for
from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session
from mainstem.cli.output import Format, write
from mainstem.cli.pipeline import confirm_losses

app = typer.Typer()
sink = typer.Typer(
    help=help_text(
        ("mainstem sink rebuild orders_search     fill a new index, then let it take over",),
        "Look after what sinks write to. They are made by CREATE SINK and removed by DROP SINK.",
    ),
    short_help="Build the target of a sink anew.",
    no_args_is_help=True,
)
app.add_typer(sink, name="sink")


@sink.callback()
def _group() -> None:
    """With one command alone, Typer would leave its name out."""


@command(
    sink,
    examples=(
        "mainstem sink rebuild orders_search",
        "mainstem sink rebuild orders_copy --wait      until the new table has the name",
        "mainstem sink rebuild orders_copy --dry-run   only say how many records it would read",
        "mainstem backfill list orders_copy            how far it is",
        "mainstem backfill cancel orders_copy          the old target stays",
    ),
)
def rebuild(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A sink.")],
    wait: Wait = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be read.")
    ] = False,
) -> None:
    """Fill another table, index or folder from the beginning, then let it take over in one step.

    The old one is written to, and can be read, until then. It goes on by itself after any crash.
    """
    told = session.client.rebuild_sink(name, dry_run=True)
    if not dry_run:
        if not told["whole"]:
            losses = f"drop from the target of {told['name']} what is no longer in the log"
            confirm_losses([losses], yes=yes)
        told = session.client.rebuild_sink(name)
    columns = ("name", "records")
    if session.form() is Format.TABLE:
        verb = "would read" if dry_run else "reads"
        session.say(f"{told['name']}: {verb} {told['records']:,} records from the beginning")
    else:
        write(session.form(), columns, [[told[c] for c in columns]], document=told)
    if wait and not dry_run:
        wait_for(session, told["name"])
