"""`mainstem status`, `drop`, `pause` and `resume`: the running objects."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session, interactive
from mainstem.cli.output import Format, write
from mainstem.errors import MainstemError, render_problem

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", help="A stream, table, source or sink.")]
_COLUMNS = (
    "flow",
    "state",
    "lane",
    "lag_seconds",
    "lag_records",
    "rows_in",
    "rows_out",
    "rate",
    "batch_seconds",
    "restarts",
    "quarantined",
    "late",
)
_CLEAR = "\x1b[H\x1b[2J"


@command(
    app,
    examples=(
        "mainstem status                   every flow: state, lag, rates, errors",
        "mainstem status --watch           again every 2 seconds, until Ctrl-C",
        "mainstem status -o json           engine, flows, views and quarantine",
    ),
)
def status(
    session: Session,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Pause for --watch.")
    ] = 2.0,
) -> None:
    """Show how the flows are doing."""
    while True:
        document = session.client.status()
        if watch and sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        show_status(session, document)
        if not watch:
            return
        time.sleep(interval)


def show_status(session: Session, document: dict[str, Any]) -> None:
    """The flows as data; the engine's state, errors and quarantine as messages."""
    form = session.form()
    rows = [
        (
            flow["flow"],
            flow["state"],
            flow.get("lane"),
            flow.get("lag_seconds"),
            flow.get("lag_records"),
            flow.get("rows_in_total"),
            flow.get("rows_out_total"),
            flow.get("process_rate"),
            flow.get("batch_seconds"),
            flow.get("restarts"),
            flow.get("quarantined"),
            flow.get("late_waiting"),
        )
        for flow in document["flows"]
    ]
    if form is Format.TABLE:
        engine = document.get("engine") or {}
        session.say(f"engine: {engine.get('state', 'unknown')}")
        if schemas := document.get("schemas"):
            place = schemas["registry"]
            session.say(f"registry: {session.url.rstrip('/') if place[0] == '/' else ''}{place}")
        connect = document.get("connect") or {}
        carried = [c for c in document.get("connectors") or () if c.get("runs_in") != "gateway"]
        if carried and connect.get("state") != "ready":
            problem = f" ({connect['problem']})" if connect.get("problem") else ""
            session.say(f"connect: {connect.get('state')}{problem}")
    write(form, _COLUMNS, rows, document=document, colour=session.colour)
    if form is not Format.TABLE:
        return
    for flow in document["flows"]:
        if flow.get("error"):
            session.warn(f"{flow['flow']}: {render_problem(flow['error'])}")
        if flow.get("backfill"):
            told = f"backfill {flow['backfill']['state']}; see `mainstem backfill list`"
            session.say(f"{flow['flow']}: {told}")
        late = flow.get("late_sample")
        if late:
            count, (start, end) = flow["late_waiting"], late["windows"][-1]
            session.warn(
                f"{flow['flow']}: {count} came too late, the newest for the window from {start} "
                f"to {end}; see `mainstem sql 'APPLY LATE {flow['flow']}'`"
            )
    for one in document.get("connectors") or ():
        held = f", its source holds {one['held_bytes']:,} bytes" if one["held_bytes"] else ""
        taken = f", {one['records']:,} records" if one.get("records") else ""
        session.say(f"connector {one['name']}: {one['state']}{held}{taken}")
        if one["error"]:
            session.warn(f"{one['name']}: {render_problem(one['error'])}")
    for rule in document.get("rules") or ():
        if rule["records"]:
            session.say(
                f"{rule['object']}: rule {rule['name']} ({rule['condition']}) was broken by "
                f"{rule['records']} record{'' if rule['records'] == 1 else 's'}: "
                f"{rule['on_violation']}"
            )
    kept = (document.get("quarantine") or {}).get("records")
    if kept:
        session.warn(f"{kept} records are held in quarantine; see `mainstem quarantine list`")


@command(
    app,
    data=False,
    examples=(
        "mainstem drop big_orders             asks first",
        "mainstem drop orders --cascade       with all that reads it",
        "mainstem drop orders --yes           does not ask",
    ),
)
def drop(
    session: Session,
    name: Name,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop what depends on it, too.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be dropped.")
    ] = False,
) -> None:
    """Drop a stream, table, source or sink with its data.

    It is refused while others depend on it, unless --cascade is given. With a source goes all that
    came with it.
    """
    found = session.client.object(name)
    objects = session.client.objects()
    doomed = [name, *brought(objects, name)]
    if cascade:
        readers = (reader for gone in doomed for reader in dependents(objects, gone))
        doomed = list(dict.fromkeys((*doomed, *readers)))
    kind = "sink" if found.get("sink") else found["kind"]
    if dry_run:
        session.say(f"would drop {', '.join(doomed)}")
        return
    if not yes:
        if not interactive():
            raise MainstemError("CONFIRMATION_NEEDED", what=f"drop {', '.join(doomed)}")
        if not typer.confirm(f"Drop {', '.join(doomed)} with all data?", err=True):
            raise MainstemError("NOT_CONFIRMED")
    session.client.drop(name, cascade=cascade)
    session.say(f"{kind} {', '.join(doomed)} dropped")


def brought(objects: list[dict[str, Any]], name: str) -> list[str]:
    """Names of all objects that came with the source `name`."""
    return [o["name"] for o in objects if (o.get("source") or "").lower() == name.lower()]


def dependents(objects: list[dict[str, Any]], name: str) -> list[str]:
    """Names of all objects that read `name`, directly or through others."""
    found: list[str] = []
    frontier = {name.lower()}
    while frontier:
        readers = [
            o["name"]
            for o in objects
            if o["name"] not in found and any(i.lower() in frontier for i in o.get("inputs") or ())
        ]
        found += readers
        frontier = {reader.lower() for reader in readers}
    return found


@command(app, data=False, examples=("mainstem pause page_visits",))
def pause(session: Session, name: Name) -> None:
    """Stop a flow, a sink or a source; it keeps its place."""
    session.client.pause(name)
    session.say(f"{name} paused; `mainstem resume {name}` lets it go on")


@command(app, data=False, examples=("mainstem resume page_visits",))
def resume(session: Session, name: Name) -> None:
    """Let it go on where it stopped."""
    session.client.resume(name)
    session.say(f"{name} resumed")
