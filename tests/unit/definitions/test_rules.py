"""Rules and tags in the brackets of a definition."""

from __future__ import annotations

import pytest

from mainstem.definitions.model import Definition, OnViolation
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


def test_all_forms_of_a_rule() -> None:
    found = made("""
        CREATE STREAM orders (
          id STRING NOT NULL, amount DECIMAL(10,2) NOT NULL ON VIOLATION fail CHECK (amount > 0),
          email STRING PII CONSTRAINT mail CHECK (email LIKE '%@%') ON VIOLATION DROP, qty INT,
          CONSTRAINT sane CHECK (qty < 1000), EXPECT positive (qty > (1 - 1)) ON VIOLATION drop,
          EXPECT (qty <> 7) ON VIOLATION QUARANTINE, CHECK (qty <> 8),
          CONSTRAINT dlt EXPECT (qty <> 9) ON VIOLATION FAIL UPDATE,
          CONSTRAINT row_of_dlt EXPECT (qty <> 9) ON VIOLATION DROP ROW
        ) WITH (topic = 'o')""")
    assert [(r.name, r.shown, r.action.value) for r in found.rules] == [
        ("id_not_null", "`id` IS NOT NULL", "quarantine"),
        ("amount_not_null", "`amount` IS NOT NULL", "fail"),
        ("amount_check", "amount > 0", "quarantine"),
        ("mail", "email LIKE '%@%'", "drop"),
        ("sane", "qty < 1000", "quarantine"),
        ("positive", "qty > (1 - 1)", "drop"),
        ("check", "qty <> 7", "quarantine"),
        ("check_2", "qty <> 8", "quarantine"),
        ("dlt", "qty <> 9", "fail"),
        ("row_of_dlt", "qty <> 9", "drop"),
    ]
    assert found.pii == ("email",)
    assert [c.name for c in found.columns] == ["id", "amount", "email", "qty"]


def test_the_words_may_be_names_of_columns() -> None:
    found = made(
        "CREATE STREAM s (constraint STRING, check STRING, expect DECIMAL(3, 1), pii STRING PII)"
    )
    assert [c.name for c in found.columns] == ["constraint", "check", "expect", "pii"]
    assert (found.rules, found.pii) == ((), ("pii",))


def test_a_condition_knows_its_place_and_loses_its_comments_when_shown() -> None:
    [rule] = made("CREATE STREAM s (a INT CHECK (\n  a > 0 -- more\n  AND a < 9))").rules
    assert (rule.condition.location.line, rule.condition.location.column) == (2, 3 - len("SELECT "))
    assert rule.shown == "a > 0 AND a < 9"
    assert rule.action is OnViolation.QUARANTINE


@pytest.mark.parametrize(
    ("code", "place", "body"),
    [
        ("NOT_SUPPORTED", (2, 10), "a INT,\n  CHECK (sum(a) > 0)"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (a > (SELECT 1))"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (exists(SELECT 1))"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (row_number() OVER (ORDER BY a) > 1)"),
        ("NOT_SUPPORTED", (1, 35), "a INT CHECK (a > now())"),
        ("NOT_SUPPORTED", (1, 35), "a INT CHECK (a > unix_timestamp())"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (_offset > 3)"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (1 = 1)"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (a > 0, a > 1)"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (a > 0 AS b)"),
        ("NOT_SUPPORTED", (1, 31), "a INT CHECK (a > 0 FROM x)"),
        ("FUNCTION_NOT_ALLOWED", (1, 35), "a INT CHECK (a > rand())"),
        ("FUNCTION_NOT_ALLOWED", (2, 2), "a INT CHECK (\n reflect('x', a))"),
        ("INVALID_RULE", (1, 46), "a INT CHECK (a > 0), EXPECT A_CHECK (a > 1)"),
        ("INVALID_RULE", (1, 51), "a INT CHECK (a > 0) ON VIOLATION quarantin"),
        ("SQL_SYNTAX", (1, 51), "a INT CHECK (a > 0) ON VIOLATION 'drop'"),
        ("SQL_SYNTAX", (1, 31), "a INT CHECK ()"),
        ("SQL_SYNTAX", (1, 34), "a INT CHECK (a > )"),
        ("SQL_SYNTAX", (1, 28), "a INT PII PII"),
        ("SQL_SYNTAX", (1, 18), "a NOT NULL"),
        ("NOT_SUPPORTED", (1, 24), "a INT DEFAULT 3"),
    ],
)
def test_refused_at_its_place(code: str, place: tuple[int, int], body: str) -> None:
    with pytest.raises(MainstemError) as caught:
        parse_one(f"CREATE STREAM s (a0 INT, {body})".replace("a0 INT, ", ""))
    assert caught.value.code == code
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == place
    assert caught.value.hint


def test_a_misspelt_action_has_a_suggestion() -> None:
    with pytest.raises(MainstemError) as caught:
        parse_one("CREATE STREAM s (a INT CHECK (a > 0) ON VIOLATION dropp)")
    assert 'Did you mean "drop"?' in caught.value.hint


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_columns_of_a_query_have_rules_without_types(kind: str) -> None:
    found = made(f"""CREATE {kind} t (
        id NOT NULL ON VIOLATION drop, n CONSTRAINT few CHECK (n < 9) CHECK (n > 0), CHECK (id > 0)
        ) WITH (key = 'id') AS SELECT id, n FROM s""")
    assert [(r.name, r.action.value) for r in found.rules] == [
        ("id_not_null", "drop"),
        ("few", "quarantine"),
        ("n_check", "quarantine"),
        ("check", "quarantine"),
    ]
    assert found.columns == ()


def test_a_table_may_have_tags() -> None:
    assert made("CREATE TABLE t (a INT PRIMARY KEY, b STRING PII)").pii == ("b",)
