"""`mainstem up` and `doctor`: the local stack."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.output import write
from mainstem.cli.pipeline import (
    changed_flows,
    count,
    definition_files,
    destructive_steps,
    wait_for_flows,
)
from mainstem.errors import MainstemError
from mainstem.local.postgres_place import psql_program

if TYPE_CHECKING:
    from types import FrameType

    from mainstem.client import Client
    from mainstem.config import Project
    from mainstem.local.run_file import RunInfo

app = typer.Typer()

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@command(
    app,
    data=False,
    examples=(
        "mainstem up                   in a project's folder; Ctrl-C ends everything",
        "mainstem up --project shop    a project elsewhere",
    ),
)
def up(session: Session) -> None:
    """Start broker, PostgreSQL, engine and gateway, and apply the project.

    Runs until Ctrl-C or SIGTERM, then stops everything in order. A server that dies is started
    again. When a definition is wrong the stack keeps running: correct it and run mainstem apply.
    """
    from mainstem.cli.board import Board
    from mainstem.local.stack import Stack

    board = Board(session)
    with _stop_signals(session), board, Stack(session.project, listener=board.take) as stack:
        board.started()
        apply_at_start(session, session.client)
        session.say(f"page: {session.run.gateway_url}/")
        elsewhere = session.project.settings.schemas.registry
        session.say(f"registry: {elsewhere or f'{session.run.gateway_url}/registry'}")
        if command_line := psql_command(session.run):
            session.say(f"psql: {command_line}")
        session.say("Ctrl-C ends everything.")
        with suppress(KeyboardInterrupt):
            stack.wait()


@command(
    app,
    examples=(
        "mainstem doctor            check this machine, and the project's stack when in a project",
        "mainstem doctor -o json",
    ),
)
def doctor(session: Session) -> None:
    """Say what is wrong and how to mend it.

    Ends with 4 when a check failed.
    """
    from mainstem.local.doctor import diagnose

    checks = diagnose(_project_if_any(session))
    rows = [("ok" if c.ok else "FAILED", c.name, c.detail, "" if c.ok else c.hint) for c in checks]
    columns = ("result", "check", "detail", "hint")
    write(session.form(), columns, rows, colour=session.colour)
    failed = sum(not check.ok for check in checks)
    if failed:
        raise MainstemError("CHECK_FAILED", failed=failed, total=len(checks))


def _project_if_any(session: Session) -> Project | None:
    """The project here; outside of one, the machine alone is checked."""
    try:
        return session.project
    except MainstemError as error:
        if error.code != "NOT_A_PROJECT" or session.options.project is not None:
            raise
        return None


def apply_at_start(session: Session, client: Client) -> None:
    """Bring the catalog to what the project says, as far as that loses nothing.

    Whatever is wrong is told, and the stack stays up for the user to put it right.
    """
    try:
        files = definition_files(session.project)
        answer = client.plan(files)
        if not answer["changes"]:
            return
        losses = destructive_steps(answer["plan"])
        if losses:
            session.warn(answer["text"].rstrip())
            session.warn(f"not applied, because it would {', '.join(losses)}: run `mainstem apply`")
            return
        client.apply(files, answer["digest"], answer["revision"])
        wait_for_flows(client, changed_flows(answer["plan"]), session.timeout)
        session.say(f"applied: {count(answer['changes'], 'change')}")
    except MainstemError as error:
        session.warn(error.render())
        session.warn("The stack keeps running. Correct it, then run `mainstem apply`.")


def psql_command(run: RunInfo) -> str | None:
    """A command line that opens the served tables; None when PostgreSQL is not the stack's own."""
    if run.postgres is None:
        return None
    place = run.postgres
    return (
        f"PGPASSFILE={shlex.quote(place.passfile)} {shlex.quote(psql_program())} "
        f"-h {place.host} -p {place.port} -U {place.reader} {place.database}"
    )


@contextmanager
def _stop_signals(session: Session) -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does; both are answered at once, for a stop takes long."""
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            with suppress(RuntimeError):  # it may come in the middle of another message
                session.say("stopping; Ctrl-C again does not wait for it")
        raise KeyboardInterrupt

    # a signal that whoever started this has switched off stays so
    heeded = [n for n in _STOP_SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
