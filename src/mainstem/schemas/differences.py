"""One difference between two schemas, before it is known whether it breaks anything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """What has happened."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"


@dataclass(frozen=True)
class Difference:
    """Where, what kind of thing (field, type, default, doc, symbol ...), and how it was and is.

    Paths are those of breaks; `before` and `after` can be written as JSON, and are None where
    there is nothing.
    """

    path: str
    action: Action
    what: str
    before: Any = None
    after: Any = None


def compare(path: str, what: str, before: Any, after: Any) -> list[Difference]:
    """The difference of two values, if they differ; None is no value."""
    if before == after and type(before) is type(after):
        return []
    if before is None:
        return [Difference(path, Action.ADDED, what, None, after)]
    if after is None:
        return [Difference(path, Action.REMOVED, what, before, None)]
    return [Difference(path, Action.CHANGED, what, before, after)]
