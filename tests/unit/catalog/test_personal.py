"""Personal data, followed from tagged columns through plain copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.catalog.personal import personal
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse
from mainstem.vocabulary import Column

PEOPLE = "CREATE STREAM people (id INT, email STRING PII, home STRUCT<street: STRING> PII);"


def catalog(sql: str, columns: str) -> Catalog:
    """All derived objects have these columns, as the engine would tell."""
    entries = {}
    for statement in parse(sql):
        definition: Definition = statement.definition  # type: ignore[union-attr]
        if definition.derived:
            found = tuple(Column(name, "string") for name in columns.split())
            definition = replace(definition, columns=found)
        entries[definition.name.lower()] = Entry(definition, "f")
    return Catalog(entries)


@pytest.mark.parametrize(
    ("query", "columns", "expected"),
    [
        ("SELECT * FROM people", "id email home", {"email", "home"}),
        ("SELECT * EXCEPT (email) FROM people", "id home", {"home"}),
        ("SELECT p.Email AS contact, id FROM people p", "contact id", {"contact"}),
        ("SELECT CAST((email) AS BINARY) AS b FROM people", "b", {"b"}),
        ("SELECT home.street FROM people", "street", {"street"}),
        ("SELECT p.home.street FROM people p", "street", {"street"}),
        ("SELECT x.mail FROM (SELECT email AS mail FROM people) x", "mail", {"mail"}),
        ("WITH c AS (SELECT * FROM people) SELECT c.* FROM c", "id email home", {"email", "home"}),
        ("SELECT id AS a FROM people UNION ALL SELECT email FROM people", "a", {"a"}),
        ("SELECT email, count(*) AS n FROM people GROUP BY email", "email n", {"email"}),
        ("SELECT lower(email) AS l, id FROM people", "l id", set()),
        ("SELECT count(email) AS n FROM people", "n", set()),
    ],
)
def test_plain_copies_are_followed(query: str, columns: str, expected: set[str]) -> None:
    found = personal(catalog(f"{PEOPLE} CREATE STREAM s AS {query};", columns))
    assert set(found.get("s", {})) == expected
    assert found["people"] == {"email": "people.email", "home": "people.home"}


def test_a_copy_of_a_copy_names_the_tagged_column() -> None:
    first = "CREATE STREAM a AS SELECT email AS mail FROM people;"
    second = "CREATE STREAM b AS SELECT mail FROM a;"
    assert personal(catalog(second + first + PEOPLE, "mail"))["b"] == {"mail": "people.email"}


def test_without_tags_nothing_is_personal() -> None:
    assert personal(catalog(PEOPLE.replace(" PII", ""), "")) == {}
