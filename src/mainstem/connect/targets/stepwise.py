"""Targets that take some rows at a time, each time in a transaction that also has their position.

What happens to the rows of one partition, as they come:

1. The position of the partition is looked up, with the rows that were refused when it was moved
   there. Rows before it are in the target, and are left out; the refused ones among them are told
   again, for the engine may have died before the quarantine had them.
2. The other rows are written and the position moved behind them, in one transaction. Crash before
   its end: nothing has happened. Behind it: the part comes again, and goes on behind these rows.
3. If the target does not take one of them, each half is tried by itself, in order, until the row is
   found; the position moves over it, and it is noted there as refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.connect.targets.target import (
    OFFSET,
    Part,
    Poison,
    Shape,
    by_partition,
    last_of_each,
    poison_at,
)


class RowError(Exception):
    """The target does not take rows because of what is in them."""


@dataclass(slots=True)
class Position:
    """One partition of a topic: from where on records are new, and what was refused before."""

    topic: str
    topic_id: str
    partition: int
    next: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Offsets and causes, of the last part."""


class Stepwise(ABC):
    """One part of a batch."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._part: Part | None = None
        self._positions: dict[tuple[str, int], Position] = {}

    @abstractmethod
    def look_up(self, position: Position) -> None:
        """Fills in what the target knows of the partition."""

    @abstractmethod
    def step(self, rows: pa.Table, position: Position) -> None:
        """Writes the rows, and the position behind them, in one transaction.

        Raises `RowError` when it is the rows' fault; then nothing has happened.
        """

    def open(self, part: Part) -> None:
        """Keeps the part; the connection is made with the first rows."""
        self._part = part

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Writes the rows that are new."""
        poison: list[Poison] = []
        for topic, partition, mine in by_partition(rows):
            position = self._positions.get((topic, partition))
            if position is None:
                position = self._begin(topic, partition, mine[OFFSET][0].as_py())
            seen = set(mine[OFFSET].to_pylist())
            poison += [
                Poison(topic, partition, offset, cause)
                for offset, cause in position.refused
                if offset in seen
            ]
            new = mine.filter(pc.greater_equal(mine[OFFSET], position.next))
            poison += self._by_halves(new, position)
        return poison

    def finish(self) -> Sequence[Poison]:
        """Each step was for good."""
        return []

    def _begin(self, topic: str, partition: int, first: int) -> Position:
        assert self._part is not None
        position = Position(topic, self._part.topics[topic], partition)
        self.look_up(position)
        # of earlier parts the quarantine has what was refused
        position.refused = [one for one in position.refused if one[0] >= first]
        self._positions[topic, partition] = position
        return position

    def _by_halves(self, rows: pa.Table, position: Position) -> list[Poison]:
        if not rows.num_rows:
            return []
        before = position.next
        position.next = rows[OFFSET][-1].as_py() + 1
        try:
            self.step(last_of_each(rows) if self._shape.upserts else rows, position)
        except RowError as error:
            if rows.num_rows > 1:
                position.next = before
                half = rows.num_rows // 2
                return [
                    *self._by_halves(rows.slice(0, half), position),
                    *self._by_halves(rows.slice(half), position),
                ]
            poison = poison_at(rows, 0, str(error))
            position.refused.append((poison.offset, poison.cause))
            self.step(rows.slice(0, 0), position)
            return [poison]
        return []
