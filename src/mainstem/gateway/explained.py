"""The events behind a row: which definitions lead to them, and the tree as a text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

_LONGEST = 200
"""Of a payload, in the text; JSON has all of it."""


def upstream(
    catalog: Catalog, definition: Definition, location: SourceLocation
) -> list[Definition]:
    """The table and all that it is made of; WRONG_KIND, at the place of the question."""
    if definition.kind is not Kind.TABLE:
        raise MainstemError(
            "WRONG_KIND",
            location=location,
            name=definition.name,
            actual=definition.noun,
            expected="table",
            advice="Rows of tables are explained; ask for a table that is made of it.",
        )
    found = {definition.name.lower(): definition}
    waiting = [definition]
    while waiting:
        query = waiting.pop().query
        for name in query.inputs if query is not None else ():
            entry = catalog.get(name)
            if entry is not None and name.lower() not in found:
                found[name.lower()] = entry.definition
                waiting.append(entry.definition)
    return list(found.values())


def row_tree(told: Mapping[str, Any]) -> str:
    """The tree as lines."""
    lines = [_line(told["tree"]), *_below(told["tree"], "")]
    if not told["exact"]:
        lines.append("not exact: see the notes marked with !")
    return "\n".join(lines)


def _line(node: Mapping[str, Any]) -> str:
    payload = json.dumps(node["payload"], ensure_ascii=False)
    if len(payload) > _LONGEST:
        payload = payload[:_LONGEST] + "..."
    schema = "" if node["schema_id"] is None else f"  schema {node['schema_id']}"
    place = f"{node['topic']} {node['partition']}:{node['offset']}"
    return f"{node['object']} ({node['kind']})  {place}  {node['time']}{schema}  {payload}"


def _below(node: Mapping[str, Any], margin: str) -> Iterator[str]:
    inputs: Sequence[Mapping[str, Any]] = node["inputs"]
    if node["note"] is not None:
        yield f"{margin}{'│' if inputs else ' '}  ! {node['note']}"
    for index, child in enumerate(inputs):
        last = index == len(inputs) - 1
        yield f"{margin}{'└─ ' if last else '├─ '}{_line(child)}"
        yield from _below(child, margin + ("   " if last else "│  "))
