"""`mainstem mcp`: a server for agents, over stdin and stdout."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.errors import MainstemError

app = typer.Typer()


@command(
    app,
    data=False,
    examples=(
        "mainstem mcp                                   for an agent's configuration",
        "mainstem mcp --url http://127.0.0.1:20080      another gateway",
        "mainstem mcp --allow-changes                   also produce, plan, apply, pause, resume",
        "claude mcp add mainstem -- mainstem mcp --project /path/to/project",
    ),
)
def mcp(
    session: Session,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Offer tools that change something, too.")
    ] = False,
) -> None:
    """Let an agent ask (Model Context Protocol over stdin and stdout).

    It only reads unless --allow-changes is given. The gateway is looked for at each question, so
    the stack can be started later. Needs `pip install 'mainstem[mcp]'`.
    """
    if find_spec("mcp") is None:
        raise MainstemError("MCP_MISSING")
    from mainstem.mcp.server import serve

    serve(lambda: Session(session.options), allow_changes=allow_changes)
