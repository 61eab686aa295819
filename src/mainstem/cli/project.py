"""`mainstem init`: a new project folder with a pipeline that works."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.errors import MainstemError

app = typer.Typer()

STARTER = "pipeline/starter.sql"
EXAMPLE = ("pipeline/streams.sql", "pipeline/tables.sql", "README.md")
_EMPTY_README = """\
# {name}

A Mainstem project. Definitions are in `pipeline/*.sql`, settings in `mainstem.toml`.
`mainstem up` starts everything on this machine; `mainstem plan` and `mainstem apply` change it.
"""


@command(
    app,
    data=False,
    examples=(
        "mainstem init shop                 a project with a working example",
        "mainstem init shop --no-example    an empty one",
        "mainstem init .                    in this folder, when it is empty",
    ),
)
def init(
    session: Session,
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="Folder to make; its name is the project's.")
    ],
    example: Annotated[
        bool, typer.Option("--example/--no-example", help="Write the example pipeline.")
    ] = True,
) -> None:
    """Make a project folder: settings, definitions, README.

    A folder that has files in it is refused.
    """
    target = folder.resolve()
    name = project_name(target.name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise MainstemError("FOLDER_NOT_EMPTY", folder=str(folder))
    contents = project_files(name, example=example)
    try:
        for path, text in contents.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, "utf-8")
    except OSError as error:
        raise MainstemError(
            "FILE_NOT_WRITABLE", file=str(error.filename or folder), problem=error.strerror
        ) from None
    session.say(f"Made {folder} with {', '.join(contents)}.")
    session.say("Next:")
    if target != Path.cwd():
        session.say(f"  cd {folder}")
    session.say("  mainstem up        start everything; leave it running")
    session.say("  mainstem sql       ask questions, in a second terminal")


def project_name(text: str) -> str:
    """A name that the settings accept, made from a folder's name."""
    name = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:63]
    if not re.match(r"[a-z]", name):
        raise MainstemError("INVALID_PROJECT_NAME", name=text)
    return name


def project_files(name: str, *, example: bool = True) -> dict[str, str]:
    """Path -> text of all files of a new project."""
    source: Traversable = files("mainstem.cli").joinpath("example")

    def text(path: str) -> str:
        # plain replacement: braces of JSON and ${env:...} stay as they are
        return source.joinpath(path).read_text("utf-8").replace("{name}", name)

    contents = {"mainstem.toml": text("mainstem.toml"), ".gitignore": text("gitignore")}
    if example:
        contents |= {path: text(path) for path in EXAMPLE}
    else:
        contents |= {STARTER: text(STARTER), "README.md": _EMPTY_README.replace("{name}", name)}
    return contents
