"""The answer that an example computed beside what the servers hold, until both are the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mainstem.client import Client
from play import Answer, Row
from stage import say
from world import World

_LOOK_EVERY_SECONDS = 0.3


@dataclass(frozen=True)
class Compared:
    """A table or stream: what it must hold and what it holds, row beside row where they pair."""

    name: str
    columns: tuple[str, ...]
    expected: int
    found: int
    pairs: list[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]]
    """Rows that should be there, rows that are; None where the other side has no such row."""

    @property
    def right(self) -> int:
        """How many rows are as they should be."""
        return sum(expected is not None and found is not None for expected, found in self.pairs)

    @property
    def equal(self) -> bool:
        """Whether nothing is missing, wrong or too much."""
        return self.right == self.expected == self.found


Ask = Callable[[str, Sequence[str]], list[list[Any]]]
"""The rows of a table, a stream, or what another server holds, by name and columns."""


def asking(client: Client, world: World) -> Ask:
    """Asks Mainstem, or where a name says so, a server around it."""

    def ask(name: str, columns: Sequence[str]) -> list[list[Any]]:
        kind, colon, what = name.partition(":")
        if kind == "quarantine":
            found = client.quarantine({"stream": what, "limit": "500"})["records"]
            return [[record[column] for column in columns] for record in found]
        if colon:
            return world.holds(name, columns)
        listed = ", ".join(columns) or "*"
        rows: list[list[Any]] = client.sql(f"SELECT {listed} FROM {name}")["rows"]
        return rows

    return ask


def wait_for(
    client: Client, ask: Ask, answer: Answer, flows: Iterable[str], seconds: float
) -> list[Compared]:
    """Compares until all is right and all is read, or until time is up."""
    deadline = time.monotonic() + seconds
    told = ""
    while True:
        late = time.monotonic() > deadline
        compared: list[Compared] = []
        for name, rows in answer.items():
            compared.append(compare(ask, name, rows))
            if not (compared[-1].equal or late):
                break  # the others are asked when this one is right
        progress = ", ".join(f"{c.name} {c.right} of {c.expected} rows" for c in compared)
        if progress != told:
            say.print(f"  right so far: {progress}")
            told = progress
        if late or (all(c.equal for c in compared) and _has_read_all(client, set(flows))):
            return compared
        time.sleep(_LOOK_EVERY_SECONDS)


def troubles(client: Client, flows: Iterable[str]) -> Iterator[str]:
    """What the flows themselves have to complain of."""
    for flow in _statuses(client, set(flows)):
        name = flow["flow"]
        if error := flow.get("error"):
            yield f"{name}: {error.get('title')}: {error.get('detail')}"
        if number := flow.get("quarantined"):
            yield f"{name}: {number} records are in quarantine"
        if number := flow.get("late_dropped", 0) + flow.get("late_waiting", 0):
            yield f"{name}: {number} records came too late"


def compare(ask: Ask, name: str, rows: Sequence[Row]) -> Compared:
    """What a table or stream holds now beside what it must hold; order does not count."""
    columns = tuple(rows[0]) if rows else ()
    held = ask(name, columns)
    expected = [tuple(row[column] for column in columns) for row in rows]
    samples = [
        next((row[column] for row in rows if row[column] is not None), None) for column in columns
    ]
    found = [tuple(map(_read, row, samples)) if samples else tuple(row) for row in held]
    return Compared(name, columns, len(expected), len(found), list(_pairs(expected, found)))


def _pairs(
    expected: list[tuple[Any, ...]], found: list[tuple[Any, ...]]
) -> Iterator[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]]:
    """First what differs, so that it is seen; then the pairs."""
    by_text: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for row in found:
        by_text.setdefault(_without_fractions(row), []).append(row)
    missing, pairs = [], []
    for row in expected:
        candidates = by_text.get(_without_fractions(row), [])
        match = next((other for other in candidates if _same(row, other)), None)
        if match is None:
            missing.append(row)
        else:
            candidates.remove(match)
            pairs.append((row, match))
    yield from ((row, None) for row in missing)
    yield from ((None, row) for rows in by_text.values() for row in rows)
    yield from pairs


def _without_fractions(row: tuple[Any, ...]) -> tuple[str, ...]:
    """What must be equal to the letter; fractions may differ in their last digits."""
    return tuple("" if isinstance(value, float) else str(value) for value in row)


def _same(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(
        not isinstance(a, float) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
        for a, b in zip(row, other, strict=True)
    )


def _read(value: Any, sample: Any) -> Any:
    """A value out of JSON, of the type that the answer has for it."""
    if value is None:
        return None
    readers: Mapping[type, Callable[[Any], Any]] = {
        datetime: lambda text: datetime.fromisoformat(text).astimezone(UTC),
        float: float,
    }
    return readers.get(type(sample), lambda plain: plain)(value)


def _has_read_all(client: Client, flows: set[str]) -> bool:
    return all(flow.get("lag_records") == 0 for flow in _statuses(client, flows))


def _statuses(client: Client, flows: set[str]) -> list[dict[str, Any]]:
    return [flow for flow in client.status()["flows"] if flow["flow"] in flows]
