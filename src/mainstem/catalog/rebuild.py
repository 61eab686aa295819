"""When is what an object holds of no use any more? Then it is built anew, else changed in place."""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.catalog.compare import changed_columns
from mainstem.catalog.connectors import Connectors
from mainstem.catalog.entry import Catalog
from mainstem.catalog.fingerprint import (
    conditions_of,
    function_versions,
    own_parts,
    rows_read,
)
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.following import only_added
from mainstem.definitions.model import Definition, FlowKind, Kind
from mainstem.definitions.state import keeps_state, streams_in_order


def must_rebuild(
    catalog: Catalog,
    connectors: Connectors | None,
    old: Definition,
    new: Definition,
    inputs: Sequence[Definition],
) -> bool:
    """True when what was written or kept as state does not fit what is wanted."""
    if old.kind is not new.kind or old.derived is not new.derived:
        return True
    if new.derived and _format(old) != _format(new):
        return True  # what was written in the old one could not be read any more
    if new.target is not None:
        return _begins_anew(catalog, connectors, old, new, inputs)
    if new.source is not None and new.derived:
        return _shape(old) != _shape(new) and not _grown(old, new)
    if new.query is None:
        return new.kind is Kind.TABLE and _shape(old) != _shape(new)
    if flow_kind(inputs) is FlowKind.TABLE and new.kind is Kind.STREAM:
        # the flow only knows how far it has read: what was written stays as it is
        return {i.topic for i in inputs} != {i.topic for i in _known_inputs(catalog, old)}
    grown = _grown(old, new)
    if flow_kind(inputs) is FlowKind.TABLE and (grown or _shape(old) == _shape(new)):
        # asked anew, the differences are written; but keys would move to other partitions
        return bool(new.partitions) and old.partitions != new.partitions
    before = _known_inputs(catalog, old)
    if streams_in_order(old, before) != streams_in_order(new, inputs):
        return True
    kept = keeps_state(new, inputs) or keeps_state(old, before)
    keeps = new.kind is Kind.TABLE or kept
    if not keeps:
        return False
    if new.kind is Kind.TABLE and new.partitions and old.partitions != new.partitions:
        return True  # keys move to other partitions
    if own_parts(old) != own_parts(new) or (old.columns != new.columns and not grown):
        return True
    if function_versions(old) != function_versions(new):
        return True
    if new.kind is Kind.TABLE and conditions_of(old) != conditions_of(new):
        return True  # what was written may break them, and what was left out keep them
    read = set(new.query.columns_read)
    for source in inputs:
        entry = catalog.get(source.name)
        # other rules let other records through from now on; what was read stays
        if entry is None or rows_read(entry.definition) == rows_read(source):
            continue
        touched = changed_columns(entry.definition, source)
        if read & touched or ("*" in read and not _grown(entry.definition, source)):
            return True
    return False


def _begins_anew(
    catalog: Catalog,
    connectors: Connectors | None,
    old: Definition,
    new: Definition,
    inputs: Sequence[Definition],
) -> bool:
    """True when a sink writes to, or reads from, another place than before."""
    if [i.topic for i in inputs] != [i.topic for i in _known_inputs(catalog, old)]:
        return True
    if old.target == new.target:
        return False
    return connectors is None or connectors.moved(old, new)


def _known_inputs(catalog: Catalog, definition: Definition) -> list[Definition]:
    """What a definition of the catalog reads there."""
    names = definition.query.inputs if definition.query else ()
    return [entry.definition for name in names if (entry := catalog.get(name))]


def _grown(old: Definition, new: Definition) -> bool:
    """True when columns were added by themselves: until then, no record had a value for them."""
    if not (old.follows and new.follows and only_added(old.columns, new.columns)):
        return False
    return (old.key, _format(old)) == (new.key, _format(new))


def _shape(definition: Definition) -> tuple[object, ...]:
    return definition.columns, definition.key, _format(definition)


def _format(definition: Definition) -> tuple[object, ...]:
    kinds = definition.format, definition.key_format
    return *kinds, definition.delimiter, definition.record
