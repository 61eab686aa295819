"""The keys of a table over tables that changes touch, and the rows of its tables that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.affected import Affected, Narrowing, Route
from mainstem.definitions.model import Definition
from mainstem.definitions.skeleton import Place
from mainstem.engine.held_table import ALL_ROWS, Only


@dataclass(frozen=True, slots=True)
class Moved:
    """A table and what has changed in it; all the same when nothing has."""

    now: DataFrame
    """Its rows; if one of them makes a row of the result alone, those that have changed will do."""
    before: DataFrame | None = None
    """Rows that have changed, as they were; None, too, where only their keys count."""
    after: DataFrame | None = None
    """The same rows as they are."""
    records: DataFrame | None = None
    """All changes, which have the rows' keys in any case."""
    key: frozenset[str] = frozenset()
    """The columns of the table's key."""
    count: int = 0
    """How many changes there are, at most."""

    @property
    def ever(self) -> DataFrame:
        """All rows, old and new: what a changed row of another table is or was joined to."""
        return self.now if self.before is None else self.now.unionByName(self.before)


def touched_keys(
    affected: Affected, result: Definition, tables: Mapping[str, Moved]
) -> DataFrame | None:
    """The values of the keys whose rows may have changed; None: no table has changed."""
    types = {column.name: column.type for column in result.columns}
    found = []
    for route in affected.routes:
        moved = tables[route.use.table]
        changed = moved.records
        if changed is None:
            continue
        # a row's key is the same before and after: no need to look for what it was
        by_key = not route.hops and {place.column for place in route.keys} <= moved.key
        if not by_key:
            assert moved.before is not None
            assert moved.after is not None
            changed = moved.before.unionByName(moved.after)
        rows = _walk(route, changed, tables)
        keys = zip(affected.keys, route.keys, strict=True)
        found.append(rows.select(*(_at(p).cast(types[k]).alias(k) for k, p in keys)))
    if not found:
        return None
    return reduce(DataFrame.unionByName, found).distinct()


def narrowed(
    affected: Affected,
    result: Definition,
    mentions: Sequence[Callable[[Only], DataFrame]],
    keys: DataFrame,
    kept: list[DataFrame],
) -> list[DataFrame]:
    """The rows of each mention of a table that make the rows with these keys.

    What is read twice for that goes into `kept`, to be let go after the batch.
    """
    rows: dict[int, DataFrame] = {}
    types = {column.name: column.type for column in result.columns}
    sources = {n.through for n in affected.narrowings if n.through is not None}
    for step in affected.narrowings:
        if step.through is None:
            columns = {c: (k, types[k]) for c, k in step.keys}
            only = only_keys(keys, columns)
        else:
            own = frozenset(column.lower() for column, _ in step.pairs)
            only = Only(partial(_matching, other=rows[step.through], step=step), own)
        table = mentions[step.mention](only)
        if step.mention in sources:
            table = table.persist()
            kept.append(table)
        rows[step.mention] = table
    return [rows[n] if n in rows else read(ALL_ROWS) for n, read in enumerate(mentions)]


def only_keys(keys: DataFrame, columns: Mapping[str, tuple[str, str]]) -> Only:
    """Leaves of the rows of a table those with values of the keys, as `with_keys` does."""
    names = frozenset(column.lower() for column in columns)
    return Only(partial(with_keys, keys=keys, columns=columns), names)


def with_keys(
    rows: DataFrame, keys: DataFrame, columns: Mapping[str, tuple[str, str]]
) -> DataFrame:
    """The rows whose columns have values of the keys; `columns`: column -> key and its type."""
    names = [key for key, _ in columns.values()]
    wanted = keys.select(*(_col(key).alias(f"_k{i}") for i, key in enumerate(names))).distinct()
    tests = [
        rows[_quoted(column)].cast(kind).eqNullSafe(wanted[f"_k{i}"])
        for i, (column, (_, kind)) in enumerate(columns.items())
    ]
    return rows.join(F.broadcast(wanted), tests, "left_semi")


def _walk(route: Route, changed: DataFrame, tables: Mapping[str, Moved]) -> DataFrame:
    """The changed rows, joined to those of other tables that lead to the keys."""
    places = {*route.keys, *(place for hop in route.hops for place, _ in hop.pairs)}
    rows = _named(changed, route.use.number, places, ())
    for hop in route.hops:
        number = hop.use.number
        columns = [column for _, column in hop.pairs]
        other = _named(tables[hop.use.table].ever, number, places, columns)
        tests = [_at(Place(number, column)) == _at(place) for place, column in hop.pairs]
        rows = other.join(F.broadcast(rows), tests)
    return rows


def _named(rows: DataFrame, use: int, places: set[Place], columns: Sequence[str]) -> DataFrame:
    """The columns in question under names that tell one use of a table from another."""
    wanted = {place.column for place in places if place.use == use} | {*columns}
    return rows.select(*(_col(c).alias(_name(Place(use, c))) for c in sorted(wanted))).distinct()


def _matching(table: DataFrame, other: DataFrame, step: Narrowing) -> DataFrame:
    """The rows of a table that rows of the other have the values of."""
    values = [_col(theirs).alias(f"_v{i}") for i, (_, theirs) in enumerate(step.pairs)]
    wanted = other.select(*values).distinct()
    tests = [table[_quoted(own)] == wanted[f"_v{i}"] for i, (own, _) in enumerate(step.pairs)]
    return table.join(F.broadcast(wanted), tests, "left_semi")


def _at(place: Place) -> Column:
    return _col(_name(place))


def _name(place: Place) -> str:
    return f"{place.use} {place.column}"


def _col(name: str) -> Column:
    return F.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
