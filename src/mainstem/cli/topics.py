"""`mainstem topics`: what is in the log."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.command import command
from mainstem.cli.context import Session
from mainstem.cli.output import write, write_pairs
from mainstem.errors import MainstemError, did_you_mean

app = typer.Typer()


@command(
    app,
    examples=(
        "mainstem topics             all topics",
        "mainstem topics orders      one topic and its settings",
        "mainstem topics -o json",
    ),
)
def topics(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show this topic only.")
    ] = None,
) -> None:
    """Show the topics of the log."""
    found = session.client.topics()
    if name is None:
        columns = ("name", "partitions", "replication_factor", "cleanup.policy", "retention.ms")
        rows = [[{**t["config"], **t}.get(column) for column in columns] for t in found]
        write(session.form(), columns, rows, document=found, colour=session.colour)
        return
    topic = next((t for t in found if t["name"] == name), None)
    if topic is None:
        suggestion = did_you_mean(name, (t["name"] for t in found))
        raise MainstemError("UNKNOWN_TOPIC", topic=name, suggestion=suggestion)
    pairs = {**{k: v for k, v in topic.items() if k != "config"}, **topic["config"]}
    write_pairs(session.form(), pairs, document=topic, colour=session.colour)
