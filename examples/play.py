"""How an example is played: its events go in, its own answer is waited for, both are compared.

An example is a project folder with a `case.py`:

    events(seed)      what happens, in its order: a list of steps
    answer(events)    table or stream -> the rows that it must hold in the end, in plain Python;
                      or `postgres:marketing.contacts`, ...: what another server must hold
    remark(ask)       optional: something to tell beside it; `ask` takes a query and gives rows
    NEEDS             optional: the servers around Mainstem, see `world.py`
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from mainstem.client import Client
from mainstem.errors import MainstemError

EXAMPLES = Path(__file__).parent
_BATCH = 500

Row = dict[str, Any]
Answer = dict[str, list[Row]]


@dataclass(frozen=True)
class Event:
    """A row for a stream or a table."""

    stream: str
    row: Row


@dataclass(frozen=True)
class Append:
    """An event for an aggregate, upon the version that its sender has seen; or it is refused."""

    stream: str
    key: str
    seen: int
    row: Row


@dataclass(frozen=True)
class Statement:
    """SQL that somebody runs in the midst of it."""

    sql: str


@dataclass(frozen=True)
class Sql:
    """A transaction in a database outside of Mainstem."""

    database: str
    text: str
    fails: bool = False
    """True: it is taken back."""


@dataclass(frozen=True)
class Line:
    """Lines that a program sends to where `to` says: a variable of NEEDS."""

    to: str
    text: str


@dataclass(frozen=True)
class Posted:
    """What another service posts to a webhook."""

    source: str
    body: Row


@dataclass(frozen=True)
class File:
    """A file that somebody puts into the project's folder."""

    path: str
    text: str


Step = Event | Append | Statement | Sql | Line | Posted | File
Outside = Callable[[Step], None]
"""Lets a step happen that is neither for a stream nor a statement."""


def clock(at: datetime) -> str:
    """A time as it stands in an event."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """The time that stands in an event."""
    return datetime.fromisoformat(text)


def names() -> list[str]:
    """The examples there are."""
    return sorted(file.parent.name for file in EXAMPLES.glob("*/case.py"))


def case(name: str) -> ModuleType:
    """An example's `case.py`."""
    spec = importlib.util.spec_from_file_location(f"case_{name}", EXAMPLES / name / "case.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(client: Client, steps: Sequence[Step], outside: Outside) -> None:
    """Lets it happen; events in batches."""
    batch: list[Event] = []
    for step in steps:
        if isinstance(step, Event):
            batch.append(step)
        if batch and (len(batch) == _BATCH or not isinstance(step, Event)):
            send(client, batch)
            batch = []
        if isinstance(step, Statement):
            client.sql(step.sql)
        elif isinstance(step, Append):
            append(client, step)
        elif not isinstance(step, Event):
            outside(step)
    send(client, batch)


def append(client: Client, step: Append) -> None:
    """Appends an event, unless somebody was quicker."""
    try:
        client.append(step.stream, step.key, [step.row], step.seen)
    except MainstemError as error:
        if error.code != "VERSION_CONFLICT":
            raise


def send(client: Client, batch: Sequence[Event]) -> None:
    """Writes events through the gateway; what a batch names first is written first."""
    by_stream: dict[str, list[Row]] = {}
    for event in batch:
        by_stream.setdefault(event.stream, []).append({"value": event.row})
    for stream, records in by_stream.items():
        client.write(stream, json.dumps({"records": records}).encode())
