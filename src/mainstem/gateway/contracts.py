"""Rules and PII tags of streams and tables, as the interface shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.catalog.personal import personal
from mainstem.definitions.model import Definition, Kind, OnViolation
from mainstem.definitions.state import takes_back

Broken = Callable[[str], Mapping[str, int]]
"""By rule, how many records of a stream have broken it."""

MASK = "***"
_GOES = "when the row of a key breaks a rule, the key has no row until one keeps the rules"
_STAYS = "a row that breaks a rule leaves the row of its key as it was"


def rules_shown(definition: Definition, broken: Broken) -> list[dict[str, Any]]:
    """Each rule, and how many records were kept or dropped because of it.

    A record that stops its readers is not counted: nobody has gone past it.
    """
    counts = broken(definition.name) if definition.rules else {}
    return [
        {
            "name": rule.name,
            "condition": rule.shown,
            "on_violation": rule.action.value,
            "records": None if rule.action is OnViolation.FAIL else counts.get(rule.name, 0),
        }
        for rule in definition.rules
    ]


def all_rules(catalog: Catalog, broken: Broken) -> list[dict[str, Any]]:
    """The rules of all objects."""
    return [
        {"object": entry.name, **rule}
        for _, entry in sorted(catalog.entries.items())
        for rule in rules_shown(entry.definition, broken)
    ]


def rule_lines(definition: Definition, broken: Broken) -> list[str]:
    """The rules in words, one line each."""
    lines = []
    for rule in rules_shown(definition, broken):
        count = rule["records"]
        told = "" if count is None else f"; broken by {count} record{'' if count == 1 else 's'}"
        lines.append(f"rule {rule['name']}: {rule['condition']}, else {rule['on_violation']}{told}")
    return lines


def explained_rules(
    definition: Definition, inputs: Sequence[Definition], broken: Broken
) -> list[str]:
    """The same lines of a flow, and what they mean for rows that are there already."""
    lines = rule_lines(definition, broken)
    if lines and definition.kind is Kind.TABLE:
        lines.append(_GOES if takes_back(definition, inputs) else _STAYS)
    return lines


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a list of records does not show of one object's."""

    columns: frozenset[str] = frozenset()
    """Lower-case names of columns with personal data."""
    key: bool = False
    """True when a key that is no JSON object is personal data."""

    def of_key(self, data: bytes | None) -> bytes | None:
        """The key with a mask for what is not shown."""
        return masked(data, self.columns) if self.key else data

    def of_value(self, data: bytes | None) -> bytes | None:
        """The value with a mask for what is not shown."""
        return masked(data, self.columns)


def hidden(catalog: Catalog) -> dict[str, Hidden]:
    """By lower-case name of the object; only those that hide something."""
    found = {}
    for name, columns in personal(catalog).items():
        key = catalog.entries[name].definition.key
        found[name] = Hidden(frozenset(columns), any(column.lower() in columns for column in key))
    return found


def masked(data: bytes | None, columns: Collection[str]) -> bytes | None:
    """A value for a list of records, with a mask for what is in these columns (lower-case names).

    What is no JSON object is masked as a whole: it may be anywhere in it.
    """
    if data is None or not columns:
        return data
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return MASK.encode()
    if not isinstance(document, dict):
        return MASK.encode()
    shown = {
        name: MASK if name.lower() in columns and value is not None else value
        for name, value in document.items()
    }
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()
