"""`mainstem connector`: what brings the records of the sources."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session
from mainstem.cli.output import Format, write, write_pairs
from mainstem.cli.pipeline import confirm_losses
from mainstem.errors import render_problem

app = typer.Typer()
connector = typer.Typer(
    help=help_text(
        (
            "mainstem connector list             every connector and its state",
            "mainstem connector show shop        tasks, position and errors of one",
            "mainstem connector restart shop     start it again",
        ),
        "Look after the connectors of the sources, which run in Kafka Connect or in the gateway."
        " They are made by CREATE SOURCE and removed by DROP SOURCE.",
    ),
    short_help="Look after the connectors of the sources.",
    no_args_is_help=True,
)
app.add_typer(connector, name="connector")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A source.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_OF_GATEWAY = ("stream", "records", "quarantined", "lost")
"""What is only told of sources that run in the gateway itself."""
_COLUMNS = ("name", "connector", "state", "tasks", "restarts", "position", "held_bytes", "error")


@command(
    connector,
    name="list",
    examples=("mainstem connector list", "mainstem connector list -o json"),
)
def list_connectors(session: Session) -> None:
    """Show every connector: state, tasks, restarts, and how much its source holds back for it."""
    document = session.client.connectors()
    found = document["connectors"]
    if session.form() is Format.TABLE:
        say_worker(session, document["worker"])
    write(session.form(), _COLUMNS, map(_row, found), document=found, colour=session.colour)
    warn_errors(session, found)


@command(
    connector,
    examples=("mainstem connector show shop", "mainstem connector show shop -o json"),
)
def show(session: Session, name: Name) -> None:
    """Show one connector: its tables, its tasks with what made them fail, its last error."""
    found = session.client.connector(name)
    last = found["last_error"]
    pairs = {
        "state": found["state"],
        "connector": found["connector"],
        "tables": ", ".join(found["tables"]),
        "position": found["position"],
        "held_bytes": found["held_bytes"],
        "restarts": found["restarts"],
        **{f"snapshot of {table}": how for table, how in found.get("snapshots", {}).items()},
        "last_error": f"{last['detail']} ({found['last_error_at']})" if last else None,
        **{f"task {task['id']}": task["trace"] or task["state"] for task in found["tasks"]},
        **{name: found[name] for name in _OF_GATEWAY if name in found},
        **(found.get("detail") or {}),
    }
    write_pairs(session.form(), pairs, document=found, colour=session.colour)
    warn_errors(session, [found])


@command(
    connector,
    examples=(
        "mainstem connector restart shop",
        "mainstem connector restart shop --only-failed   leave tasks alone that run",
    ),
    data=False,
)
def restart(
    session: Session,
    name: Name,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Leave tasks alone that run.")
    ] = False,
) -> None:
    """Start a connector again, at once. One that failed is started again by itself, too."""
    told = session.client.restart_connector(name, only_failed=only_failed)
    session.say(f"{told['name']} starts again")


@command(connector, examples=("mainstem connector pause shop",), data=False)
def pause(session: Session, name: Name) -> None:
    """Stop capturing. The source keeps what changes meanwhile: mind the room that it needs."""
    session.say(session.client.turn_connector(name, "pause")["message"])


@command(connector, examples=("mainstem connector resume shop",), data=False)
def resume(session: Session, name: Name) -> None:
    """Go on where it was paused."""
    session.say(session.client.turn_connector(name, "resume")["message"])


@command(
    connector,
    examples=(
        "mainstem connector offsets shop           how far it has come",
        "mainstem connector offsets shop -o json",
        "mainstem connector offsets shop --reset   paused before: read everything once more",
    ),
)
def offsets(
    session: Session,
    name: Name,
    reset: Annotated[bool, typer.Option("--reset", help="Forget them.")] = False,
    yes: Yes = False,
) -> None:
    """Show how far a connector has come, or let a paused one begin anew."""
    if reset:
        confirm_losses([f"let {name} read all of its tables once more"], yes=yes)
        session.say(session.client.reset_connector(name)["message"])
        return
    found = session.client.connector_offsets(name)
    rows = [(one["partition"], one["offset"]) for one in found]
    write(session.form(), ("partition", "offset"), rows, document=found, colour=session.colour)


@command(
    connector,
    examples=(
        "mainstem connector snapshot shop               all of its tables",
        "mainstem connector snapshot shop orders items  some of them",
    ),
    data=False,
)
def snapshot(
    session: Session,
    name: Name,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Captured tables; else all.")
    ] = None,
) -> None:
    """Read the rows of captured tables once more, while their changes go on.

    Rows that are as they were change nothing. `mainstem connector show` tells how far it is.
    """
    told = session.client.snapshot_connector(name, tables or ())
    session.say(f"{name} reads {', '.join(told['tables'])} once more")


@command(connector, examples=("mainstem connector forget shop",), data=False)
def forget(session: Session, name: Name, yes: Yes = False) -> None:
    """Give up cleaning behind a dropped source whose system does not answer.

    What the connector left there stays, such as a replication slot, for which PostgreSQL keeps its
    log until somebody removes it.
    """
    confirm_losses([f"leave in its system what {name} has left there"], yes=yes)
    session.say(session.client.forget_connector(name)["message"])


def say_worker(session: Session, worker: dict[str, Any]) -> None:
    """How Kafka Connect is, in a line."""
    problem = f" ({worker['problem']})" if worker["problem"] else ""
    session.say(f"connect: {worker['state']}{problem}")


def warn_errors(session: Session, connectors: list[dict[str, Any]]) -> None:
    """What is wrong with each, if it is shown as a table."""
    if session.form() is Format.TABLE:
        for one in connectors:
            if one["error"] is not None:
                session.warn(f"{one['name']}: {render_problem(one['error'])}")


def _row(one: dict[str, Any]) -> list[Any]:
    tasks = ", ".join(task["state"] for task in one["tasks"])
    error = one["error"]["title"] if one["error"] is not None else None
    shown = {**one, "tasks": tasks, "error": error}
    return [shown[column] for column in _COLUMNS]
