"""`mainstem plan` and `apply`: the definitions of the project against what is running."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session, interactive
from mainstem.cli.output import Format, write
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.client import Client
    from mainstem.config import Project

app = typer.Typer()

CHANGES_EXIT = 2
BREAKS_EXIT = 4
_POLL_SECONDS = 0.25
_SETTLED = ("running", "idle", "paused")


@command(
    app,
    examples=(
        "mainstem plan                        what apply would change, and what it costs",
        "mainstem plan --detailed-exitcode    exit code 2 when there are changes",
        "mainstem plan -o json                for programs",
    ),
)
def plan(
    session: Session,
    detailed_exitcode: Annotated[
        bool,
        typer.Option("--detailed-exitcode", help="0: no changes, 2: changes, otherwise an error."),
    ] = False,
) -> None:
    """Show what apply would change.

    Compares pipeline/*.sql, pipeline/*.py and functions/*.py with the catalog. Layout and comments
    do not count as changes. Ends with 4 when a schema breaks the rule of its subject.
    """
    answer = session.client.plan(definition_files(session.project))
    show_plan(session, answer)
    if breaks_schemas(answer["plan"]):
        raise typer.Exit(BREAKS_EXIT)
    if detailed_exitcode and answer["changes"]:
        raise typer.Exit(CHANGES_EXIT)


@command(
    app,
    examples=(
        "mainstem apply              show the plan, ask when data would be lost, carry it out",
        "mainstem apply --yes        do not ask",
        "mainstem apply --dry-run    only show the plan",
    ),
)
def apply(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the changed flows run.")
    ] = True,
) -> None:
    """Carry out what plan shows.

    Steps that rebuild or drop are asked for first; without a terminal they need --yes.
    """
    files = definition_files(session.project)
    answer = session.client.plan(files)
    if dry_run or not answer["changes"]:
        show_plan(session, answer)
        return
    session.say(answer["text"].rstrip())
    if not breaks_schemas(answer["plan"]):  # else it is refused
        confirm_losses(destructive_steps(answer["plan"]), yes=yes)
    applied = session.client.apply(files, answer["digest"], answer["revision"])
    if wait:
        wait_for_flows(session.client, changed_flows(answer["plan"]), session.timeout)
    session.say(f"{count(applied['applied'], 'change')} applied.")
    if session.options.output is not None:
        write(
            session.form(),
            ("applied", "revision"),
            [(applied["applied"], applied["revision"])],
            document=applied,
        )


def count(number: int, noun: str) -> str:
    """`1 change`, `2 changes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def definition_files(project: Project) -> list[dict[str, str]]:
    """The texts of the project's files as the gateway takes them."""
    from mainstem.definitions.project import read_files

    return [{"path": path, "text": text} for path, text in read_files(project.folder)]


def show_plan(session: Session, answer: dict[str, Any]) -> None:
    """A plan as the gateway words it, or its steps as data."""
    if session.form() is Format.TABLE:
        typer.echo(answer["text"].rstrip())
        return
    columns = ("step", "name", "kind", "why")
    rows = [
        (step["step"], step["function"]["name"], "function", None)
        for step in answer["plan"]["functions"]
    ]
    rows += [
        (
            step["step"],
            step["entry"]["definition"]["name"],
            step["entry"]["definition"]["kind"],
            step.get("why"),
        )
        for step in answer["plan"]["steps"]
    ]
    write(session.form(), columns, rows, document=answer)


def destructive_steps(plan: dict[str, Any]) -> list[str]:
    """The steps that empty or remove something, in words."""
    return [
        f"{step['step']} {step['entry']['definition']['name']}"
        for step in plan["steps"]
        if step["step"] in ("rebuild", "drop")
    ]


def breaks_schemas(plan: dict[str, Any]) -> bool:
    """True when the registry's rules forbid what the plan would register."""
    return any(schema["breaks"] for schema in plan.get("schemas", ()))


def confirm_losses(steps: list[str], *, yes: bool) -> None:
    """Let the user agree to steps that lose data; without a terminal, only --yes does."""
    if not steps or yes:
        return
    if not interactive():
        raise MainstemError("CONFIRMATION_NEEDED", what=", ".join(steps))
    if not typer.confirm(f"This will {', '.join(steps)}. Go on?", err=True):
        raise MainstemError("NOT_CONFIRMED")


def changed_flows(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name -> what tells the status of a flow that the plan starts or changes from earlier ones."""
    return {
        step["entry"]["definition"]["name"]: {
            part: step["entry"][part] for part in ("generation", "fingerprint")
        }
        for step in plan["steps"]
        if step["step"] != "drop" and step["entry"]["definition"].get("query")
    }


def wait_for_flows(client: Client, flows: dict[str, dict[str, Any]], timeout: float) -> None:
    """Return when all flows run as they are to be; raise when one fails or time is up."""
    from mainstem.client import RemoteError

    deadline = time.monotonic() + timeout
    waiting = dict(flows)
    while waiting:
        for status in client.status()["flows"]:
            name = status["flow"]
            wanted = waiting.get(name)
            if wanted is None or any(status.get(part) != wanted[part] for part in wanted):
                continue
            if status["state"] in ("failed", "retrying") and status.get("error"):
                raise RemoteError(status["error"])
            if status["state"] in _SETTLED:
                del waiting[name]
        if waiting and time.monotonic() > deadline:
            raise MainstemError(
                "FLOWS_NOT_RUNNING", names=", ".join(sorted(waiting)), seconds=f"{timeout:g}"
            )
        if waiting:
            time.sleep(_POLL_SECONDS)
