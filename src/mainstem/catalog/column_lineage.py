"""Where the columns of an object come from and what they go into, from object to object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from mainstem.catalog.entry import Catalog
from mainstem.definitions.column_lineage import Place, column_origins
from mainstem.definitions.model import Definition

_T = TypeVar("_T", bound=Hashable)
_Ways = dict[Place, dict[Place, bool]]
"""From a column to its neighbours on one side; True: a plain copy."""


class Reached(NamedTuple):
    """A column before or behind another."""

    object: str
    column: str
    copied: bool
    """On one way at least, all steps are plain copies."""
    steps: int
    """Of the shortest way; 1: there is no object between them."""


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """All that is known of an object's columns."""

    made_of: Mapping[str, list[Reached]]
    """By lower-case name of the column; nearest first."""
    goes_into: Mapping[str, list[Reached]]
    not_followed: list[str]
    """Objects before and behind it whose columns no query tells of: Python makes them."""


def column_lineage(catalog: Catalog, definition: Definition) -> ColumnLineage:
    """The columns before and behind those of one object; only what touches it is looked at."""
    definitions = {name: entry.definition for name, entry in catalog.entries.items()}
    inputs = {n: [i for i in _inputs(d) if i in definitions] for n, d in definitions.items()}
    readers: dict[str, list[str]] = {}
    for name, read in inputs.items():
        for other in read:
            readers.setdefault(other, []).append(name)
    here = definition.name.lower()
    back: _Ways = {}
    forth: _Ways = {}
    not_followed = []
    for name in sorted({here, *_steps(here, inputs), *_steps(here, readers)}):
        known = definitions[name]
        made = column_origins(known, {other: definitions[other] for other in inputs[name]})
        if made is None and known.query is not None:
            not_followed.append(known.name)
        for column, origins in (made or {}).items():
            for origin, copied in origins.items():
                back.setdefault(Place(name, column), {})[origin] = copied
                forth.setdefault(origin, {})[Place(name, column)] = copied
    spelled = {
        Place(name, column.name.lower()): column.name
        for name, known in definitions.items()
        for column in known.columns
    }

    def reached(ways: _Ways) -> dict[str, list[Reached]]:
        copies = {place: [o for o, copied in on.items() if copied] for place, on in ways.items()}
        found = {}
        for column in definition.columns:
            start = Place(here, column.name.lower())
            passed_on = _steps(start, copies)
            found[start.column] = [
                Reached(definitions[p.object].name, spelled.get(p, p.column), p in passed_on, far)
                for p, far in _steps(start, ways).items()
            ]
        return found

    return ColumnLineage(reached(back), reached(forth), not_followed)


def _inputs(definition: Definition) -> list[str]:
    return [name.lower() for name in definition.query.inputs] if definition.query else []


def _steps(start: _T, ways: Mapping[_T, Iterable[_T]]) -> dict[_T, int]:
    """How far away each one is that can be reached, nearest first."""
    found = {start: 0}
    edge = [start]
    while edge:
        following = []
        for place in edge:
            for other in ways.get(place, ()):
                if other not in found:
                    found[other] = found[place] + 1
                    following.append(other)
        edge = following
    del found[start]
    return found
