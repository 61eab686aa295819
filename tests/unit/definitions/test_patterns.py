"""Which topics a pattern stands for, what its named parts are, and which patterns are refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.definitions.patterns import is_pattern, parse_pattern
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column


def definition(sql: str) -> Definition:
    statement = parse_one(sql)
    assert isinstance(statement, Create)
    return statement.definition


def refused(sql: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        parse_one(sql)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("nyc.*", ["nyc.red", "nyc.x-1_y"], ["nyc", "nyc.red.chat", "xnyc.red", "nyc.", "NYC.red"]),
        ("nyc.**", ["nyc.red", "nyc.red.chat"], ["nyc", "nycx.red", "ny.nyc.red"]),
        ("*.*.chat", ["nyc.red.chat"], ["nyc.chat", "a.b.c.chat", "nyc.red.chats", "a.b.xchat"]),
        ("**.loot", ["nyc.loot", "nyc.red.loot"], ["loot", "nyc.loot.x", "nycloot"]),
        ("{city}.*.chat", ["nyc.red.chat"], ["nyc.chat"]),
        ("a-b.*", ["a-b.c"], ["aXb.c", "a.b.c"]),
        ("**", ["a", "a.b", "_mine"], ["_mainstem.catalog", "__consumer_offsets", "_mainstem"]),
        ("*.*", ["a.b"], ["_mainstem.catalog", "__a.b", "a..b"]),
    ],
)
def test_which_topics_match(pattern: str, matching: list[str], others: list[str]) -> None:
    made = parse_pattern(pattern)
    assert [topic for topic in matching + others if made.matches(topic)] == matching
    # Spark searches for the expression
    assert [t for t in matching + others if re.search(made.regex, t)] == matching


_PART = st.from_regex(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,5}", fullmatch=True)


@given(st.lists(_PART, min_size=1, max_size=5), st.data())
def test_a_topic_matches_itself_with_any_part_left_open(parts: list[str], data: st.DataObject):
    at = data.draw(st.integers(0, len(parts) - 1))
    wild = data.draw(st.sampled_from(["*", "**", "{x}"]))
    pattern = parse_pattern(".".join([*parts[:at], wild, *parts[at + 1 :]]))
    assert pattern.matches(".".join(parts))
    assert pattern.matches(".".join([*parts, "more"])) == (at == len(parts) - 1 and wild == "**")


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("{city}.{group}.chat", {"city": 1, "group": 2}),
        ("*.{group}.**", {"group": 2}),
        ("**.{group}.chat", {"group": -2}),
        ("{first}.**.{last}", {"first": 1, "last": -1}),
        ("nyc.*", {}),
    ],
)
def test_places_of_named_parts(pattern: str, places: dict[str, int]) -> None:
    assert parse_pattern(pattern).places == places


def test_named_parts_are_leading_columns() -> None:
    made = definition(
        "CREATE STREAM chat FROM TOPICS '{city}.{group}.chat' (player STRING, n INT)"
        " WITH (key = 'player', comment = 'all talk')"
    )
    assert [c.name for c in made.columns] == ["city", "group", "player", "n"]
    assert made.columns[0] == Column("city", "string")
    assert [c.name for c in made.value_columns] == ["player", "n"]
    assert (made.topic, made.key) == ("{city}.{group}.chat", ("player",))
    assert made.reads("nyc.red.chat")
    assert not made.reads("nyc.chat")


def test_other_streams_have_no_pattern() -> None:
    made = definition("CREATE STREAM chat (text STRING) WITH (topic = 'nyc.chat')")
    assert made.pattern is None
    assert made.value_columns == made.columns
    assert made.reads("nyc.chat")
    assert not is_pattern("nyc.red_1-x.chat")


@pytest.mark.parametrize(
    ("pattern", "column"),
    [
        ("", 32),
        ("nyc.chat", 32),
        ("nyc..*", 36),
        (".*", 32),
        ("*.", 34),
        ("nyc*", 32),
        ("a.***", 34),
        ("a.b*.c", 34),
        ("a.{b", 34),
        ("a.{b}c", 34),
        ("a.{}", 34),
        ("*.a b", 34),
        ("*.ä", 34),
        ("*.[a-z]+", 34),
        ("{a}.{A}", 36),
        ("**.{a}.**", 35),
        ("__x.*", 32),
        ("_mainstem.*", 32),
    ],
)
def test_bad_patterns_are_refused_at_their_place(pattern: str, column: int) -> None:
    error = refused(f"CREATE STREAM chat FROM TOPICS '{pattern}' (text STRING)")
    assert error.code == "BAD_TOPIC_PATTERN"
    assert error.location is not None
    assert (error.location.line, error.location.column) == (1, column + 1)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE STREAM s FROM TOPICS '*.a'", "SQL_SYNTAX"),
        ("CREATE STREAM s FROM TOPICS (a INT)", "SQL_SYNTAX"),
        ("CREATE STREAM s FROM '*.a' (a INT)", "SQL_SYNTAX"),
        ("CREATE TABLE s FROM TOPICS '*.a' (a INT PRIMARY KEY)", "NOT_SUPPORTED"),
        ("CREATE STREAM s FROM TOPICS '*.a' (a INT) AS SELECT 1", "NOT_SUPPORTED"),
        ("CREATE STREAM s FROM TOPICS '{a}.b' (a INT)", "DUPLICATE_COLUMN"),
        ("CREATE STREAM s FROM TOPICS '{_key}.b' (a INT)", "RESERVED_NAME"),
        ("CREATE STREAM s FROM TOPICS '*.a' (a INT) WITH (topic = 'x')", "UNKNOWN_OPTION"),
        ("CREATE STREAM s FROM TOPICS '*.a' (a INT) WITH (partitions = 2)", "UNKNOWN_OPTION"),
        ("CREATE STREAM s FROM TOPICS '*.a' (a INT) WITH (key = 'b')", "KEY_NOT_A_COLUMN"),
    ],
)
def test_what_a_wildcard_stream_cannot_be(sql: str, code: str) -> None:
    assert refused(sql).code == code
