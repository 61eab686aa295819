"""How long the rows of a closed window stay in a table: which column says when the window ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mainstem.definitions.late import window_steps
from mainstem.definitions.model import Definition, Kind, Lane
from mainstem.definitions.options import milliseconds
from mainstem.definitions.query import reparse


@dataclass(frozen=True, slots=True)
class Expiry:
    """Rows of windows that ended longer ago than `after` (milliseconds) are deleted."""

    after: int
    column: str
    part: str
    """What the column holds of the window: its `start`, its `end`, or all of it: `window`."""
    size: int
    """Length of a window, in milliseconds."""
    step: int
    """How far the watermark goes on until it is worth while to look."""


def expiry_of(definition: Definition, inputs: Sequence[Definition]) -> Expiry | None:
    """For a table of windows with a retention; None for any other object."""
    query, retention = definition.query, definition.retention
    if definition.kind is not Kind.TABLE or query is None or retention in (None, "forever"):
        return None
    if query.python is not None:
        return None
    timed = inputs and all(source.watermark is not None for source in inputs)
    after, steps = milliseconds(retention or ""), window_steps(definition, inputs)
    tree = reparse(query).tree
    if after is None or steps is None or not timed or definition.lane is Lane.REAL_TIME:
        return None
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) > 1:
        return None
    for projection in tree.expressions:
        part = _part(projection.unalias())
        if part is not None:
            step = max(steps.slide, after // 100)
            return Expiry(after, projection.alias_or_name, part, steps.size, step)
    return None


def _part(node: exp.Expr) -> str | None:
    """What an expression of the SELECT list holds of the window."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
        return "window"
    if not isinstance(node, exp.Column):
        return None
    names = [part.name.lower() for part in node.parts]
    return names[-1] if names in (["window"], ["window", "start"], ["window", "end"]) else None
