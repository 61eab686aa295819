"""What has changed between two versions of a schema, and which changes break whom."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mainstem.schemas.avro_diff import avro_differences
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.breaks import Break
from mainstem.schemas.compatibility import Level, breaks
from mainstem.schemas.differences import Action, Difference
from mainstem.schemas.json_diff import json_differences
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.model import Resolve, Schema
from mainstem.schemas.parse import Parsed, parse
from mainstem.schemas.protobuf_diff import protobuf_differences
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.protobuf_rules import reused_numbers

_MARKS: Final = {Action.ADDED: "+", Action.REMOVED: "-", Action.CHANGED: "~", Action.RENAMED: "~"}
_ENDS: Final = ".[{</"
"""What may follow a path in the path of something inside."""
_MOST: Final = 100
"""Changes that one break is given to."""


@dataclass(frozen=True)
class Change:
    """One difference, with what it breaks.

    backward  why the new schema cannot read what the old one has written
    forward   why the old schema cannot read what the new one writes
    """

    path: str
    action: Action
    what: str
    before: Any = None
    after: Any = None
    backward: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()

    def breaking(self, level: Level) -> bool:
        """Whether a subject with this level refuses it."""
        return bool((level.backward and self.backward) or (level.forward and self.forward))

    def as_dict(self, level: Level) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": self.path,
            "action": self.action.value,
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "breaking": self.breaking(level),
            "backward": list(self.backward),
            "forward": list(self.forward),
        }


def diff(old: Schema, new: Schema, resolve: Resolve) -> list[Change]:
    """All changes from `old` to `new`; none if they say the same."""
    before, after = parse(old, resolve), parse(new, resolve)
    backward = breaks(after, before)
    if isinstance(before, ProtobufSchema) and isinstance(after, ProtobufSchema):
        backward += reused_numbers(after, before)
    return _join(_differences(before, after), backward, breaks(before, after))


def render(changes: Sequence[Change], level: Level) -> str:
    """The changes as text, one a line, with the reasons of those that break under it."""
    lines = []
    for change in changes:
        verdict = "BREAKING" if change.breaking(level) else "compatible"
        lines.append(f"{_MARKS[change.action]} {change.path}: {_words(change)} ({verdict})")
        reasons = change.backward if level.backward else ()
        lines += [f"    cannot read earlier records: {reason}" for reason in reasons]
        reasons = change.forward if level.forward else ()
        lines += [f"    earlier readers cannot read: {reason}" for reason in reasons]
    return "\n".join(lines)


def _differences(old: Parsed, new: Parsed) -> list[Difference]:
    match old, new:
        case AvroSchema(), AvroSchema():
            return avro_differences(old, new)
        case JsonSchema(), JsonSchema():
            return json_differences(old, new)
        case ProtobufSchema(), ProtobufSchema():
            return protobuf_differences(old, new)
        case _:
            types = (old.schema.type.value, new.schema.type.value)
            return [Difference("/", Action.CHANGED, "schema type", *types)]


def _join(
    differences: list[Difference], backward: list[Break], forward: list[Break]
) -> list[Change]:
    """Gives each break to the difference nearest to its path; one without any stands alone."""
    places: dict[str, list[int]] = {}
    for index, item in enumerate(differences):
        if item.what not in ("doc", "aliases"):
            for path in _paths(item):
                places.setdefault(path, []).append(index)
    reasons: dict[tuple[int, str], list[str]] = {}
    alone: list[Change] = []
    for direction, found in (("backward", backward), ("forward", forward)):
        for cause in found:
            nearest = _nearest(differences, places, cause, direction)
            for index in nearest:
                reasons.setdefault((index, direction), []).append(cause.reason)
            if not nearest:
                why = {direction: (cause.reason,)}
                alone.append(Change(cause.path, Action.CHANGED, "meaning", **why))
    joined = [
        Change(
            *(item.path, item.action, item.what, item.before, item.after),
            backward=tuple(dict.fromkeys(reasons.get((index, "backward"), ()))),
            forward=tuple(dict.fromkeys(reasons.get((index, "forward"), ()))),
        )
        for index, item in enumerate(differences)
    ]
    return joined + alone


def _nearest(
    differences: list[Difference], places: dict[str, list[int]], found: Break, direction: str
) -> list[int]:
    """The differences at a break's path, or else around it, or else the first inside it."""
    ends = [i for i, char in enumerate(found.path) if char in _ENDS]
    for end in (len(found.path), *reversed(ends)):
        here = places.get(found.path[:end])
        if here:
            likely = [i for i in here if _is_likely(differences[i], direction)]
            # of several, those that the reason names, or all where each is part of the cause
            named = [i for i in likely or here if _value(differences[i]) in found.reason]
            return (named or likely or here[:1])[:_MOST]
    within = tuple(found.path + end for end in _ENDS)
    return next((here[:1] for path, here in places.items() if path.startswith(within)), [])


def _paths(item: Difference) -> list[str]:
    """Where a difference is, in the new schema's terms and in the old one's."""
    if item.action is Action.RENAMED and item.what == "field":
        return [item.path, f"{item.path.rpartition('.')[0]}.{item.before}"]
    return [item.path]


def _is_likely(item: Difference, direction: str) -> bool:
    """Taking a choice away breaks backward, adding one forward; with what is required it turns."""
    added_breaks = direction == ("backward" if item.what == "required" else "forward")
    if item.what not in ("required", "symbol", "type", "enum"):
        return False
    return item.action is (Action.ADDED if added_breaks else Action.REMOVED)


def _value(item: Difference) -> str:
    value = item.before if item.action is Action.REMOVED else item.after
    return value if isinstance(value, str) else json.dumps(value)


def _words(change: Change) -> str:
    match change.action:
        case Action.ADDED:
            return f"{change.what} added: {_show(change.after)}"
        case Action.REMOVED:
            return f"{change.what} removed: {_show(change.before)}"
        case Action.RENAMED:
            return f"{change.what} renamed from {change.before}"
        case Action.CHANGED if change.before is None and change.after is None:
            return f"{change.what} changed"
        case Action.CHANGED:
            return f"{change.what} changed from {_show(change.before)} to {_show(change.after)}"


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."
