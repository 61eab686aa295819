"""The events behind a row as text, and the definitions that lead to them."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.gateway.explained import row_tree, upstream

SQL = """
CREATE STREAM s (id INT);
CREATE STREAM other (id INT);
CREATE TABLE people (id INT PRIMARY KEY);
CREATE STREAM a AS SELECT s.id FROM s JOIN people p ON s.id = p.id;
CREATE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id;
"""


def node(name: str, *inputs: Any, note: str | None = None, id: int | None = None) -> dict[str, Any]:
    return {
        "object": name,
        "kind": "stream",
        "topic": f"topic.{name}",
        "partition": 0,
        "offset": 7,
        "time": "2026-01-31T12:00:00.000Z",
        "schema_id": id,
        "payload": {"id": 1},
        "note": note,
        "inputs": list(inputs),
    }


def test_the_tree_as_text() -> None:
    tree = node("t", node("a", node("s", id=3), node("people")), node("b", note="cut"))
    when = "2026-01-31T12:00:00.000Z"
    assert row_tree({"tree": tree, "exact": False}).splitlines() == [
        f't (stream)  topic.t 0:7  {when}  {{"id": 1}}',
        f'├─ a (stream)  topic.a 0:7  {when}  {{"id": 1}}',
        f'│  ├─ s (stream)  topic.s 0:7  {when}  schema 3  {{"id": 1}}',
        f'│  └─ people (stream)  topic.people 0:7  {when}  {{"id": 1}}',
        f'└─ b (stream)  topic.b 0:7  {when}  {{"id": 1}}',
        "      ! cut",
        "not exact: see the notes marked with !",
    ]


def test_all_that_a_table_is_made_of() -> None:
    definitions = load_definitions([("case.sql", SQL)])
    catalog = Catalog({d.name: Entry(d, "f") for d in definitions})
    place = definitions[0].location
    known = {d.name: d for d in definitions}
    assert {d.name for d in upstream(catalog, known["t"], place)} == {"t", "a", "s", "people"}
    with pytest.raises(MainstemError) as raised:
        upstream(catalog, known["a"], place)
    assert raised.value.code == "WRONG_KIND"
