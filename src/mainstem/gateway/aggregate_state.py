"""Where the events of an aggregate are: runs of events in the log, and how many there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mainstem.log.delivery import Place
from mainstem.log.state_store import Kept

_NEAR = 500
"""Events with so few other records between them are read in one go."""


class Run(NamedTuple):
    """Events that stand behind each other in the log."""

    version: int
    """Of the first of them."""
    partition: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class State:
    """The entry of an aggregate."""

    version: int = 0
    mark: str = ""
    last: int = 0
    """How many events the last append had."""
    pages: int = 0
    runs: Sequence[Run] = ()

    @classmethod
    def read(cls, kept: Kept | None) -> State:
        """From the ledger; one without events when there is none."""
        if kept is None or kept.value is None:
            return cls()
        document = json.loads(kept.value)
        return cls(**{**document, "runs": read_runs(document["runs"])})

    def kept(self) -> Kept:
        """For the ledger."""
        document = {
            "version": self.version,
            "mark": self.mark,
            "last": self.last,
            "pages": self.pages,
            "runs": self.runs,
        }
        return Kept(json.dumps(document, separators=(",", ":")).encode())

    def behind(self, mark: str, places: Sequence[Place]) -> State:
        """The same after an append."""
        runs = list(self.runs)
        for version, place in enumerate(places, self.version + 1):
            last = runs[-1] if runs else None
            if last and (last.partition, last.offset + last.length) == place[1:]:
                runs[-1] = last._replace(length=last.length + 1)
            else:
                runs.append(Run(version, place.partition, place.offset, 1))
        count = len(places)
        return replace(self, version=self.version + count, mark=mark, last=count, runs=runs)


def read_runs(numbers: Iterable[Sequence[int]]) -> list[Run]:
    """Runs from their JSON."""
    return [Run(*run) for run in numbers]


def split(state: State) -> tuple[list[Run], list[Run]]:
    """The runs of earlier requests, and those of the last one: it may have to be found again."""
    first = state.version - state.last + 1
    whole = [run for run in state.runs if run.version + run.length <= first]
    return whole, list(state.runs[len(whole) :])


def last_places(topic: str, state: State) -> list[Place]:
    """Where the events of the last append are."""
    places = [
        Place(topic, run.partition, run.offset + n) for run in state.runs for n in range(run.length)
    ]
    return places[-state.last :]


def cut(runs: Iterable[Run], since: int, limit: int) -> list[Run]:
    """The part of the runs that holds so many events behind a version."""
    taken = []
    for run in runs:
        skip = max(0, since + 1 - run.version)
        count = min(run.length - skip, limit)
        if count > 0:
            taken.append(Run(run.version + skip, run.partition, run.offset + skip, count))
            limit -= count
    return taken


def stretches(runs: Sequence[Run]) -> Iterator[tuple[int, int, int]]:
    """Partition, first offset and end of what is to be read; what is near is read together."""
    ordered = sorted(runs, key=lambda run: (run.partition, run.offset))
    partition, start, end = ordered[0].partition, ordered[0].offset, ordered[0].offset
    for run in ordered:
        if run.partition != partition or run.offset > end + _NEAR:
            yield partition, start, end
            partition, start = run.partition, run.offset
        end = run.offset + run.length
    yield partition, start, end
