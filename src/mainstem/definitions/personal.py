"""Which columns hold personal data: those that are tagged PII, and plain copies of them.

What a copy is, `column_lineage` says. What a function or an expression makes of a column is not
followed, nor is what Python makes of it, nor a stream of a table's changes: tag the column of a
declared object that such data goes to, or leave the column out.
"""

from __future__ import annotations

from collections.abc import Mapping

from mainstem.definitions.column_lineage import column_origins
from mainstem.definitions.model import Definition

Personal = Mapping[str, str]
"""Lower-case name of a column -> the tagged column that it is a copy of, as `stream.column`."""


def personal_columns(
    definition: Definition, inputs: Mapping[str, tuple[Definition, Personal]]
) -> Personal:
    """The personal data of an object; `inputs` is what it reads, by lower-case name."""
    if definition.query is None:
        return {name.lower(): f"{definition.name}.{name}" for name in definition.pii}
    if not any(found for _, found in inputs.values()):
        return {}
    made = column_origins(definition, {name: known for name, (known, _) in inputs.items()}) or {}
    known = {column.name.lower() for column in definition.columns}
    tagged: dict[str, str] = {}
    for name in known & made.keys():
        for place, copied in made[name].items():
            origin = inputs[place.object][1].get(place.column)
            if copied and origin is not None:
                tagged.setdefault(name, origin)
    return tagged
