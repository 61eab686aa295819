"""CREATE SOURCE and CREATE SINK as text."""

import pytest

from mainstem.definitions.connections import option_place
from mainstem.definitions.model import (
    Connection,
    Create,
    Describe,
    DescribeConnector,
    Drop,
    Kind,
    Listing,
    Show,
)
from mainstem.definitions.parse import parse, parse_one
from mainstem.definitions.places import place_of
from mainstem.definitions.resolve import classify, order
from mainstem.errors import MainstemError

SOURCE = """
-- ours
CREATE SOURCE shop WITH (
    connector = 'postgres-cdc', url = '${env:URL}',
    tables = 'public.orders', comment = 'the shop''s'
);"""
SINK = """CREATE STREAM orders (id INT);
CREATE OR REPLACE SINK IF NOT EXISTS `out`
  FROM orders WITH (connector = 'files', folder = '/x', "trigger" = '1 minute', start = 'latest');
"""


def failure(text):
    with pytest.raises(MainstemError) as caught:
        parse(text, "p.sql")
    return caught.value


def test_a_source_is_its_connector_and_options():
    [statement] = parse(SOURCE, "p.sql")
    source = statement.definition
    assert (source.name, source.kind, source.topic, source.derived) == (
        "shop",
        Kind.SOURCE,
        "",
        False,
    )
    options = (("url", "${env:URL}"), ("tables", "public.orders"))
    assert source.captures == Connection("postgres-cdc", options)
    assert source.comment == "the shop's"
    assert str(source.location) == "p.sql:3:1"


def test_a_sink_reads_one_object():
    text = SINK.replace('"trigger"', "trigger")
    _, statement = parse(text, "p.sql")
    assert (statement.or_replace, statement.if_not_exists) == (True, True)
    sink = statement.definition
    assert (sink.name, sink.kind, sink.topic) == ("out", Kind.STREAM, "out")
    assert (sink.is_sink, sink.noun) == (True, "sink")
    assert sink.target == Connection("files", (("folder", "/x"),))
    assert (sink.trigger, sink.start) == ("1 minute", "latest")
    assert sink.query.inputs == ("orders",)
    place = place_of(sink.query, "orders")
    assert str(place) == "p.sql:3:8"
    assert place.snippet.startswith("  FROM orders")


def test_options_have_their_places():
    [statement] = parse(SOURCE, "p.sql")
    source = statement.definition
    assert str(option_place(source, "url", value=False)) == "p.sql:4:33"
    assert str(option_place(source, "tables", value=True)) == "p.sql:5:14"
    assert str(option_place(source, "other", value=True)) == "p.sql:3:1"
    [statement] = parse("  CREATE SOURCE s WITH (connector = 'c', a = 1);", "p.sql")
    assert str(option_place(statement.definition, "a", value=True)) == "p.sql:1:46"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("CREATE SOURCE s", "SQL_SYNTAX", "1:16"),
        ("CREATE SOURCE s WITH (a = 'b')", "MISSING_OPTION", "1:1"),
        ("CREATE SOURCE s (id INT) WITH (connector = 'c')", "SQL_SYNTAX", "1:17"),
        ("CREATE SOURCE s WITH (connector = 'c') AS SELECT 1", "SQL_SYNTAX", "1:40"),
        ("CREATE SOURCE _s WITH (connector = 'c')", "RESERVED_NAME", "1:15"),
        ("CREATE SINK s WITH (connector = 'c')", "SQL_SYNTAX", "1:15"),
        ("CREATE SINK s FROM a.b.c WITH (connector = 'c')", "INVALID_NAME", "1:20"),
        ("CREATE SINK s FROM a WITH (connector = 'c', start = 'now')", "INVALID_OPTION", "1:53"),
        ("CREATE SINK s FROM a", "SQL_SYNTAX", "1:21"),
        ("CREATE SNK s FROM a WITH (connector = 'c')", "SQL_SYNTAX", "1:8"),
        ("DESCRIBE CONNECTOR 'a' b", "SQL_SYNTAX", "1:24"),
        ("CREATE STREAM s (id INT) WITH (format = 'debezium')", "INVALID_OPTION", "1:41"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(text, code, place):
    error = failure(text)
    assert (error.code, str(error.location)) == (code, f"p.sql:{place}")


def test_the_other_statements():
    gone = parse_one("DROP SOURCE IF EXISTS shop CASCADE")
    assert gone == Drop("shop", gone.location, Kind.SOURCE, if_exists=True, cascade=True)
    dropped = parse_one("DROP SINK out")
    assert (dropped.kind, dropped.sink, dropped.wanted) == (Kind.STREAM, True, "sink")
    assert [parse_one(f"SHOW {w}").what for w in ("SOURCES", "SINKS", "CONNECTORS")] == [
        Listing.SOURCES,
        Listing.SINKS,
        Listing.CONNECTORS,
    ]
    assert isinstance(parse_one("SHOW sources"), Show)
    described = parse_one("DESCRIBE CONNECTOR 'postgres-cdc'")
    assert (type(described), described.name) == (DescribeConnector, "postgres-cdc")
    # a stream may be called so
    assert isinstance(parse_one("DESCRIBE connector"), Describe)


def test_nothing_reads_a_source_itself():
    [made] = parse(SOURCE)
    source = made.definition
    [reader] = parse("CREATE STREAM x AS SELECT *\nFROM shop")
    for call in (
        lambda: order([source, reader.definition], {}),
        lambda: classify(parse_one("SELECT * FROM shop"), {"shop": source}.get),
    ):
        with pytest.raises(MainstemError) as caught:
            call()
        assert caught.value.code == "WRONG_KIND"


@pytest.mark.parametrize(
    ("written", "start"),
    [
        ("latest", "latest"),
        ("EARLIEST", "earliest"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
    ],
)
def test_where_a_sink_begins(written: str, start: str) -> None:
    statement = parse_one(
        f"CREATE SINK out FROM s WITH (connector = 'files', folder = '/x', start = '{written}')"
    )
    assert isinstance(statement, Create)
    assert statement.definition.start == start
    assert statement.definition.target == Connection("files", (("folder", "/x"),))
