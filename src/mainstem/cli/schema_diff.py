"""`mainstem schema diff`: what has changed between two schemas, and what that breaks."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.schema_options import Type
from mainstem.cli.schema_shown import show_changes
from mainstem.errors import MainstemError

app = typer.Typer()


@command(
    app,
    examples=(
        "mainstem schema diff clicks-value                    the newest and the one before",
        "mainstem schema diff clicks-value --from 1 --to 3",
        "mainstem schema diff old.avsc new.avsc --level FULL  two files",
        "mainstem schema diff clicks-value -o json",
    ),
)
def diff(
    session: Session,
    what: Annotated[
        str, typer.Argument(metavar="SUBJECT|OLD", help="A subject, or the older file.")
    ],
    new: Annotated[str | None, typer.Argument(metavar="[NEW]", help="The newer file.")] = None,
    since: Annotated[
        int | None, typer.Option("--from", metavar="N", min=1, help="The older version.")
    ] = None,
    until: Annotated[
        int | None, typer.Option("--to", metavar="N", min=1, help="The newer version.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option("--level", metavar="LEVEL", help="Judge by this level, not the subject's."),
    ] = None,
    kind: Type = None,
) -> None:
    """Show what has changed: fields, types, defaults, docs; compatible or breaking.

    The level is that of the subject, and BACKWARD for files.
    """
    from mainstem.cli.schema_files import no_references, read_schema
    from mainstem.schemas.compatibility import Level
    from mainstem.schemas.diff import diff as changes_of

    try:
        judged = None if level is None else Level(level.upper())
    except ValueError:
        raise MainstemError("COMPATIBILITY_INVALID", level=level) from None
    if new is not None:
        if since is not None or until is not None:
            raise typer.BadParameter("files have no versions", param_hint="--from, --to")
        changes = changes_of(read_schema(what, kind), read_schema(new, kind), no_references)
        show_changes(session, changes, judged or Level.BACKWARD, (what, new))
        return
    registry = session.registry
    older, newer = _versions(registry.versions(what), what, since, until)
    changes = changes_of(
        registry.version(what, older).schema, registry.version(what, newer).schema, registry.resolve
    )
    names = (f"version {older}", f"version {newer}")
    show_changes(session, changes, judged or registry.level(what), names)


def _versions(
    known: list[int], subject: str, since: int | None, until: int | None
) -> tuple[int, int]:
    """The two versions to compare: the newest one, and the one before, where nothing is said."""
    newer = known[-1] if until is None else until
    if since is not None:
        return since, newer
    earlier = [version for version in known if version < newer]
    if not earlier:
        problem = f"{subject} has no version before {newer}"
        raise typer.BadParameter(problem, param_hint="--from")
    return earlier[-1], newer
