"""`mainstem asyncapi`: the project as an AsyncAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session

if TYPE_CHECKING:
    from mainstem.config import Project

app = typer.Typer()


@command(
    app,
    data=False,
    examples=(
        "mainstem asyncapi > asyncapi.yaml           of what is running",
        "mainstem asyncapi --offline --json          of the project's files alone",
        "mainstem asyncapi --api-version 2.1.0",
    ),
)
def asyncapi(
    session: Session,
    offline: Annotated[
        bool, typer.Option("--offline", help="From the project's files, without the gateway.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON in place of YAML.")] = False,
    version: Annotated[
        str, typer.Option("--api-version", metavar="TEXT", help="The interface's own version.")
    ] = "1.0.0",
) -> None:
    """Print the AsyncAPI document (3.0) of the project.

    Channels are topics; the project receives what is declared and sends what its flows make.
    Schemas come from the registry. Offline they are those that the definitions would register, and
    what the records of a query hold is not known.
    """
    form = "json" if json else "yaml"
    if not offline:
        typer.echo(session.client.asyncapi(form, version), nl=False)
        return
    typer.echo(_offline(session.project, form, version), nl=False)


def _offline(project: Project, form: str, version: str) -> str:
    from mainstem.definitions.project import load_definitions, read_files
    from mainstem.definitions.python_functions import load_functions
    from mainstem.schemas.asyncapi import Surroundings, asyncapi, printed
    from mainstem.schemas.known import described

    settings, files = project.settings, read_files(project.folder)
    protocol = settings.kafka.options.get("security.protocol")
    where = Surroundings(
        settings.name,
        version,
        settings.kafka.bootstrap_servers,
        protocol.get_secret_value() if protocol else "plaintext",
        settings.schemas.registry,
    )
    definitions = load_definitions(files, load_functions(files))
    marked = {d.name.lower(): [name.lower() for name in d.pii] for d in definitions}
    return printed(asyncapi(definitions, where, described, marked), yaml=form == "yaml")
