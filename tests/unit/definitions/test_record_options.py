"""The options that say which records of a topic are a stream's own."""

from __future__ import annotations

import pytest

from mainstem.definitions.formats import plain_name, record_name
from mainstem.definitions.model import Create, Definition, SubjectStrategy
from mainstem.definitions.parse import parse
from mainstem.errors import MainstemError


def read(options: str, kind: str = "STREAM", name: str = "s") -> Definition:
    key = " PRIMARY KEY" if kind == "TABLE" else ""
    [statement] = parse(f"CREATE {kind} {name} (id INT{key}) WITH ({options})")
    assert isinstance(statement, Create)
    return statement.definition


def test_options() -> None:
    plain = read("format = 'avro'")
    assert (plain.record, plain.subject_strategy) == (None, SubjectStrategy.TOPIC_NAME)
    named = read("format = 'avro', record = 'com.shop.A', subject_strategy = 'Record_Name'")
    assert (named.record, named.subject_strategy) == ("com.shop.A", SubjectStrategy.RECORD_NAME)
    assert read("format = 'json_schema', record = 'Order placed'").record == "Order placed"
    table = read("format = 'avro', subject_strategy = 'topic_record_name'", "TABLE")
    assert table.subject_strategy is SubjectStrategy.TOPIC_RECORD_NAME


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("record = 'A'", "INVALID_OPTION"),
        ("format = 'csv', record = 'A'", "INVALID_OPTION"),
        ("subject_strategy = 'record_name'", "INVALID_OPTION"),
        ("format = 'avro', record = ''", "INVALID_OPTION"),
        ("format = 'avro', record = 'com..A'", "INVALID_OPTION"),
        ("format = 'avro', record = 'Order placed'", "INVALID_OPTION"),
        ("format = 'json_schema', record = ' '", "INVALID_OPTION"),
        ("format = 'avro', subject_strategy = 'RecordNameStrategy'", "INVALID_OPTION"),
    ],
)
def test_refused(options: str, code: str) -> None:
    with pytest.raises(MainstemError) as error:
        read(options)
    assert error.value.code == code


def test_a_table_has_all_records_of_its_topic() -> None:
    with pytest.raises(MainstemError) as error:
        read("format = 'avro', record = 'A'", "TABLE")
    assert error.value.code == "UNKNOWN_OPTION"


def test_own_names() -> None:
    assert record_name(read("format = 'avro'", name="shop.orders")) == "shop_orders"
    assert record_name(read("format = 'json_schema'", name="shop.orders")) == "shop.orders"
    assert record_name(read("format = 'avro', record = 'a.B'", name="x")) == "a.B"
    assert record_name(read("format = 'protobuf'", name="google")) == "_google"
    assert plain_name("2 b") == "_2_b"
