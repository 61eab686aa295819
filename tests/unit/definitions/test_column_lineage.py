"""What the columns of a query are made of."""

from __future__ import annotations

import pytest

from mainstem.definitions.column_lineage import column_origins
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse

KNOWN = """
CREATE STREAM o (id INT, p STRING, q STRING, at TIMESTAMP, a INT,
                 items ARRAY<STRUCT<x: INT>>, home STRUCT<street: STRING>);
CREATE STREAM u (id INT, z INT);
"""


def definitions(sql: str) -> list[Definition]:
    return [statement.definition for statement in parse(sql)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # a name with = in front is a plain copy
        ("SELECT id AS i, p FROM o", {"i": "=o.id", "p": "=o.p"}),
        ("SELECT CAST((id) AS STRING) AS i FROM u", {"i": "=u.id"}),
        ("SELECT o1.home.street FROM o o1", {"street": "=o.home"}),
        ("SELECT a + z AS s FROM o JOIN u ON o.id = u.id", {"s": "o.a u.z"}),
        ("SELECT * FROM u", {"id": "=u.id", "z": "=u.z"}),
        ("SELECT u.* EXCEPT (z), q FROM u JOIN o ON u.id = o.id", {"id": "=u.id", "q": "=o.q"}),
        ("SELECT id, z FROM u JOIN o USING (id)", {"id": "=o.id =u.id", "z": "=u.z"}),
        ("SELECT * FROM u LEFT SEMI JOIN o ON u.id = o.id", {"id": "=u.id", "z": "=u.z"}),
        ("SELECT p AS x FROM o UNION ALL SELECT lower(q) FROM o", {"x": "=o.p o.q"}),
        (
            "WITH c(k, v) AS (SELECT id, z FROM u) SELECT k, -v AS w FROM c",
            {"k": "=u.id", "w": "u.z"},
        ),
        ("SELECT t.k FROM (SELECT id, z FROM u) AS t(k, l)", {"k": "=u.id"}),
        ("SELECT a + 1 AS b, b * 2 AS c FROM o", {"b": "o.a", "c": "o.a"}),
        (
            "SELECT p, count(*) AS n, sum(a) AS s FROM o GROUP BY p",
            {"p": "=o.p", "n": "", "s": "o.a"},
        ),
        ("SELECT window.start AS s FROM o GROUP BY window(at, '1 minute')", {"s": "o.at"}),
        ("SELECT session_window.end AS e FROM o GROUP BY session_window(at, '1 m')", {"e": "o.at"}),
        ("SELECT i.x FROM o LATERAL VIEW explode(items) t AS i", {"x": "o.items"}),
        ("SELECT transform(items, i -> i.x + a) AS t FROM o", {"t": "o.a o.items"}),
        ("SELECT to_json(struct(*)) AS j FROM u", {"j": "u.id u.z"}),
        ("SELECT (SELECT max(z) FROM u) + a AS m FROM o", {"m": "o.a u.z"}),
        ("SELECT _timestamp AS t, 1 AS one FROM u", {"t": "=u._timestamp", "one": ""}),
        ("SELECT p FROM o WHERE q = 'x'", {"p": "=o.p"}),
    ],
)
def test_what_a_column_is_made_of(query: str, expected: dict[str, str]) -> None:
    known = {definition.name: definition for definition in definitions(KNOWN)}
    found = column_origins(definitions(f"CREATE STREAM s AS {query};")[0], known)
    assert found is not None
    assert {
        name: " ".join(
            sorted(("=" if copied else "") + ".".join(place) for place, copied in origins.items())
        )
        for name, origins in found.items()
    } == expected


def test_what_is_declared_is_made_of_nothing() -> None:
    assert column_origins(definitions(KNOWN)[0], {}) is None
