"""Would the last records pass a schema, or a definition? The engine reads them, and tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from mainstem.cli.context import Session
from mainstem.cli.pipeline import count
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.client import Event
    from mainstem.schemas.model import Schema

_SUFFIX = "-value"
_SHOWN_SAMPLES = 3


@dataclass(frozen=True)
class Tried:
    """What the records of a topic say of a schema, or of a definition."""

    topic: str
    found: dict[str, Any]
    file: str = ""
    """Where the definition is."""

    @property
    def failed(self) -> int:
        """Records that would not pass."""
        return int(self.found["failed"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"topic": self.topic, **self.found}


def try_records(session: Session, subject: str, schema: Schema, last: int) -> Tried:
    """Have the engine hold the last records of a subject's topic against a schema."""
    from mainstem.schemas.topic_records import contents

    topic = subject.removesuffix(_SUFFIX)
    if topic in (subject, ""):
        problem = f"{subject} is not about the values of a topic: it does not end in {_SUFFIX}"
        raise typer.BadParameter(problem, param_hint="--last")
    events = session.client.try_schema(topic, {**contents(schema), "last": last})
    [found] = _found(session, events)
    return Tried(topic, found)


def try_definitions(session: Session, file: str, last: int) -> list[Tried]:
    """Have the engine hold the last records of each stream that a file declares against it."""
    from mainstem.cli.schema_files import read_text

    asked = {"file": {"path": file, "text": read_text(file)}, "last": last}
    found = _found(session, session.client.try_definitions(asked))
    return [Tried(one["topic"], one, file) for one in found]


def _found(session: Session, events: Iterator[Event]) -> list[dict[str, Any]]:
    """What was found; how far it is, is shown on a terminal."""
    live = sys.stderr.isatty() and not session.options.quiet
    found = []
    for event in events:
        if event.kind == "found":
            found.append(event.data)
        elif live:
            sys.stderr.write(
                f"\r{event.data['read']:,} of {count(event.data['of'], 'record')} read"
            )
            sys.stderr.flush()
    if live:
        sys.stderr.write("\n")
    if not found:
        problem = "it ended without saying what the records are like"
        raise MainstemError("NOT_A_GATEWAY", url=session.client.url, problem=problem)
    return found


def show_tried(session: Session, tried: Tried) -> None:
    """Reasons on stdout, each with some of its records; that all pass is a message."""
    found = tried.found
    if tried.file:
        typer.echo(f"{tried.file}: {found['name']}")
    judged = found["passed"] + found["failed"]
    told = f"{found['passed']} of the last {count(judged, 'record')} of {tried.topic} would pass"
    if not tried.failed:
        session.say(f"  {told}")
        return
    typer.echo(f"  {told}, {tried.failed} would not:")
    for reason in found["reasons"]:
        place = f"{reason['path']}: " if reason["path"] else ""
        typer.echo(f"    {reason['count']} x {place}{reason['reason']} ({reason['rule']})")
        samples = reason["samples"][:_SHOWN_SAMPLES]
        where = ", ".join(f"partition {one['partition']} offset {one['offset']}" for one in samples)
        typer.echo(f"      such as {where}")
