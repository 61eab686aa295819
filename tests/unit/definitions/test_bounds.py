"""What a query's conditions on metadata columns say of the records that it can see."""

from __future__ import annotations

import pytest

from mainstem.definitions.bounds import bounds
from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one


def told(text: str) -> dict[str, list[list[str]]]:
    select = parse_one(text)
    assert isinstance(select, Select)
    found = bounds(select.query)
    return {name: [[str(b) for b in mention] for mention in m] for name, m in found.items()}


def of_s(condition: str) -> list[str]:
    mentions = told(f"SELECT * FROM s WHERE {condition}").get("s", [[]])
    assert len(mentions) == 1
    return mentions[0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("_offset >= 5", ["_offset >= 5"]),
        ("_offset = 5 AND n > 1", ["_offset = 5"]),
        ("n > 1 AND (s._OFFSET < 10 AND 3 < _offset)", ["_offset < 10", "_offset > 3"]),
        ("`_offset` == 7", ["_offset = 7"]),
        ("(5 + 1 <= s._offset)", ["_offset >= 5 + 1"]),
        ("_offset BETWEEN 1 AND 2 + 3 AND n = 1", ["_offset >= 1", "_offset <= 2 + 3"]),
        ("_partition = 0 LIMIT 3", ["_partition = 0"]),
        ("_offset > -(1) GROUP BY k", ["_offset > -(1)"]),
        ("_timestamp >= '2026-01-01'", ["_timestamp >= '2026-01-01'"]),
        (
            "_timestamp > current_timestamp() - INTERVAL 1 HOUR /* so */ ORDER BY n",
            ["_timestamp > current_timestamp() - INTERVAL 1 HOUR"],
        ),
        (
            "_timestamp BETWEEN TIMESTAMP '2026-01-01 00:00:00' AND date_sub(now(), 1)",
            ["_timestamp >= TIMESTAMP '2026-01-01 00:00:00'", "_timestamp <= date_sub(now(), 1)"],
        ),
        ("_timestamp >= date_trunc('DAY', now())", ["_timestamp >= date_trunc('DAY', now())"]),
    ],
)
def test_conditions_that_every_row_meets(condition: str, expected: list[str]) -> None:
    assert of_s(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "_offset >= 5 OR n > 1",
        "NOT _offset >= 5",
        "NOT (_offset >= 5)",
        "_offset NOT BETWEEN 1 AND 2",
        "_offset <> 5",
        "_offset <=> 5",
        "_offset + 1 >= 5",
        "_offset >= n",
        "_offset >= n - 1",
        "_offset >= 5 * 2",
        "_offset >= rand()",
        "_offset >= (SELECT max(_offset) FROM s) - 5",
        "_offset IS NOT NULL",
        "(_offset >= 5) = false",
        "_offset >= 5 = true",
        "CASE WHEN true THEN _offset >= 5 END",
        "r._offset >= 5",
        "_timestamp >= TIMESTAMP '2026-01-01' - (now() - TIMESTAMP '2026-01-01')",
        "_timestamp >= TIMESTAMP '2030-01-01' - now()",
        "_key >= '5'",
        "EXISTS (SELECT 1 FROM s AS x WHERE s._offset >= 5)",
    ],
)
def test_conditions_that_say_nothing(condition: str) -> None:
    mentions = told(f"SELECT * FROM s WHERE {condition}")
    assert "s" not in mentions


def test_a_stream_is_bounded_when_each_mention_of_it_is() -> None:
    one = "SELECT n FROM s WHERE _offset > 5"
    assert told(f"{one} UNION ALL SELECT n FROM s WHERE _offset < 2") == {
        "s": [["_offset > 5"], ["_offset < 2"]]
    }
    assert told(f"{one} UNION ALL SELECT n FROM s") == {}
    assert told(f"WITH c AS ({one}) SELECT * FROM c") == {"s": [["_offset > 5"]]}
    assert told("WITH c AS (SELECT n, 1 AS _offset FROM s) SELECT * FROM c WHERE _offset > 5") == {}


def test_a_join_needs_the_name_of_the_stream() -> None:
    text = "SELECT a.n FROM s AS a LEFT JOIN t ON a.n = t.n WHERE a._offset > 5 AND {}"
    assert told(text.format("t._offset < 3")) == {"s": [["_offset > 5"]], "t": [["_offset < 3"]]}
    assert told(text.format("_offset < 3")) == {"s": [["_offset > 5"]]}
    assert told("SELECT a.n FROM s AS a JOIN s AS b ON a.n = b.n WHERE a._offset > 5") == {}


def test_a_condition_of_a_join_is_not_one_of_the_result() -> None:
    assert told("SELECT s.n FROM s LEFT JOIN t ON s.n = t.n AND s._offset > 5") == {}
