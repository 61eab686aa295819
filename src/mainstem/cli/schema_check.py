"""`mainstem schema check` and `evolve`: would the registry take it, and whom would it break."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.output import Format
from mainstem.cli.pipeline import confirm_losses
from mainstem.cli.schema_options import File, References, Subject, Type
from mainstem.cli.schema_shown import (
    Checked,
    Touched,
    show_changes,
    show_checked,
    show_registered,
)
from mainstem.cli.schema_trial import try_definitions, try_records
from mainstem.cli.schema_users import Objects, catalog_objects, consumers, is_about, topic_of, users
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.schemas.model import Schema
    from mainstem.schemas.verdict import Broken

app = typer.Typer()
BREAK_EXIT = 4
FOLDER = "schemas"
_DEFINITIONS = ".sql"


@command(
    app,
    examples=(
        "mainstem schema check                               all of the project's schemas/",
        "mainstem schema check schemas/clicks-value.avsc     the file's name is the subject",
        "mainstem schema check click.avsc --subject clicks-value",
        "mainstem schema check schemas -o json               for programs",
        "mainstem schema check schemas --last 10000          and would the last records pass?",
        "mainstem schema check pipeline/orders.sql --last 10000   columns and rules of streams",
    ),
)
def check(
    session: Session,
    path: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Files and folders; else schemas/. With --last, .sql too."
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="SUBJECT", help="Of one file; else its name is it."),
    ] = None,
    kind: Type = None,
    reference: References = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            metavar="N",
            min=1,
            help="Also hold the last N records of each topic against the schema or definition.",
        ),
    ] = None,
) -> None:
    """Say whether schemas could be registered, and what would break whom.

    Nothing is changed. Exit code 4: there is a break, or a record would not pass. Each break is
    told with version, path and reason, and with the streams, tables and sinks that use the field,
    as far as the catalog knows, and the consumer groups that read the topic. Of a .sql file, the
    streams and tables that it declares are held against the last records of their topics.
    """
    from mainstem.cli.schema_files import read_schema, subject_of

    declared = [name for name in path or () if name.endswith(_DEFINITIONS)]
    if declared and last is None:
        problem = f"{declared[0]} is held against records: say how many"
        raise typer.BadParameter(problem, param_hint="--last")
    given = [name for name in path or () if name not in declared]
    files = [] if declared and not given else _files(session, given)
    if len(files) > 1 and (subject or reference or kind):
        raise typer.BadParameter("--subject, --type and --reference are about one file")
    checked: list[Checked] = []
    failed: list[MainstemError] = []
    who = _Users(session)
    for file in files:
        try:
            schema, its = read_schema(file, kind, reference or ()), subject or subject_of(file)
            checked.append(_checked(session, who, file, its, schema, last))
        except MainstemError as error:
            if len(files) == 1 or error.exit_code == _AWAY_EXIT:
                raise
            session.warn(f"{file}: {error.render()}")
            failed.append(error)
    tried = [one for name in declared for one in try_definitions(session, name, last or 0)]
    show_checked(session, checked, tried)
    if any(one.breaks or one.refused for one in checked) or any(one.failed for one in tried):
        raise typer.Exit(BREAK_EXIT)
    if failed:
        raise typer.Exit(failed[0].exit_code)


@command(
    app,
    examples=(
        "mainstem schema evolve clicks-value click.avsc          look, ask, register",
        "mainstem schema evolve clicks-value click.avsc --yes    do not ask",
        "mainstem schema evolve clicks-value click.avsc --dry-run",
    ),
)
def evolve(
    session: Session,
    subject: Subject,
    file: File,
    kind: Type = None,
    reference: References = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
) -> None:
    """Change a subject's schema: check it, show the difference, ask, register.

    Exit code 4: it would break the rule of the subject, and nothing was registered.
    """
    from mainstem.cli.schema_files import read_schema, with_known_references
    from mainstem.schemas.diff import diff

    registry = session.registry
    schema = with_known_references(registry, subject, read_schema(file, kind, reference or ()))
    checked = _checked(session, _Users(session), file, subject, schema, None)
    if checked.breaks:
        show_checked(session, [checked])
        raise typer.Exit(BREAK_EXIT)
    latest = checked.verdict.latest
    if latest is None:
        session.say(f"{file}: the first version of {subject}")
    elif session.form() is Format.TABLE:
        changes = diff(registry.version(subject, latest).schema, schema, registry.resolve)
        names = (f"version {latest}", file)
        show_changes(session, changes, checked.verdict.level, names)
    if not dry_run:
        confirm_losses([f"register {file} as the next version of {subject}"], yes=yes)
        show_registered(session, registry.register(subject, schema))


_AWAY_EXIT = 69
"""The registry does not answer: then it does not for the next file, either."""


class _Users:
    """Who uses what: asked for when the first break is there."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, subject: str, broken: Broken) -> list[str] | None:
        """Who uses what a break is about; None when that cannot be told."""
        if self._objects is None:
            return None
        if topic_of(subject) is None and not any(is_about(o, subject) for o in self._objects):
            return None
        return users(self._objects, subject, broken.field)

    def consumers(self, subject: str) -> list[str] | None:
        """Which other programs read the records; None when that cannot be told."""
        topic = topic_of(subject)
        return None if topic is None else consumers(self._session, topic)

    @cached_property
    def _objects(self) -> Objects | None:
        return catalog_objects(self._session)


def _checked(
    session: Session, who: _Users, file: str, subject: str, schema: Schema, last: int | None
) -> Checked:
    from mainstem.cli.schema_files import with_known_references
    from mainstem.schemas.verdict import verdict

    schema = with_known_references(session.registry, subject, schema)
    found = verdict(session.registry, subject, schema)
    touched = [Touched(one, who.of(subject, one)) for one in found.breaks]
    consuming = who.consumers(subject) if touched else []
    tried = None if last is None else try_records(session, subject, schema, last)
    return Checked(file, found, touched, consuming, tried)


def _files(session: Session, paths: list[str]) -> list[str]:
    """The files that were named, and those in folders, each of which must have one."""
    from mainstem.cli.schema_files import schema_files

    folders = [Path(path) for path in paths if Path(path).is_dir()]
    if not paths:
        folders = [session.project.folder / FOLDER]
    inside = {str(folder): schema_files(folder) for folder in folders}
    for folder, files in inside.items():
        if not files:
            raise MainstemError("NO_SCHEMA_FILES", folder=folder)
    named = (inside.get(path, [path]) for path in paths or inside)
    return [file for files in named for file in files]
