from __future__ import annotations

import json
from decimal import Decimal

import pytest

from mainstem.cli.output import (
    Format,
    RowWriter,
    distinct,
    read_json,
    to_json,
    write,
    write_pairs,
)

COLUMNS = ("page", "visits")
ROWS = [("/home", 12), ("/über", None)]


def test_table_without_a_terminal_is_plain_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.TABLE, COLUMNS, ROWS)
    assert capsys.readouterr().out == "page   visits\n/home  12\n/über\n"


def test_json_is_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.JSON, COLUMNS, ROWS)
    assert json.loads(capsys.readouterr().out) == [
        {"page": "/home", "visits": 12},
        {"page": "/über", "visits": None},
    ]


def test_json_of_no_rows_is_an_empty_array(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.JSON, COLUMNS, [])
    assert json.loads(capsys.readouterr().out) == []


def test_json_prefers_the_whole_document(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.JSON, COLUMNS, ROWS, document={"rows": 2})
    assert json.loads(capsys.readouterr().out) == {"rows": 2}


def test_jsonl_is_one_object_a_line_with_letters_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Format.JSONL, COLUMNS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["page"] for line in lines] == ["/home", "/über"]
    assert "ü" in lines[1]


def test_csv_quotes_and_nests(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.CSV, ("a", "b", "c"), [('x,"y"', {"k": [1]}, True)])
    assert capsys.readouterr().out == 'a,b,c\n"x,""y""","{""k"": [1]}",true\n'


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write(Format.TABLE, ("a",), [("x\ny\x1b[2J",)])
    assert capsys.readouterr().out == "a\nx\\ny\\x1b[2J\n"


def test_decimals_keep_their_digits() -> None:
    text = '{"a": 12.30, "b": [12345678901234567890.123456789012345678]}'
    assert to_json(read_json(text)) == text


@pytest.mark.parametrize("indent", [None, 2])
def test_to_json_agrees_with_the_standard_library(indent: int | None) -> None:
    value = {"a": [1, {"b": None}, []], "c": {}, "d": 'q"\n', "e": True}
    assert to_json(value, indent=indent) == json.dumps(value, indent=indent)


def test_repeated_column_names_stay_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert distinct(["a", "b", "a", "a"]) == ["a", "b", "a_2", "a_3"]
    write(Format.JSONL, ("n", "n"), [(1, 2)])
    assert json.loads(capsys.readouterr().out) == {"n": 1, "n_2": 2}


def test_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    write_pairs(Format.TABLE, {"name": "t", "partitions": 4})
    assert capsys.readouterr().out == "property    value\nname        t\npartitions  4\n"
    write_pairs(Format.CSV, {"name": "t", "partitions": 4})
    assert capsys.readouterr().out == "name,partitions\nt,4\n"
    write_pairs(Format.JSON, {"name": "t"})
    assert json.loads(capsys.readouterr().out) == {"name": "t"}


def test_a_streamed_table_keeps_the_widths_of_its_first_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with RowWriter(Format.TABLE, ("a", "b")) as writer:
        writer.row(("long value", 1))
        writer.flush()
        assert capsys.readouterr().out == "a           b\nlong value  1\n"
        writer.row(("x", Decimal("2.50")))
        assert capsys.readouterr().out == "x           2.50\n"


def test_streamed_json_is_well_formed_even_when_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KeyboardInterrupt), RowWriter(Format.JSON, ("a",)) as writer:
        writer.row((1,))
        raise KeyboardInterrupt
    assert json.loads(capsys.readouterr().out) == [{"a": 1}]
