"""Which types of arguments a Python function takes."""

import pytest

from mainstem.engine.function_arguments import fits
from mainstem.schemas.arrow_types import arrow_type


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("int", "bigint"),
        ("void", "string"),
        ("bigint", "double"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(38,18)"),
        ("decimal(10,2)", "double"),
        ("bigint", "decimal(38,18)"),
        ("date", "timestamp"),
        ("array<int>", "array<bigint>"),
        ("map<string,int>", "map<string,bigint>"),
        ("struct<a:int,b:array<float>>", "struct<a:bigint,b:array<double>>"),
    ],
)
def test_what_fits(given: str, wanted: str) -> None:
    assert fits(given, wanted)
    assert not fits(wanted, given)
    assert arrow_type(wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("string", "bigint"),
        ("int", "string"),
        ("boolean", "int"),
        ("decimal(38,2)", "decimal(38,18)"),
        ("timestamp", "string"),
        ("array<string>", "array<bigint>"),
        ("struct<a:int>", "struct<b:int>"),
        ("struct<a:int>", "struct<a:int,b:int>"),
    ],
)
def test_what_does_not_fit(given: str, wanted: str) -> None:
    assert not fits(given, wanted)
