"""`mainstem schema`: the schemas of the registry, and what may become of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli import schema_check, schema_derive, schema_diff, schema_from_sql
from mainstem.cli.command import command, help_text
from mainstem.cli.context import Session
from mainstem.cli.output import Format, read_json, to_json, write, write_pairs
from mainstem.cli.pipeline import confirm_losses, count
from mainstem.cli.schema_options import File, References, Subject, Type
from mainstem.cli.schema_shown import show_registered

if TYPE_CHECKING:
    from mainstem.schemas.model import Registered

app = typer.Typer()
schema = typer.Typer(
    help=help_text(
        (
            "mainstem schema list                                all subjects",
            "mainstem schema register clicks-value click.avsc    the next version of one",
            "mainstem schema check                               would schemas/ be taken? (CI)",
        ),
        "Look at the schemas of the registry, change them, and see first what would break.",
    ),
    short_help="Schemas of the registry: look, check, change.",
    no_args_is_help=True,
)
app.add_typer(schema, name="schema")

_COLUMNS = ("subject", "version", "id", "type")
Version = Annotated[int | None, typer.Option("--version", metavar="N", min=1, help="A version.")]


@command(
    schema,
    name="list",
    examples=(
        "mainstem schema list               the newest version of each subject",
        "mainstem schema list --deleted     and all that is deleted, but not for good",
        "mainstem schema list -o json",
    ),
)
def list_schemas(
    session: Session,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also what is deleted.")] = False,
) -> None:
    """Show the subjects of the registry."""
    columns: tuple[str, ...] = _COLUMNS
    if deleted:
        versions = session.registry.all_versions(deleted=True)
        newest = {one.subject: one.version for one in versions if not one.deleted}
        found = [one for one in versions if one.deleted or one.version == newest[one.subject]]
        columns = (*columns, "deleted")
    else:
        found = session.registry.newest()
    rows = [[_summary(one)[column] for column in columns] for one in found]
    write(session.form(), columns, rows, colour=session.colour)


@command(
    schema,
    examples=(
        "mainstem schema show clicks-value                 the newest version",
        "mainstem schema show clicks-value --version 1 > old.avsc",
        "mainstem schema show clicks-value -o json         with its id, references and level",
    ),
)
def show(session: Session, subject: Subject, version: Version = None) -> None:
    """Show a schema: its text, and what is known of it."""
    registry = session.registry
    found = registry.latest(subject) if version is None else registry.version(subject, version)
    versions, level = registry.versions(subject), registry.level(subject)
    document: dict[str, Any] = {
        **_summary(found),
        "level": level.value,
        "versions": versions,
        "references": [vars(one) for one in found.schema.references],
        "schema": found.schema.text,
    }
    del document["deleted"]
    if session.form() is not Format.TABLE:
        write_pairs(session.form(), document)
        return
    numbers = ", ".join(map(str, versions))
    session.say(
        f"{subject}: version {found.version} of {numbers}; {found.schema.type}, id {found.id},"
        f" {level}"
    )
    for one in found.schema.references:
        session.say(f"refers to {one.name}: version {one.version} of {one.subject}")
    typer.echo(_readable(found))


@command(
    schema,
    examples=(
        "mainstem schema register clicks-value schemas/click.avsc",
        "mainstem schema register orders-value order.proto --reference common.proto=common:1",
        "cat click.json | mainstem schema register clicks-value - --type json",
    ),
)
def register(
    session: Session,
    subject: Subject,
    file: File,
    kind: Type = None,
    reference: References = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Bring it into one form first.")
    ] = False,
) -> None:
    """Register a schema as the next version of a subject.

    One that is registered already keeps its version and id. Exit code 4: it breaks the rule of the
    subject; `mainstem schema check` says how.
    """
    from mainstem.cli.schema_files import read_schema, with_known_references
    from mainstem.schemas.parse import parse

    given = read_schema(file, kind, reference or ())
    wanted = with_known_references(session.registry, subject, given)
    parse(wanted, session.registry.resolve)
    show_registered(session, session.registry.register(subject, wanted, normalize=normalize))


@command(
    schema,
    data=False,
    examples=(
        "mainstem schema delete clicks-value --version 2    hide one version",
        "mainstem schema delete clicks-value                hide all of them",
        "mainstem schema delete clicks-value --permanent    then delete them for good",
    ),
)
def delete(
    session: Session,
    subject: Subject,
    version: Version = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good; it must be deleted already.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a subject or one of its versions.

    Records of a deleted version can still be read. Once it is deleted for good they cannot: that is
    asked for first.
    """
    what = subject if version is None else f"version {version} of {subject}"
    if permanent:
        confirm_losses(
            [f"delete {what} for good, and with it the way to read its records"], yes=yes
        )
    if version is None:
        gone = session.registry.delete_subject(subject, permanent=permanent)
    else:
        gone = [session.registry.delete_version(subject, version, permanent=permanent)]
    session.say(f"{count(len(gone), 'version')} of {subject} deleted{' for good' * permanent}")


@command(
    schema,
    examples=(
        "mainstem schema config                       the level of all subjects",
        "mainstem schema config clicks-value          the one that applies to a subject",
        "mainstem schema config clicks-value FULL     set it",
        "mainstem schema config --for-all FULL        set that of all that have none of their own",
        "mainstem schema config clicks-value --reset  back to that of all",
    ),
)
def config(
    session: Session,
    subject: Annotated[
        str | None, typer.Argument(metavar="[SUBJECT]", help="Of this subject only.")
    ] = None,
    level: Annotated[
        str | None, typer.Argument(metavar="[LEVEL]", help="NONE, BACKWARD, FORWARD, FULL, ...")
    ] = None,
    for_all: Annotated[
        str | None, typer.Option("--for-all", metavar="LEVEL", help="Set the level of all.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Unset what was set.")] = False,
) -> None:
    """Show or set the compatibility level: what a new version of a schema must keep to."""
    if for_all is not None and subject is not None:
        problem = "name a subject, or set the level of all"
        raise typer.BadParameter(problem, param_hint="--for-all")
    wanted = level or for_all
    if reset and wanted is not None:
        raise typer.BadParameter("set a level, or unset it", param_hint="--reset")
    if reset:
        session.registry.reset_level(subject)
    elif wanted is not None:
        session.registry.set_level(subject, wanted)
    applies = session.registry.level(subject)
    write_pairs(session.form(), {"subject": subject, "level": applies.value}, colour=session.colour)


def _summary(one: Registered) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "version": one.version,
        "id": one.id,
        "type": one.schema.type.value,
        "deleted": one.deleted,
    }


def _readable(one: Registered) -> str:
    """The text; JSON in one line is broken into several."""
    text = one.schema.text
    if one.schema.type == "PROTOBUF" or "\n" in text.strip():
        return text.rstrip("\n")
    try:
        return to_json(read_json(text), indent=2)
    except ValueError:  # a registry elsewhere may have taken what is not quite JSON
        return text


for part in (schema_check, schema_diff, schema_derive, schema_from_sql):
    schema.add_typer(part.app)
