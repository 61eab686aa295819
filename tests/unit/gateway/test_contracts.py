"""What lists of records show of personal data, and what EXPLAIN says of rules."""

from __future__ import annotations

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse
from mainstem.gateway.contracts import Hidden, explained_rules, hidden

SQL = """
CREATE STREAM orders (id STRING, email STRING PII) WITH (key = 'id');
CREATE STREAM people (email STRING PII) WITH (key = 'email');
CREATE STREAM open (id STRING);
"""


@pytest.fixture
def catalog() -> Catalog:
    entries = [Entry(s.definition, "f") for s in parse(SQL) if isinstance(s, Create)]
    return Catalog({entry.name: entry for entry in entries})


def test_only_what_is_tagged_is_masked(catalog: Catalog) -> None:
    found = hidden(catalog)
    assert found == {
        "orders": Hidden(frozenset({"email"})),
        "people": Hidden(frozenset({"email"}), key=True),
    }
    assert found["orders"].of_key(b"7") == b"7"
    assert found["people"].of_key(b"a@b.c") == b"***"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b'{"id": 7, "Email": "a@b.c"}', b'{"id":7,"Email":"***"}'),
        (b'{"id": 7, "email": null}', b'{"id":7,"email":null}'),
        (b'{"id": 7, "email": "a@b', b"***"),
        (b"[1]", b"***"),
        (b"\xff", b"***"),
        (None, None),
    ],
)
def test_a_value_that_cannot_be_read_is_masked_as_a_whole(
    value: bytes | None, shown: bytes | None
) -> None:
    assert Hidden(frozenset({"email"})).of_value(value) == shown
    assert Hidden().of_value(value) == value


@pytest.mark.parametrize(
    ("made", "from_table", "word"),
    [
        ("SELECT id, count(*) AS n FROM s GROUP BY id", False, "until"),
        ("SELECT id, n FROM s", True, "until"),
        ("SELECT id, n FROM s", False, "as it was"),
    ],
)
def test_what_a_rule_means_for_rows_that_are_there(made: str, from_table: bool, word: str) -> None:
    source = "TABLE s (id INT PRIMARY KEY, n INT)" if from_table else "STREAM s (id INT, n INT)"
    text = f"CREATE {source}; CREATE TABLE t (n CHECK (n > 0)) WITH (key = 'id') AS {made}"
    [read, table] = [s.definition for s in parse(text) if isinstance(s, Create)]
    rule, meaning = explained_rules(table, [read], lambda name: {"n_check": 1})
    assert rule == "rule n_check: n > 0, else quarantine; broken by 1 record"
    assert word in meaning
