"""What of a query over tables ties rows together: which tables, by which equal columns.

The skeleton of a query is what is left when all its expressions and conditions are forgotten, but
for plain columns and equalities between them. Forgetting makes it say too much, never too little:
if a row of a table has any part in a row of the answer, the skeleton's equalities lead from one to
the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp


class Place(NamedTuple):
    """A column of one use of a table."""

    use: int
    column: str


class Edge(NamedTuple):
    """A row of `start`'s table has part only in what has an equal value at `end`."""

    start: Place
    end: Place


@dataclass(frozen=True, slots=True)
class Use:
    """A table where a query reads it; a WITH query that is used twice reads its tables twice."""

    number: int
    table: str
    mention: int
    """Which one it is of all names of tables in the text."""


Outputs = tuple[tuple[str, Place | None], ...]
"""Names of columns, and of what they are plain copies."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """One way in which rows of tables make rows of an answer; a UNION has several."""

    uses: tuple[Use, ...]
    edges: tuple[Edge, ...]
    outputs: Outputs
    """A column has a place only if all that shares in a row of the answer has its value there."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a SELECT knows behind its FROM and JOINs, in one way."""

    uses: tuple[Use, ...]
    edges: tuple[Edge, ...]
    all_columns: Outputs
    """What `*` gives."""
    by_alias: Mapping[str, Outputs]
    missing: frozenset[int] = field(default=frozenset())
    """Uses in whose place an outer join may put nulls: their columns prove nothing."""

    @staticmethod
    def of(alias: str, way: Skeleton) -> Scope:
        """One relation."""
        return Scope(way.uses, way.edges, way.outputs, {alias: way.outputs})

    def columns(self, qualifier: str) -> Outputs | None:
        """What `*`, or `qualifier.*`, gives; None when there is no such relation."""
        known = self.by_alias.get(qualifier) if qualifier else self.all_columns
        return None if known is None else tuple((n, self._sure(place)) for n, place in known)

    def place(self, node: exp.Expr) -> Place | None:
        """The place that an expression is a plain copy of, if there is no doubt."""
        return self._sure(self._found(node))

    def where(self, condition: exp.Expr | None) -> Scope:
        """With the equalities of a condition that every row must meet."""
        found = [e for one, other in self._pairs(condition) for e in _both_ways(one, other)]
        return replace(self, edges=(*self.edges, *found))

    def joined(self, join: exp.Join, alias: str, way: Skeleton) -> Scope:
        """With another relation.

        An outer join keeps the rows of one side whatever the other holds. So a change of the other
        side is felt where the equalities lead, but not the other way round.
        """
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        left, right = frozenset(self._numbers()), frozenset(u.number for u in way.uses)
        outer = side if side else "LEFT" if kind in ("SEMI", "ANTI") else ""
        using = [column.name.lower() for column in join.args.get("using") or ()]
        both = replace(
            self,
            uses=(*self.uses, *way.uses),
            edges=(*self.edges, *way.edges),
            all_columns=(*self.all_columns, *way.outputs),
            by_alias={**self.by_alias, alias: way.outputs},
        )
        pairs = list(both._pairs(join.args.get("on")))
        pairs += _pairs_of(using, self.all_columns, way.outputs)
        edges = []
        for one, other in pairs:
            for edge in _both_ways(one, other):
                to_left = edge.start.use in right and edge.end.use in left
                to_right = edge.start.use in left and edge.end.use in right
                if not outer or (outer == "LEFT" and to_left) or (outer == "RIGHT" and to_right):
                    edges.append(edge)
        both = replace(both, edges=(*both.edges, *edges))
        if kind in ("SEMI", "ANTI"):
            return replace(both, all_columns=self.all_columns, by_alias=self.by_alias)
        missing = (left if outer in ("RIGHT", "FULL") else frozenset()) | (
            right if outer in ("LEFT", "FULL") else frozenset()
        )
        both = replace(both, missing=self.missing | missing)
        if using:
            kept = dict(way.outputs if outer == "RIGHT" else self.all_columns)
            common = [(name, None if outer == "FULL" else kept.get(name)) for name in using]
            rest = [c for c in (*self.all_columns, *way.outputs) if c[0] not in using]
            both = replace(both, all_columns=(*common, *rest))
        return both

    def _numbers(self) -> Iterator[int]:
        return (use.number for use in self.uses)

    def _sure(self, place: Place | None) -> Place | None:
        return None if place is None or place.use in self.missing else place

    def _pairs(self, condition: exp.Expr | None) -> Iterator[tuple[Place, Place]]:
        """Pairs of plain columns that a condition says are equal."""
        if condition is None:
            return
        for part in condition.flatten() if isinstance(condition, exp.And) else (condition,):
            bare = part.unnest()
            if isinstance(bare, exp.EQ):
                one, other = self._found(bare.left), self._found(bare.right)
                if one is not None and other is not None:
                    yield one, other

    def _found(self, node: exp.Expr) -> Place | None:
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return None
        known = self.by_alias.get(node.table.lower()) if node.table else self.all_columns
        places = [place for name, place in known or () if name == node.name.lower()]
        return places[0] if len(places) == 1 else None


def _both_ways(one: Place, other: Place) -> tuple[Edge, Edge]:
    return Edge(one, other), Edge(other, one)


def _pairs_of(names: list[str], left: Outputs, right: Outputs) -> Iterator[tuple[Place, Place]]:
    """The pairs of USING."""
    for name in names:
        ones = [place for n, place in left if n == name]
        others = [place for n, place in right if n == name]
        if len(ones) == len(others) == 1 and ones[0] is not None and others[0] is not None:
            yield ones[0], others[0]
