"""The `mainstem` command: all commands under one roof, and every error as text and exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from mainstem import __version__
from mainstem.cli import (
    asyncapi,
    backfill,
    connector,
    mcp,
    objects,
    pipeline,
    project,
    quarantine,
    records,
    schema,
    sink,
    sql,
    stack,
    topics,
    transform,
)
from mainstem.cli.command import NoColor, Project, Quiet, Timeout, Url, Verbose, help_text
from mainstem.cli.context import Options, debugging
from mainstem.cli.output import colour_allowed
from mainstem.errors import MainstemError

USAGE, INTERRUPTED = 64, 130

_EXAMPLES = (
    "mainstem init shop && cd shop     make a project with a working example",
    "mainstem up                       start everything on this machine",
    "mainstem sql                      ask questions in a shell",
    "mainstem plan && mainstem apply   change the running pipeline",
)

app = typer.Typer(
    name="mainstem",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mainstem {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    help=help_text(_EXAMPLES, "Streams and tables on Kafka, Spark and PostgreSQL."),
)
def root(
    context: typer.Context,
    *,
    project: Project = None,
    url: Url = None,
    timeout: Timeout = None,
    quiet: Quiet = None,
    verbose: Verbose = None,
    no_color: NoColor = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options before the command's name; alone, print the help."""
    context.obj = Options(project, url, timeout, quiet, verbose, no_color)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for noun in (
    project,
    stack,
    pipeline,
    objects,
    backfill,
    connector,
    sink,
    sql,
    records,
    topics,
    schema,
    asyncapi,
    quarantine,
    transform,
    mcp,
):
    app.add_typer(noun.app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is text on stderr, never a stack trace."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app(arguments, prog_name="mainstem", standalone_mode=False)
    except MainstemError as error:
        _report(error)
        return error.exit_code
    except typer.TyperException as error:
        _report_usage(error)
        return USAGE
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except Exception as error:  # noqa: BLE001 - the last stop before a stack trace
        return _report_unexpected(error)
    return result if isinstance(result, int) else 0


def _report(error: MainstemError) -> None:
    if debugging():
        traceback.print_exception(error)
    text = error.render()
    if colour_allowed(sys.stderr, wanted="--no-color" not in sys.argv):
        text = text.replace(error.code, f"\x1b[31m{error.code}\x1b[0m", 1)
    print(text, file=sys.stderr)


def _report_usage(error: typer.TyperException) -> None:
    near: Sequence[str] = getattr(error, "possibilities", None) or ()
    message = error.message if near else error.format_message()
    if near:
        message += f". Did you mean {near[0]}?"
    print(f"usage: {message}", file=sys.stderr)
    context: typer.Context | None = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "mainstem"
    print(f"hint: `{path} --help` shows examples and all options.", file=sys.stderr)


def _report_unexpected(error: Exception) -> int:
    if debugging():
        traceback.print_exception(error)
    report = MainstemError("INTERNAL", problem=f"{type(error).__name__}: {error}")
    print(report.render(), file=sys.stderr)
    if not debugging():
        print("MAINSTEM_DEBUG=1 before the command shows the stack trace.", file=sys.stderr)
    return report.exit_code
