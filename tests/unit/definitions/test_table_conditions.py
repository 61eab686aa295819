"""Rules of tables: what PostgreSQL is told, and what it could not judge as Spark does."""

from __future__ import annotations

import pytest

from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.definitions.table_conditions import postgres_condition
from mainstem.errors import MainstemError

COLUMNS = """K STRING PRIMARY KEY, n INT, price DECIMAL(5,2), s STRING, ok BOOLEAN, d DATE,
    at TIMESTAMP, local TIMESTAMP_NTZ, tags ARRAY<INT>"""


def made(condition: str) -> Definition:
    text = f"CREATE TABLE t ({COLUMNS}, CHECK ({condition}))"
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("k = 'it\\'s'", """("K" COLLATE "C" = 'it''s')"""),
        ("n IN (1, -2)", '(("n" = 1) OR ("n" = (-2)))'),
        ("NOT n NOT BETWEEN 1 AND 2", '(NOT (NOT (("n" >= 1) AND ("n" <= 2))))'),
        ("s NOT LIKE '%x' OR ok", """(("s" COLLATE "C" NOT LIKE '%x') OR "ok")"""),
        ("n <=> price", '("n" IS NOT DISTINCT FROM "price")'),
        ("d > '2026-01-01'", """("d" > DATE '2026-01-01')"""),
        ("at > '2026-01-01'", """("at" > timestamptz '2026-01-01 00:00:00+00')"""),
        ("local > '2026-01-01T10:00:00'", """("local" > timestamp '2026-01-01 10:00:00')"""),
        ("d = DATE '2026-01-01'", """("d" = DATE '2026-01-01')"""),
        ("tags IS NOT NULL AND char_length(s) > 0",
         """((NOT ("tags" IS NULL)) AND (length("s" COLLATE "C") > 0))"""),
    ],
)  # fmt: skip
def test_in_the_words_of_postgres(condition: str, told: str) -> None:
    definition = made(condition)
    assert postgres_condition(definition.rules[0], definition.columns) == told


@pytest.mark.parametrize(
    "condition",
    [
        "n + 1 > 2",  # another type, another overflow
        "upper(s) = 'A'",  # by the locale
        "s RLIKE 'a'",
        "s ILIKE 'a'",
        r"s LIKE 'a\\_b'",
        "s LIKE 'a!_b' ESCAPE '!'",
        "s LIKE ANY ('a', 'b')",
        "s LIKE k",
        "s > 3",  # Spark makes a number of the text
        "n = '3'",
        "n = 1e2",
        "n > ok",
        "tags = tags",
        "s = NULL",
        "d > '2026-01-01 10:00:00'",
        "at > 'now'",
        "at > '2026-02-30'",
        "at > local",
        "k.n > 1",
        "coalesce(n, 0) > 1",
        "n",
    ],
)
def test_what_is_not_computed_alike_is_refused(condition: str) -> None:
    with pytest.raises(MainstemError) as caught:
        made(condition)
    assert caught.value.code == "NOT_SUPPORTED"
    assert "declare a stream" in caught.value.hint
    assert caught.value.location is not None


def test_columns_that_are_not_there_are_left_to_spark() -> None:
    assert made("m > 0").rules[0].name == "check"
