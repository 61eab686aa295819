"""What differs between two versions of a definition, in words and in columns."""

from __future__ import annotations

from collections.abc import Mapping

from mainstem.catalog.fingerprint import function_versions, own_parts, rules_of, time_of
from mainstem.definitions.model import Definition


def differences(old: Definition, new: Definition) -> list[str]:
    """Each difference in a few words; empty when only something else changed."""
    before, after = own_parts(old), own_parts(new)
    parts = {**before, **after}
    found = [f"{part} changed" for part in parts if before.get(part) != after.get(part)]
    called, calls = function_versions(old), function_versions(new)
    if before["query"] == after["query"]:
        found += [f"function {f} changed" for f in calls if calls[f] != called.get(f)]
    columns = _column_changes(old, new)
    if columns:
        found.append(f"columns changed ({columns})")
    rules = _changes(rules_of(old), rules_of(new))
    if rules:
        found.append(f"rules changed ({rules})")
    indexes = _changes(_indexes(old), _indexes(new))
    if indexes:
        found.append(f"indexes changed ({indexes})")
    tags = _changes(dict.fromkeys(old.pii), dict.fromkeys(new.pii))
    if tags:
        found.append(f"PII tags changed ({tags})")
    for part in ("retention", "comment", "trigger", "partitions", "idle_timeout"):
        if getattr(old, part) != getattr(new, part):
            found.append(f"{part.replace('_', ' ')} changed")
    return found


def changed_columns(old: Definition, new: Definition) -> set[str]:
    """Lower-case names of the columns that mean something else now, or are gone."""
    before = {column.name.lower(): column for column in old.columns}
    after = {column.name.lower(): column for column in new.columns}
    touched = {name for name, column in before.items() if after.get(name) != column}
    if time_of(old) != time_of(new) or old.watermark != new.watermark:
        touched |= {(d.event_time or "_timestamp").lower() for d in (old, new)}
    return touched


def _indexes(definition: Definition) -> dict[str, object]:
    return {index.name: (index.table, index.columns) for index in definition.indexes}


def _column_changes(old: Definition, new: Definition) -> str:
    before = {column.name: column.type for column in old.columns}
    after = {column.name: column.type for column in new.columns}
    words = _changes(before, after)
    return "order" if not words and list(before) != list(after) else words


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Names that came, went and mean something else: `+new -old ~other`."""
    words = [f"+{name}" for name in after if name not in before]
    words += [f"-{name}" for name in before if name not in after]
    words += [f"~{name}" for name in after if name in before and before[name] != after[name]]
    return " ".join(words)
