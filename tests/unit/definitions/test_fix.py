"""The query that mends records: one SELECT over the quarantine, guarded like any other."""

from __future__ import annotations

import pytest

from mainstem.definitions.fix import read_fix
from mainstem.errors import MainstemError


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SELECT upper(value) AS value", "SELECT upper(value) AS value\nFROM quarantine"),
        ("select value, key from Quarantine;", "select value, key from Quarantine"),
        (
            "SELECT value FROM quarantine q WHERE q._offset > 5",
            "SELECT value FROM quarantine q WHERE q._offset > 5",
        ),
    ],
)
def test_what_is_read(text: str, read: str) -> None:
    assert read_fix(text).text == read


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT reflect('java.lang.System', 'exit', 1) AS value", "FUNCTION_NOT_ALLOWED"),
        ("SELECT value FROM parquet.`/etc`", "SQL_NOT_ALLOWED"),
        ("SELECT value FROM orders", "NOT_SUPPORTED"),
        ("SELECT value WHERE value > ''", "NOT_SUPPORTED"),
        ("SELECT DISTINCT value FROM quarantine", "NOT_SUPPORTED"),
        ("SELECT max(value) AS value FROM quarantine", "NOT_SUPPORTED"),
        ("SELECT (SELECT 1) AS value FROM quarantine", "NOT_SUPPORTED"),
        ("SELECT a.value FROM quarantine a JOIN quarantine b ON true", "NOT_SUPPORTED"),
        ("SELECT value FROM quarantine LIMIT 1", "NOT_SUPPORTED"),
        ("WITH q AS (SELECT 1) SELECT value FROM q", "NOT_SUPPORTED"),
        ("SELECT value FROM quarantine UNION SELECT value FROM quarantine", "NOT_SUPPORTED"),
        ("DROP TABLE x", "SQL_NOT_ALLOWED"),
        ("SELECT 1; SELECT 2", "ONE_STATEMENT_EXPECTED"),
        ("", "ONE_STATEMENT_EXPECTED"),
    ],
)
def test_what_is_refused(text: str, code: str) -> None:
    with pytest.raises(MainstemError) as error:
        read_fix(text)
    assert error.value.code == code
