"""What the gateway remembers of the quarantine: a few bytes for each record, and counts.

For each id: its state, its kind (who refused it, where and why) and where its state stands in the
log. The records themselves stay in the log and are read from there when they are asked for. Beside
that, how often the rules of each object were broken.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mainstem.gateway.quarantine_arrivals import Arrivals
from mainstem.log.quarantine import Quarantined
from mainstem.log.rule_counts import counted_for
from mainstem.log.settle import State

_NONE = 0
"""Not a record: the marker of a transaction."""
_STATES = (State.HELD, State.REPLAYED, State.DISCARDED)
_CODE = {state: number for number, state in enumerate(_STATES, 1)}
_MOST_KINDS = 10_000
_STEPS = 1000
_OTHER = "(other causes)"
_LONGEST_CAUSE = 160
_NUMBER = re.compile(r"\d+")


class Kind(NamedTuple):
    """Records that are counted together; in `cause` numbers are written as #."""

    reader: str
    stage: str
    code: str
    cause: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are meant; what is None does not matter."""

    reader: str | None = None
    stage: str | None = None
    cause: str | None = None
    """The code, or a part of the cause."""

    def may_take(self, kind: Kind) -> bool:
        """False when no record of that kind is meant."""
        return (
            (self.reader is None or self.reader.lower() == kind.reader.lower())
            and (self.stage is None or self.stage == kind.stage)
            and (kind.cause == _OTHER or self._fits(kind.code, kind.cause))
        )

    def takes(self, entry: Quarantined) -> bool:
        """True when the record itself is meant."""
        return self.may_take(Kind(entry.reader, entry.stage, entry.code, _OTHER)) and self._fits(
            entry.code, _without_numbers(entry.cause)
        )

    def _fits(self, code: str, cause: str) -> bool:
        wanted = self.cause
        if wanted is None or wanted.upper() == code:
            return True
        return _without_numbers(wanted).lower() in cause.lower()


class QuarantineIndex:
    """States and kinds of all records. Safe to use from several threads."""

    def __init__(self, first: int) -> None:
        self.arrivals = Arrivals()
        self._first = first
        self._states = bytearray()
        self._kinds = array("I")
        self._places = array("q")
        self._known: list[Kind] = []
        self._numbers: dict[Kind, int] = {}
        self._counts: list[list[int]] = []
        self._early: dict[int, tuple[State, int]] = {}
        self._broken: dict[str, dict[str, Mapping[str, int]]] = {}
        """By object and by who counts."""
        self._lock = threading.Lock()

    def count_rules(self, writer: str, records: Mapping[str, int]) -> None:
        """How many records have broken each rule of an object by now, as one writer counts."""
        name, _ = counted_for(writer)
        with self._lock:
            self._broken.setdefault(name, {})[writer] = records

    def broken(self, name: str, flow: str | None = None) -> Mapping[str, int]:
        """The same of all who count for an object, as last heard of; or of one flow only."""
        with self._lock:
            found: Counter[str] = Counter()
            for writer, records in self._broken.get(name, {}).items():
                if flow is None or counted_for(writer)[1] == flow:
                    found.update(records)
            return found

    def add(self, entry: Quarantined) -> None:
        """A record that was put into quarantine."""
        with self._lock:
            at = entry.id - self._first
            if at < len(self._states):
                return
            number = self._number(entry)
            gap = at - len(self._states)
            self._states.extend(bytes(gap + 1))
            self._kinds.extend([0] * gap + [number])
            self._places.extend([-1] * (gap + 1))
            self._states[at] = _CODE[State.HELD]
            self._counts[number][_CODE[State.HELD]] += 1
            early = self._early.pop(entry.id, None)
            if early is not None:
                self._settle(at, *early)

    def settle(self, id: int, state: State, place: int) -> None:
        """A state, and its offset in the topic of the states."""
        with self._lock:
            at = id - self._first
            if at >= len(self._states):  # the two topics are not read in one order
                self._early[id] = (state, place)
            elif at >= 0:
                self._settle(at, state, place)

    def state(self, id: int) -> tuple[State, int] | None:
        """The state of a record and where that stands (-1: held); None: there is no such record."""
        with self._lock:
            at = id - self._first
            if not 0 <= at < len(self._states) or self._states[at] == _NONE:
                return None
            return _STATES[self._states[at] - 1], self._places[at]

    @property
    def end(self) -> int:
        """The first id that is not used yet."""
        with self._lock:
            return self._first + len(self._states)

    def counts(self) -> dict[Kind, dict[State, int]]:
        """How many records there are of each kind, by state."""
        with self._lock:
            return {
                kind: {state: count[_CODE[state]] for state in _STATES}
                for kind, count in zip(self._known, self._counts, strict=True)
            }

    def newest(
        self, selection: Selection, state: State | None, low: int, high: int
    ) -> Iterator[int]:
        """Ids from `low` up to, not including, `high`, from the last one down."""
        return self._search(selection, state, low, high, newest=True)

    def oldest(
        self, selection: Selection, state: State | None, low: int, high: int
    ) -> Iterator[int]:
        """The same ids, from the first one up."""
        return self._search(selection, state, low, high, newest=False)

    def _search(
        self, selection: Selection, state: State | None, low: int, high: int, *, newest: bool
    ) -> Iterator[int]:
        low, high = max(low - self._first, 0), max(high - self._first, 0)
        more = True
        while more:
            found: list[int] = []
            with self._lock:  # for some steps at a time: others want it, too
                wanted = {n for n, kind in enumerate(self._known) if selection.may_take(kind)}
                for _ in range(_STEPS):
                    at = self._nearest(state, low, high, newest=newest)
                    if at < 0:
                        more = False
                        break
                    low, high = (low, at) if newest else (at + 1, high)
                    if self._kinds[at] in wanted:
                        found.append(self._first + at)
            yield from found

    def _nearest(self, state: State | None, low: int, high: int, *, newest: bool) -> int:
        """The last or first record of a state, or of any, between two places; -1: none."""
        states, high = self._states, min(high, len(self._states))
        if state is not None:
            find = states.rfind if newest else states.find
            return find(_CODE[state], low, max(low, high))
        for at in range(high - 1, low - 1, -1) if newest else range(low, high):
            if states[at] != _NONE:
                return at
        return -1

    def _settle(self, at: int, state: State, place: int) -> None:
        if self._states[at] == _NONE:
            return
        count = self._counts[self._kinds[at]]
        count[self._states[at]] -= 1
        count[_CODE[state]] += 1
        self._states[at] = _CODE[state]
        self._places[at] = place

    def _number(self, entry: Quarantined) -> int:
        cause = _without_numbers(entry.cause)[:_LONGEST_CAUSE]
        kind = Kind(entry.reader, entry.stage, entry.code, cause)
        if kind not in self._numbers and len(self._known) >= _MOST_KINDS:
            kind = kind._replace(cause=_OTHER)
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._known)
            self._known.append(kind)
            self._counts.append([0] * (len(_STATES) + 1))
        return number


def _without_numbers(text: str) -> str:
    """A cause without what differs from record to record: places, lengths, values."""
    return _NUMBER.sub("#", text)
