"""`@stateful` functions: streams that are defined by Python."""

import pytest

from mainstem.definitions.flow import check_flow
from mainstem.definitions.model import Definition, Flavour, Kind, TimerClock
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError

HEAD = """\
from collections.abc import Iterator
from dataclasses import dataclass
from mainstem import State, Timer, stateful

@dataclass
class Click:
    user: str
    n: int

"""
SQL = "CREATE STREAM clicks (user STRING, n INT, x DOUBLE, a ARRAY<INT>);\n"
WILD = "CREATE STREAM clicks FROM TOPICS 'c.*' (user STRING, n INT);"
PLAIN = '@stateful(stream="clicks", key="user")\n'
BODY = "def seen(click: Click, state: State[int]) -> list[Click]:\n    return [click]\n"
TIMED = "def seen(c: Click | None, s: State[int], t: Timer) -> list[Click]:\n    return []\n"


def read(text: str, sql: str = SQL) -> dict[str, Definition]:
    files = [("pipeline/a.sql", sql), ("functions/f.py", HEAD + text)]
    return {definition.name: definition for definition in load_definitions(files)}


def test_it_is_a_stream_over_its_input() -> None:
    seen = read(PLAIN + BODY)["seen"]
    assert (seen.kind, seen.topic, seen.derived) == (Kind.STREAM, "seen", True)
    assert seen.query is not None and seen.query.inputs == ("clicks",)
    assert seen.stateful is not None
    function = seen.stateful.function
    assert function.flavour is Flavour.STATEFUL
    assert [p.type for p in function.parameters] == ["struct<user:string,n:bigint>", "bigint"]
    assert function.returns == "struct<user:string,n:bigint>"
    assert (seen.stateful.key, seen.stateful.clock) == (("user",), None)
    assert seen.text.startswith("@stateful") and seen.location.line == 11


def test_key_of_several_columns_and_clocks() -> None:
    marks = {
        '@stateful(stream="clicks", key="user, n")\n': TimerClock.EVENT,
        '@stateful(stream="clicks", key="user, n", timer="wall")\n': TimerClock.WALL,
    }
    for mark, clock in marks.items():
        stateful = read(mark + TIMED)["seen"].stateful
        assert stateful is not None
        assert (stateful.key, stateful.clock) == (("user", "n"), clock)


@pytest.mark.parametrize(
    "text",
    [
        "@stateful\n" + BODY,
        '@stateful("clicks", key="user")\n' + BODY,
        '@stateful(stream="clicks")\n' + BODY,
        '@stateful(stream="clicks", key="")\n' + BODY,
        '@stateful(stream=NAME, key="user")\n' + BODY,
        '@stateful(stream="select", key="user")\n' + BODY,
        '@stateful(stream="a; DROP", key="user")\n' + BODY,
        '@stateful(stream="clicks", key="user", timer="moon")\n' + TIMED,
        PLAIN + BODY.replace("State[int]", "int"),
        PLAIN + BODY.replace(": State[int]", ""),
        PLAIN + BODY.replace("click: Click", "click: str"),
        PLAIN + BODY.replace(" -> list[Click]", ""),
        PLAIN + BODY.replace("list[Click]", "Click"),
        PLAIN + BODY.replace("State[int]", "State[int] = 1"),
        PLAIN + TIMED.replace("Click | None", "Click"),
        PLAIN + TIMED.replace("t: Timer", "t: int"),
        PLAIN + "async " + BODY,
        PLAIN + BODY.replace("seen", "count"),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(MainstemError) as caught:
        read(text)
    assert caught.value.code == "INVALID_FUNCTION"
    assert caught.value.hint
    assert caught.value.location is not None
    assert caught.value.location.file == "functions/f.py"


def test_a_name_is_given_once() -> None:
    with pytest.raises(MainstemError) as caught:
        read(PLAIN + BODY, SQL + "CREATE STREAM seen (a INT);")
    assert caught.value.code == "DUPLICATE_NAME"


@pytest.mark.parametrize(
    ("text", "sql", "code"),
    [
        (PLAIN + BODY, "CREATE TABLE clicks (user STRING PRIMARY KEY, n INT);", "NOT_SUPPORTED"),
        (PLAIN + BODY, "CREATE STREAM clicks (user STRING, m INT);", "UNKNOWN_COLUMN"),
        (PLAIN.replace("user", "usr") + BODY, SQL, "UNKNOWN_COLUMN"),
        (PLAIN.replace("user", "x") + BODY, SQL, "NOT_SUPPORTED"),
        (PLAIN.replace("user", "user, a") + BODY, SQL, "NOT_SUPPORTED"),
        (PLAIN + TIMED, WILD, "NOT_SUPPORTED"),
    ],
)  # fmt: skip
def test_refused_over_its_input(text: str, sql: str, code: str) -> None:
    definitions = read(text, sql)
    with pytest.raises(MainstemError) as caught:
        check_flow(definitions["seen"], [definitions["clicks"]])
    assert caught.value.code == code
    assert caught.value.location is not None
    assert caught.value.location.file == "functions/f.py"
