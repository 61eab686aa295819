"""How a command is declared: its help begins with examples, and the shared options are its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from mainstem.cli.context import Options, Session
from mainstem.cli.output import Format

P = ParamSpec("P")

Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Folder of the project [MAINSTEM_PROJECT]."),
]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="URL of the gateway [MAINSTEM_URL].")
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Longest wait for an answer."),
]
Quiet = Annotated[bool | None, typer.Option("--quiet", "-q", help="No messages, only data.")]
Verbose = Annotated[bool | None, typer.Option("--verbose", "-v", help="More messages.")]
NoColor = Annotated[bool | None, typer.Option("--no-color", help="No colours [NO_COLOR].")]
Output = Annotated[
    Format | None,
    typer.Option("--output", "-o", metavar="FORMAT", help="table, json, jsonl or csv."),
]


def _shared(
    *,
    output: Output = None,
    project: Project = None,
    url: Url = None,
    timeout: Timeout = None,
    quiet: Quiet = None,
    verbose: Verbose = None,
    no_color: NoColor = None,
) -> Options:
    return Options(project, url, timeout, quiet, verbose, no_color, output)


_SHARED = inspect.signature(_shared, eval_str=True).parameters


def help_text(examples: Sequence[str], text: str) -> str:
    """A help text that begins with examples, whose lines stay as they are."""
    # \b in front of a paragraph keeps the formatter from filling its lines
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) + "\n\n" + text


def command(
    app: typer.Typer, *, examples: Sequence[str], data: bool = True, name: str | None = None
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Add a function to the app; it gets the session first, then its own arguments and options.

    `data` says whether the command prints data, so that it has `--output`. The shared options work
    before and behind the command's name, as people write them either way.
    """
    shared = {n: p for n, p in _SHARED.items() if data or n != "output"}

    def declare(
        function: Callable[Concatenate[Session, P], None],
    ) -> Callable[Concatenate[Session, P], None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        @functools.wraps(function)
        def run(context: typer.Context, **values: Any) -> None:
            options = _shared(**{n: values.pop(n) for n in shared})
            session = Session(options.over(context.find_object(Options) or Options()))
            function(session, **values)  # type: ignore[call-arg]

        parameters = [
            inspect.Parameter(
                "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
            ),
            *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared.values())),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        documentation = inspect.getdoc(function) or ""
        app.command(
            name=name,
            help=help_text(examples, documentation),
            short_help=documentation.partition("\n")[0],
        )(run)
        return function

    return declare
