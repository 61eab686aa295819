"""Which columns of the catalog's objects hold personal data, followed from object to object."""

from __future__ import annotations

from mainstem.catalog.entry import Catalog
from mainstem.definitions.personal import Personal, personal_columns
from mainstem.definitions.resolve import order


def personal(catalog: Catalog) -> dict[str, Personal]:
    """By lower-case name of the object; only those that have some."""
    found: dict[str, Personal] = {}
    if not any(entry.definition.pii for entry in catalog.entries.values()):
        return found
    definitions = {name: entry.definition for name, entry in catalog.entries.items()}
    for definition in order(definitions.values(), {}):
        names = [n.lower() for n in (definition.query.inputs if definition.query else ())]
        inputs = {n: (definitions[n], found.get(n, {})) for n in names if n in definitions}
        columns = personal_columns(definition, inputs)
        if columns:
            found[definition.name.lower()] = columns
    return found
