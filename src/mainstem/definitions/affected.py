"""Which rows of a table over tables a change can touch: by which keys it is kept up to date.

A result is kept up to date key by key if for each table the skeleton of the query leads from a
changed row to the values of some columns of the result: rows with other values there are what they
were. The same equalities, walked back, tell which rows of the tables make the rows with some key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition
from mainstem.definitions.skeleton import Edge, Place, Skeleton, Use
from mainstem.definitions.skeleton_reader import NoSkeletonError, skeletons

_EXACT = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "string", "date", "timestamp"}
)
"""Types of which equal values are one text, and come back from it as they were."""


@dataclass(frozen=True, slots=True)
class Hop:
    """From rows at hand to rows of another table with equal values."""

    use: Use
    pairs: tuple[tuple[Place, str], ...]
    """A place at hand, and the column of the other table."""


@dataclass(frozen=True, slots=True)
class Route:
    """From a changed row of a table to the keys that it touches."""

    use: Use
    hops: tuple[Hop, ...]
    keys: tuple[Place, ...]
    """Where the keys' values are, in the order of the keys."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which rows of a table, at one mention of it, make rows with some keys."""

    mention: int
    keys: tuple[tuple[str, str], ...] = ()
    """Its columns that must have the values of keys."""
    through: int | None = None
    """Or: another mention, narrowed before, and the pairs of columns of both that are equal."""
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Affected:
    """How changes of tables touch a result."""

    keys: tuple[str, ...]
    """Columns of the result."""
    routes: tuple[Route, ...]
    narrowings: tuple[Narrowing, ...]
    """In the order in which they can be made."""
    row_by_row: bool
    """True when rows with a key are made of the one row of the only table that has this key: then
    the changed rows are all that has to be looked at."""


def affected(definition: Definition, inputs: Sequence[Definition]) -> Affected | str:
    """How changes touch the definition's rows; a text says why the query must be asked whole."""
    query = definition.query
    assert query is not None
    if query.python is not None:
        return "it is a Python function"
    try:
        ways = skeletons(Asked.of(query), inputs)
    except NoSkeletonError as why:
        return str(why)
    types = {(d.name.lower(), c.name.lower()): c.type for d in inputs for c in d.columns}
    maps = [_Map(way, types) for way in ways]
    usable = [
        c.name
        for c in definition.columns
        if c.type in _EXACT or c.type.startswith("decimal(")
        if all(m.leads_to(c.name.lower()) for m in maps)
    ]
    keys = tuple(name for name in usable if name in definition.key) or tuple(usable)
    if not keys:
        return _nowhere(maps, definition)
    routes = tuple(m.route(use, keys) for m in maps for use in m.way.uses)
    return Affected(
        keys, routes, tuple(_narrowings(maps, keys)), row_by_row=_row_by_row(routes, inputs)
    )


class _Map:
    """Where the edges of one way lead."""

    def __init__(self, way: Skeleton, types: Mapping[tuple[str, str], str]) -> None:
        self.way = way
        self._types = types
        self._uses = {use.number: use for use in way.uses}
        self._outputs = dict(way.outputs)
        self._names = [name for name, _ in way.outputs]

    def place(self, name: str) -> Place | None:
        """The place of a column of the answer."""
        return self._outputs[name.lower()] if self._names.count(name.lower()) == 1 else None

    def leads_to(self, name: str) -> bool:
        """True when a change of any table leads to values of this column."""
        place = self.place(name)
        return place is not None and all(self.nearest(u, place) for u in self.way.uses)

    def nearest(self, use: Use, wanted: Place) -> Place | None:
        """The place with the wanted value that is reached first from a use."""
        order = list(self._parents(use))
        return min(
            (place for place in self.same(wanted) if place.use in order),
            key=lambda place: order.index(place.use),
            default=None,
        )

    def same(self, wanted: Place) -> list[Place]:
        """Places from which the wanted value can be taken as it is."""
        equal = [edge.start for edge in self.way.edges if edge.end == wanted]
        return [wanted, *(p for p in equal if self._type(p) == self._type(wanted))]

    def route(self, use: Use, keys: Sequence[str]) -> Route:
        """From a change to the keys that it touches."""
        wanted = [place for name in keys if (place := self.place(name))]
        found = [place for w in wanted if (place := self.nearest(use, w))]
        parents = self._parents(use)
        needed = set()
        for place in found:
            at: int | None = place.use
            while at is not None:
                needed.add(at)
                at = parents[at]
        hops = [
            Hop(self._uses[number], self._pairs(parent, number))
            for number, parent in parents.items()
            if number in needed and parent is not None
        ]
        return Route(use, tuple(hops), tuple(found))

    def _parents(self, use: Use) -> dict[int, int | None]:
        """All uses that edges lead to, nearest first, each with the one before it."""
        parents: dict[int, int | None] = {use.number: None}
        queue = [use.number]
        for at in queue:
            for edge in self.way.edges:
                if edge.start.use == at and edge.end.use not in parents:
                    parents[edge.end.use] = at
                    queue.append(edge.end.use)
        return parents

    def _pairs(self, start: int, end: int) -> tuple[tuple[Place, str], ...]:
        def between(edge: Edge) -> bool:
            return (edge.start.use, edge.end.use) == (start, end)

        return tuple((e.start, e.end.column) for e in self.way.edges if between(e))

    def _type(self, place: Place) -> str:
        return self._types[self._uses[place.use].table, place.column]


def _row_by_row(routes: Sequence[Route], inputs: Sequence[Definition]) -> bool:
    if len(routes) != 1:
        return False
    [route], [table] = routes, inputs
    own = {column.lower() for column in table.key}
    return not route.hops and {place.column for place in route.keys} == own


def _narrowings(maps: Sequence[_Map], keys: Sequence[str]) -> list[Narrowing]:
    """What can be left out of each mention when only rows with some keys are asked for.

    A mention with several uses must do for all of them, so it is narrowed by the keys alone.
    """
    uses = [(m, use) for m in maps for use in m.way.uses]
    found: dict[int, Narrowing] = {}
    direct: dict[int, set[tuple[tuple[str, str], ...]]] = {}
    for m, use in uses:
        places = [(key, place) for key in keys if (place := m.place(key))]
        pairs = [
            (p.column, key) for key, place in places for p in m.same(place) if p.use == use.number
        ]
        direct.setdefault(use.mention, set()).add(tuple(dict.fromkeys(pairs)))
    for mention, ways in direct.items():
        [pairs_of_all, *others] = ways
        if pairs_of_all and not others:
            found[mention] = Narrowing(mention, keys=pairs_of_all)
    if len(maps) == 1:
        of_use = {use.number: use.mention for _, use in uses}
        single = {m for m in direct if [*of_use.values()].count(m) == 1}
        routes = sorted((m.route(use, keys) for m, use in uses), key=lambda r: len(r.hops))
        for route in routes:
            mention = route.use.mention
            if mention in found or mention not in single or not route.hops:
                continue
            hop = route.hops[0]
            through = hop.use.mention
            if through in found and through in single:
                equal = tuple((place.column, column) for place, column in hop.pairs)
                found[mention] = Narrowing(mention, through=through, pairs=equal)
    return list(found.values())


def _nowhere(maps: Sequence[_Map], definition: Definition) -> str:
    """Why no column will do."""
    copies = [c for c in definition.columns if all(m.place(c.name) for m in maps)]
    if not copies:
        return "no column of the result is a plain column that all of its rows have in common"
    for m in maps:
        for use in m.way.uses:
            place = next((p for c in copies if (p := m.place(c.name))), None)
            if place is not None and m.nearest(use, place) is None:
                return f"no equality leads from {use.table} to the columns of the result"
    return "no column of the result can be looked for by its value"
