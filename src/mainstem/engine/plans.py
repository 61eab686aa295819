"""Spark's analysed plans, walked through: nodes, what stands below them, and expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(plan: Any) -> Iterator[Any]:
    """The node and all below it, from the top."""
    yield plan
    for child in each(plan.children()):
        yield from nodes(child)


def each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def name_of(node: Any) -> str:
    """What kind of node or expression it is."""
    return str(node.getClass().getSimpleName())
