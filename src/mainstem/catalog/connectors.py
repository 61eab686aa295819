"""Sources and sinks in a plan: what a source brings, and whether a sink's target takes the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.definitions.connections import connection_of
from mainstem.definitions.indexes import brought
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError, did_you_mean


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a source brings at this moment."""

    definitions: tuple[Definition, ...]
    """Each before those that read it."""
    notes: tuple[str, ...] = ()
    """What the user should know, in sentences."""


class Connectors(Protocol):
    """Knows the connectors, and asks the systems that they talk to. Errors have their place."""

    def validate(self, definition: Definition) -> None:
        """Refuse a connector that does not exist, and options that it does not take."""
        ...

    def expand(
        self, source: Definition, before: Definition | None, known: Sequence[Definition]
    ) -> Expansion:
        """The streams and tables of a source.

        `before` is the source as the catalog has it, and `known` what it has brought: that stands
        when the system does not answer. A change that its position would not survive is refused.
        """
        ...

    def check(self, sink: Definition, read: Definition) -> None:
        """Refuse a target that cannot take the rows of the object that is read."""
        ...

    def moved(self, before: Definition, sink: Definition) -> bool:
        """True when a sink writes to another place, where what was written before is not."""
        ...


@dataclass(slots=True)
class Expanded:
    """The definitions that are given, and those that the sources among them bring."""

    definitions: list[Definition] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Lower-case names that the catalog has of these sources, and that do not come any more."""


def expanded(
    catalog: Catalog, definitions: Iterable[Definition], connectors: Connectors | None
) -> Expanded:
    """Ask each source what it brings; without `connectors` there may be none, nor a sink."""
    found = Expanded()
    for definition in definitions:
        found.definitions.append(definition)
        _check_own(catalog, definition)
        if connection_of(definition) is None:
            continue
        assert connectors is not None, "there are no connectors"
        connectors.validate(definition)
        if definition.kind is Kind.SOURCE:
            _expand(catalog, definition, connectors, found)
    _check_names(found.definitions)
    return found


def of_source(catalog: Catalog, name: str) -> list[Definition]:
    """What the catalog has of a source, by name."""
    return [
        entry.definition
        for _, entry in sorted(catalog.entries.items())
        if (entry.definition.source or "").lower() == name.lower()
    ]


def origin_of(catalog: Catalog, entry: Entry) -> Origin:
    """Who made an entry; what came with a source was made by whoever made that."""
    source = catalog.get(entry.definition.source or "")
    return entry.origin if source is None else source.origin


def check_drop(catalog: Catalog, gone: Iterable[str]) -> None:
    """OBJECT_OF_SOURCE when one of these lower-case names goes without its source."""
    going = set(gone)
    for name in sorted(going):
        definition = catalog.entries[name].definition
        if definition.source is not None and definition.source.lower() not in going:
            raise _belongs(definition, f"Use DROP SOURCE {definition.source}: all of it goes.")


def _expand(catalog: Catalog, source: Definition, connectors: Connectors, found: Expanded) -> None:
    known = of_source(catalog, source.name)
    before = catalog.get(source.name)
    expansion = connectors.expand(source, before.definition if before else None, known)
    names = {definition.name.lower() for definition in expansion.definitions}
    for definition in expansion.definitions:
        taken = catalog.get(definition.name)
        if taken is not None and (taken.definition.source or "").lower() != source.name.lower():
            raise _duplicate(definition, source, str(taken.definition.location))
    missing = [i for i in source.indexes if i.table.lower() not in names]
    if missing:
        index = missing[0]
        raise MainstemError(
            "UNKNOWN_RELATION",
            location=index.location,
            name=index.table,
            suggestion=did_you_mean(index.table, [d.name for d in expansion.definitions]),
        )
    found.definitions += [brought(source, definition) for definition in expansion.definitions]
    found.notes += expansion.notes
    found.gone |= {d.name.lower() for d in known if d.name.lower() not in names}


def _check_own(catalog: Catalog, definition: Definition) -> None:
    """A definition may not take the place of a source, or of what came with one."""
    taken = catalog.get(definition.name)
    if taken is None:
        return
    if taken.definition.source is not None:
        advice = "Use another name, or drop the source before."
        raise _belongs(taken.definition, advice).at(definition.location)
    if Kind.SOURCE in (taken.definition.kind, definition.kind) and (
        taken.definition.kind is not definition.kind
    ):
        raise MainstemError(
            "WRONG_KIND",
            location=definition.location,
            name=definition.name,
            actual=taken.definition.noun,
            expected=definition.noun,
            advice=f"Drop the {taken.definition.noun} before, or use another name.",
        )


def _check_names(definitions: Iterable[Definition]) -> None:
    places: dict[str, Definition] = {}
    for definition in definitions:
        other = places.setdefault(definition.name.lower(), definition)
        if other is not definition:
            raise _duplicate(definition, definition, str(other.location))


def _duplicate(definition: Definition, at: Definition, other: str) -> MainstemError:
    return MainstemError("DUPLICATE_NAME", location=at.location, name=definition.name, other=other)


def _belongs(definition: Definition, advice: str) -> MainstemError:
    return MainstemError(
        "OBJECT_OF_SOURCE",
        kind=definition.kind.value,
        name=definition.name,
        source=definition.source,
        advice=advice,
    )
