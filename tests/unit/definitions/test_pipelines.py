"""`@stream` and `@table` functions, read from their source text."""

import pytest

from mainstem import sink, stream, table
from mainstem.definitions.model import Definition, Flavour, Kind
from mainstem.definitions.project import load_definitions
from mainstem.definitions.sinks import RECEIPTS
from mainstem.errors import MainstemError

HEAD = """\
from mainstem import sink, stream, table
from pyspark.sql import DataFrame, functions as F

LEAST = 100

"""
BIG = "def big(orders: DataFrame) -> DataFrame:\n    return orders.where(F.col('n') > LEAST)\n"
ORDERS = "CREATE STREAM orders (id INT, n INT);"


def read(text: str) -> list[Definition]:
    return load_definitions([("pipeline/p.py", HEAD + text)])


def version(text: str) -> str:
    [found] = read(text)
    assert found.query is not None and found.query.python is not None
    return found.query.canonical


def test_a_function_is_a_definition_with_a_body_in_python() -> None:
    [found] = read("@stream\n" + BIG)
    assert (found.name, found.kind, found.topic) == ("big", Kind.STREAM, "big")
    assert str(found.location) == "pipeline/p.py:7:1"
    query = found.query
    assert query is not None and query.python is not None
    assert (query.inputs, query.columns_read) == (("orders",), ("*",))
    assert query.python.flavour is Flavour.PIPELINE
    assert "LEAST = 100" in query.python.source
    assert query.text.startswith("@stream\ndef big")


def test_options_are_those_of_sql() -> None:
    [found] = read(
        '@stream(key=["id", "n"], name="shop.big", retention="7 d", partitions=3, '
        'watermark="1 min", event_time="at", final=True)\n' + BIG
    )
    assert (found.name, found.topic, found.key) == ("shop.big", "shop.big", ("id", "n"))
    assert (found.retention, found.partitions) == ("7 days", 3)
    assert (found.event_time, found.watermark, found.final) == ("at", "1 minute", True)
    [found] = read('@table(primary_key="id")\n' + BIG)
    assert (found.kind, found.key) == (Kind.TABLE, ("id",))


def test_inputs_may_have_other_names_than_parameters() -> None:
    text = '@table(inputs={"o": "shop.orders"})\ndef t(o: DataFrame, people: DataFrame): return o\n'
    [found] = read(text)
    assert found.query is not None and found.query.python is not None
    assert found.query.inputs == ("shop.orders", "people")
    assert [p.name for p in found.query.python.parameters] == ["o", "people"]


def test_metadata_columns_are_those_that_the_text_names() -> None:
    body = '    return orders.where("_timestamp > x").select(orders._key, "primary_key")\n'
    [found] = read("@stream\ndef big(orders: DataFrame) -> DataFrame:\n" + body)
    assert found.query is not None
    assert found.query.columns_read == ("*", "_key", "_timestamp")


def test_comments_layout_options_and_neighbours_are_not_part_of_the_version() -> None:
    plain = version("@stream\n" + BIG)
    assert version('@stream(retention="1 d")\n' + BIG.replace(")\n", ")  # !\n")) == plain
    with_text = BIG.replace("    return", '    "Large ones."\n    return')
    assert version("# more\n\n@stream\n" + with_text) == plain
    assert version("@stream\n" + BIG.replace("LEAST", "LEAST + 1")) != plain
    [_, other] = load_definitions(
        [("pipeline/p.py", HEAD.replace("table", "table, State") + "@stream\n" + BIG + SECOND)]
    )
    [_, same] = read("@stream\n" + BIG.replace("LEAST", "2") + SECOND)
    assert other.query is not None and same.query is not None
    assert other.query.canonical == same.query.canonical


SECOND = "@table\ndef second(big: DataFrame) -> DataFrame:\n    return big.select('big')\n"


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ('@stream("orders")\n' + BIG, "6:2", "INVALID_FUNCTION"),
        ("@stream(**more)\n" + BIG, "6:11", "INVALID_FUNCTION"),
        ("@stream(retention=LEAST)\n" + BIG, "6:19", "INVALID_FUNCTION"),
        ("@stream(final=1)\n" + BIG, "6:15", "INVALID_FUNCTION"),
        ('@stream(retention="soon")\n' + BIG, "6:19", "INVALID_OPTION"),
        ('@stream(colour="red")\n' + BIG, "6:9", "UNKNOWN_OPTION"),
        ('@stream(primary_key="id")\n' + BIG, "6:9", "UNKNOWN_OPTION"),
        ('@table(primary_key="a", key="b")\n' + BIG, "6:29", "INVALID_FUNCTION"),
        ('@table(key="a, A")\n' + BIG, "6:12", "DUPLICATE_COLUMN"),
        ('@stream(name="_x")\n' + BIG, "6:14", "RESERVED_NAME"),
        ("@stream\ndef f() -> DataFrame: ...\n", "7:1", "INVALID_FUNCTION"),
        ("@stream\ndef f(*orders) -> DataFrame: ...\n", "7:1", "INVALID_FUNCTION"),
        ("@stream\ndef f(orders, n=1) -> DataFrame: ...\n", "7:1", "INVALID_FUNCTION"),
        ('@stream(inputs={"x": "y"})\n' + BIG, "7:1", "INVALID_FUNCTION"),
        ('@stream(inputs={"orders": "a b"})\n' + BIG, "6:27", "INVALID_FUNCTION"),
        ('@stream(inputs={"a": "b"})\ndef f(a, b): ...\n', "7:1", "INVALID_FUNCTION"),
        ("@stream\nasync def f(orders): ...\n", "7:1", "INVALID_FUNCTION"),
        ("@stream\ndef f(o):\n    o.writeStream.start()\n", "8:5", "INVALID_FUNCTION"),
        ("@stream\ndef f(o):\n    o.write.csv('x')\n", "8:5", "INVALID_FUNCTION"),
        ("from mainstem import on\n@on('x')\ndef f(o): ...\n", "8:1", "INVALID_FUNCTION"),
        ("from functions.a import b\n", "6:1", "INVALID_FUNCTION"),
        ("@sink\ndef f(a, b): ...\n", "7:1", "INVALID_FUNCTION"),
        ('@sink(watermark="1 s")\ndef f(a): ...\n', "6:7", "UNKNOWN_OPTION"),
        ('@sink(start="soon")\ndef f(a): ...\n', "6:13", "INVALID_OPTION"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(text: str, place: str, code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        read(text)
    location = caught.value.location
    assert location is not None
    assert (caught.value.code, f"{location.line}:{location.column}") == (code, place)
    assert caught.value.hint


def test_a_pipeline_among_functions_is_not_overlooked() -> None:
    with pytest.raises(MainstemError, match="has no meaning in this folder"):
        load_definitions([("functions/p.py", HEAD + "@stream\n" + BIG)])


def test_names_are_shared_with_sql() -> None:
    with pytest.raises(MainstemError) as caught:
        load_definitions([("a.sql", ORDERS), ("pipeline/p.py", HEAD + "@stream\n" + TWICE)])
    assert caught.value.code == "DUPLICATE_NAME"


TWICE = "def orders(raw: DataFrame) -> DataFrame:\n    return raw\n"


def test_a_sink_may_write_and_leaves_receipts() -> None:
    body = "def lake(o: DataFrame) -> None:\n    o.where('_offset > 1').write.parquet('x')\n"
    [found] = read('@sink(inputs={"o": "shop.orders"}, start="latest")\n' + body)
    assert (found.name, found.kind, found.start) == ("lake", Kind.STREAM, "latest")
    assert found.query is not None and found.sink is not None and found.made_by is found.sink
    assert found.query.inputs == ("shop.orders",)
    assert found.query.columns_read == ("*", "_offset")
    assert (found.sink.flavour, found.sink.returns) == (Flavour.SINK, RECEIPTS)


def test_marks_change_nothing() -> None:
    def plain(rows: list[int]) -> list[int]:
        return rows[:1]

    assert stream(plain) is plain
    assert table(primary_key="id")(plain)([1, 2]) == [1]
    assert sink(start="latest")(plain) is plain
