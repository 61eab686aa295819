"""Python functions, read from their source text."""

from pathlib import Path

import pytest

from mainstem.definitions.model import Flavour, FunctionDefinition, Parameter, Select
from mainstem.definitions.parse import parse_one
from mainstem.definitions.project import load_definitions, read_files
from mainstem.definitions.python_functions import load_functions
from mainstem.definitions.to_postgres import to_postgres
from mainstem.definitions.trace import traced
from mainstem.errors import MainstemError

HEAD = """\
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, NamedTuple, Optional, TypedDict, Union

import pyarrow as pa

from mainstem import function

"""
TOOLS = """
LIMIT = 3

class Word(NamedTuple):
    text: str
    size: int

def helper(text: str) -> str:
    return text[:LIMIT]

@function
def slug(text: str, end: str = "") -> str:
    return helper(text) + end

@function(table=True)
def words(text: str) -> Iterator[Word]:
    yield Word(text, 1)

@function(aggregate=True)
def spread(x: Annotated[pa.Array, "double"]) -> float | None:
    return 1.0
"""


def read(text: str, file: str = "functions/tools.py") -> dict[str, FunctionDefinition]:
    return load_functions([(file, HEAD + text)])


def refusal(text: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        read(text)
    assert caught.value.hint
    return caught.value


def one(annotation: str, before: str = "") -> Parameter:
    text = f"{before}\n@function\ndef f(x: {annotation}) -> int:\n    return 1\n"
    return read(text)["f"].parameters[0]


@pytest.mark.parametrize(
    ("annotation", "spark"),
    [
        ("str", "string"),
        ("int", "bigint"),
        ("float", "double"),
        ("bool", "boolean"),
        ("bytes", "binary"),
        ("Decimal", "decimal(38,18)"),
        ("dt.date", "date"),
        ("dt.datetime", "timestamp"),
        ("list[int]", "array<bigint>"),
        ("list[int | None]", "array<bigint>"),
        ("dict[str, list[float]]", "map<string,array<double>>"),
        ("'str'", "string"),
        ("Annotated[Decimal, 'DECIMAL(10, 2)']", "decimal(10,2)"),
        ("Annotated[int, 'int']", "int"),
    ],
)
def test_types(annotation: str, spark: str) -> None:
    assert one(annotation) == Parameter("x", spark)


@pytest.mark.parametrize(
    "annotation", ["str | None", "None | str", "Optional[str]", "'str | None'"]
)
def test_none_makes_a_parameter_nullable(annotation: str) -> None:
    assert one(annotation) == Parameter("x", "string", nullable=True)


@pytest.mark.parametrize(
    "before",
    [
        "@dataclass\nclass P:\n    lat: float\n    tags: list[str] | None = None\n",
        "@dataclass(frozen=True)\nclass P:\n    lat: float\n    tags: list[str]\n",
        "class P(NamedTuple):\n    lat: float\n    tags: list[str]\n",
        "class P(TypedDict):\n    lat: float\n    tags: list[str]\n",
    ],
)
def test_records_are_structs(before: str) -> None:
    assert one("P", before).type == "struct<lat:double,tags:array<string>>"


def test_flavours() -> None:
    found = read(TOOLS)
    assert {name: f.flavour for name, f in found.items()} == {
        "slug": Flavour.SCALAR,
        "words": Flavour.TABLE,
        "spread": Flavour.AGGREGATE,
    }
    assert found["slug"].signature == "slug(text string, end string) -> string"
    assert (found["slug"].fewest, found["slug"].nullable) == (1, False)
    assert found["words"].returns == "struct<text:string,size:bigint>"
    assert found["spread"].nullable


def test_the_mark_is_known_by_what_it_is() -> None:
    text = "import mainstem as ms\n@ms.function\ndef f(x: int) -> int:\n    return x\n"
    assert list(load_functions([("functions/a.py", text)])) == ["f"]
    text = "def function(f):\n    return f\n@function\ndef f(x: int) -> int:\n    return x\n"
    assert load_functions([("functions/a.py", text)]) == {}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("@function\ndef f(x): ...", 2, 7),
        ("@function\ndef f(x: int): ...", 2, 1),
        ("@function\ndef f(x: complex) -> int: ...", 2, 10),
        ("@function\ndef f(x: int | str) -> int: ...", 2, 10),
        ("@function\ndef f(x: list) -> int: ...", 2, 10),
        ("@function\ndef f(x: Annotated[int, 'integr']) -> int: ...", 2, 25),
        ("@function\ndef f(x: Annotated[int, '']) -> int: ...", 2, 25),
        ("@function\ndef f(é: int, x: complex) -> int: ...", 2, 18),
        ("@function\ndef f(x: pa.Array) -> int: ...", 2, 10),
        ("@function\ndef f(*x: int) -> int: ...", 2, 8),
        ("@function\ndef f(x: int, *, y: int) -> int: ...", 2, 18),
        ("@function\ndef f() -> int: ...", 2, 1),
        ("@function\ndef upper(x: int) -> int: ...", 2, 1),
        ("@function\ndef reflect(x: int) -> int: ...", 2, 1),
        ("@function\ndef Select(x: int) -> int: ...", 2, 1),
        ("@function\ndef _f(x: int) -> int: ...", 2, 1),
        ("@function\nasync def f(x: int) -> int: ...", 2, 1),
        ("class A:\n    @function\n    def f(self, x: int) -> int: ...", 3, 5),
        ("@function(table=True)\ndef f(x: int) -> list[int]: ...", 2, 18),
        ("@function(table=True, aggregate=True)\ndef f(x: int) -> int: ...", 1, 2),
        ("@function(tabel=True)\ndef f(x: int) -> int: ...", 1, 2),
        ("@function(vectorised=True)\ndef f(x: int) -> int: ...", 2, 10),
        ("@function\ndef f(x: Annotated[pa.Array, 'int']) -> int: ...", 2, 10),
        ("class P(TypedDict):\n    p: 'P'\n@function\ndef f(x: P) -> int: ...", 1, 1),
        ("class P:\n    p: int\n@function\ndef f(x: P) -> int: ...", 1, 1),
        ("import tools", 1, 1),
        ("from functions.other import x", 1, 1),
        ("from . import x", 1, 1),
        ("def f(:", 1, 7),
    ],
)
def test_refusals_have_their_place(text: str, line: int, column: int) -> None:
    error = refusal(text)
    assert error.code == "INVALID_FUNCTION"
    place = error.location
    assert place is not None
    first = HEAD.count("\n")
    assert (place.file, place.line - first, place.column) == ("functions/tools.py", line, column)


def test_two_functions_of_one_name() -> None:
    text = "from mainstem import function\n@function\ndef f(x: int) -> int: ...\n"
    with pytest.raises(MainstemError) as caught:
        load_functions([("functions/a.py", text), ("functions/b.py", text.replace("f(", "F("))])
    assert caught.value.code == "DUPLICATE_NAME"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return helper(text) + end", "# a comment\n    return helper( text )+end  # another"),
        ('end: str = "") -> str:', 'end: str = "") -> str:\n    """Documented."""'),
        ("yield Word(text, 1)", "yield Word(text, 2)"),
        ("return 1.0", "return 2.0"),
    ],
)
def test_what_leaves_a_version_alone(old: str, new: str) -> None:
    assert old in TOOLS
    before, after = read(TOOLS)["slug"], read("\n# moved\n" + TOOLS.replace(old, new))["slug"]
    assert before.version == after.version


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(text) + end", "helper(text)"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("text[:LIMIT]", "text[LIMIT:]"),
        ("LIMIT = 3", "LIMIT = 3\nprint(1)"),
    ],
)
def test_what_makes_a_new_version(old: str, new: str) -> None:
    assert read(TOOLS)["slug"].version != read(TOOLS.replace(old, new))["slug"].version


def test_the_source_is_what_the_function_needs_at_its_place() -> None:
    function = read(TOOLS)["slug"]
    assert "def helper" in function.source
    assert "spread" not in function.source
    line = function.location.line
    assert function.source.splitlines()[line - 1].startswith("def slug(")


# -- in SQL


def select(text: str) -> Select:
    statement = parse_one(text, functions=read(TOOLS))
    assert isinstance(statement, Select)
    return statement


def sql_error(text: str) -> tuple[str, int]:
    with pytest.raises(MainstemError) as caught:
        parse_one(text, functions=read(TOOLS))
    assert caught.value.location is not None
    assert caught.value.hint
    return caught.value.code, caught.value.location.column


def test_a_query_knows_what_it_calls() -> None:
    query = select("SELECT Slug(t), w.* FROM s, LATERAL words(`slug`(t)) AS w").query
    assert [f.name for f in query.functions] == ["slug", "words"]
    assert select("SELECT spread(x) FROM s").query.aggregates
    assert not select("SELECT slug FROM s").query.functions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT slug() FROM s", ("FUNCTION_ARGUMENTS", 8)),
        ("SELECT slug(t, upper(t), f[1, 2]) FROM s", ("FUNCTION_ARGUMENTS", 8)),
        ("SELECT words(t) FROM s", ("SQL_NOT_ALLOWED", 8)),
        ("SELECT * FROM s, LATERAL slug(t)", ("SQL_NOT_ALLOWED", 26)),
        ("SELECT * FROM (SELECT 1) AS slug(a)", ("SQL_NOT_ALLOWED", 29)),
        ("SELECT slugs(t) FROM s", ("FUNCTION_NOT_ALLOWED", 8)),
        ("SELECT a.slug(t) FROM s", ("FUNCTION_NOT_ALLOWED", 10)),
        ("INSERT INTO s VALUES (slug('a'))", ("NOT_SUPPORTED", 23)),
        ("CREATE TABLE x AS SELECT t, spread(n) AS y FROM s GROUP BY t", ("NOT_SUPPORTED", 29)),
    ],
)
def test_calls_that_are_refused(text: str, expected: tuple[str, int]) -> None:
    assert sql_error(text) == expected


def test_an_unknown_reader_leaves_functions_to_others() -> None:
    assert parse_one("SELECT anything(1, 2) FROM s", functions=None)
    for name in ("reflect", "java_method"):
        with pytest.raises(MainstemError):
            parse_one(f"SELECT {name}('a') FROM s", functions=None)


def test_postgresql_cannot_run_them() -> None:
    [table] = load_definitions([("a.sql", "CREATE TABLE t (id INT PRIMARY KEY, name STRING)")])
    with pytest.raises(MainstemError) as caught:
        to_postgres(select("SELECT id,\n slug(name) FROM t"), {"t": table})
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, 2)


def test_calls_are_traced_to_their_record() -> None:
    query = traced(select("SELECT slug(slug(t), 'x') AS a FROM s WHERE slug(t) > ''").query)
    assert query is not None
    place = ", _partition, _offset)"
    assert query.text == (
        f"SELECT slug(slug(t{place}, 'x'{place} AS a FROM s WHERE slug(t{place} > ''"
    )
    assert {"_partition", "_offset"} <= set(query.columns_read)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t FROM s",
        "SELECT slug(a) FROM (SELECT t AS a FROM s)",
        "SELECT slug(t), count(*) FROM s GROUP BY 1",
        "SELECT slug(t) FROM s UNION ALL SELECT t FROM s",
    ],
)
def test_calls_that_cannot_be_traced(text: str) -> None:
    assert traced(select(text).query) is None


def test_files_of_a_project(tmp_path: Path) -> None:
    for name in ("pipeline/a.sql", "functions/b.py", "functions/more/c.py", "functions/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    names = [path for path, _ in read_files(tmp_path)]
    assert names == ["pipeline/a.sql", "functions/b.py", "functions/more/c.py"]
