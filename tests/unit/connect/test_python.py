"""Rows to a class of the project: what it is given, and what becomes of what it raises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.connectors.python import SPEC
from mainstem.connect.secrets import Secrets
from mainstem.connect.targets import python
from mainstem.connect.targets.target import Part, Poison, Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

STREAM = Shape("s", (Column("id", "int"), Column("name", "string")))
TABLE = Shape("s", STREAM.columns, ("id",), upserts=True, deletes=True)
Batch = Callable[..., pa.Table]

CODE = """
import json
from pathlib import Path

class Crm:
    def __init__(self, options):
        self.file = Path(options["file"])
        self.bad = int(options.get("bad", -1))
        self.say("made", options.get("token"))

    def say(self, *words):
        with self.file.open("a") as file:
            print(*words, file=file)

    def open(self, sink, batch):
        self.say("open", sink, batch)

    def write(self, rows):
        ids = rows["id"].to_pylist()
        self.say("write", ids, rows.column_names[2:])
        if self.bad in ids:
            raise {error}
        return [(at, "no nines") for at, id_ in enumerate(ids) if id_ == 9]

    def finish(self):
        self.say("finish")

    def close(self):
        self.say("close")
        raise ValueError("nobody cares")
"""


class Sink:
    def __init__(self, folder: Path, part: Callable[..., Part]) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._part = part
        (folder / "connectors").mkdir()
        self.code()

    def code(self, text: str = CODE, error: str = 'ValueError("bad")') -> None:
        (self.folder / "connectors" / "crm.py").write_text(text.replace("{error}", error))

    def options(self, bad: int | None = None, **more: str) -> dict[str, Any]:
        written = {
            "file": "connectors/crm.py",
            "class": "Crm",
            "option.file": str(self.log),
            "option.token": "${env:TOKEN}",
            **({} if bad is None else {"option.bad": str(bad)}),
            **more,
        }
        return SPEC.resolve(written, Secrets(self.folder, {"TOKEN": "geheim"}))

    def take(
        self, *batches: pa.Table, bad: int | None = None, shape: Shape = STREAM, **options: str
    ) -> list[Poison]:
        target = python.open_target(self.options(bad, **options), shape)
        poison: list[Poison] = []
        try:
            target.open(self._part())
            for rows in batches:
                poison += target.write(rows)
            poison += target.finish()
        finally:
            target.close()
        return poison

    def said(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        self.log.unlink()
        return lines


@pytest.fixture
def sink(tmp_path: Path, part: Callable[..., Part]) -> Sink:
    return Sink(tmp_path, part)


def test_a_class_is_given_rows_and_where_they_are_from(sink: Sink, batch: Batch) -> None:
    [poison] = sink.take(batch(1, 2), batch(9))
    assert (poison.offset, poison.cause) == (9, "no nines")
    places = "['_topic', '_partition', '_offset', '_time']"
    assert sink.said() == [
        "made geheim",
        "open out 0",
        f"write [1, 2] {places}",
        f"write [9] {places}",
        "finish",
        "close",
    ]
    sink.take(batch(1, -2), shape=TABLE)
    assert "'_deleted'" in sink.said()[2]


def test_a_class_has_only_what_it_needs(sink: Sink, batch: Batch) -> None:
    sink.code("class Crm:\n    def __init__(self, o): pass\n    def write(self, rows): pass\n")
    assert sink.take(batch(1)) == []


def test_what_write_raises_stops_the_sink_at_its_line(sink: Sink, batch: Batch) -> None:
    with pytest.raises(MainstemError) as caught:
        sink.take(batch(1, 2, 3), bad=2)
    error = caught.value
    assert error.code == "SINK_CODE_FAILED"
    assert "ValueError: bad" in error.message
    assert error.location is not None
    line = 1 + CODE.splitlines().index("            raise {error}")
    assert (error.location.file, error.location.line) == ("connectors/crm.py", line)
    assert sink.said()[-1] == "close"


def test_or_puts_the_row_aside(sink: Sink, batch: Batch) -> None:
    poison = sink.take(batch(1, 2, 3, 4, 9), bad=3, on_error="quarantine")
    assert [(one.offset, one.cause) for one in poison] == [(3, "ValueError: bad"), (9, "no nines")]
    assert sink.said()[-2:] == ["finish", "close"]


def test_write_may_tell_of_rows_one_by_one(sink: Sink, batch: Batch) -> None:
    told = 'yield from ((at, "no nines") for at, id_ in enumerate(ids) if id_ == 9)'
    sink.code(CODE.replace("return [", f"{told}; return; ["))
    [poison] = sink.take(batch(1, 9))
    assert poison.offset == 9
    with pytest.raises(MainstemError) as caught:
        sink.take(batch(1), bad=1)
    assert caught.value.code == "SINK_CODE_FAILED"


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
def test_what_is_away_is_no_rows_fault(sink: Sink, batch: Batch, on_error: str) -> None:
    sink.code(error='ConnectionRefusedError("nobody there")')
    with pytest.raises(MainstemError) as caught:
        sink.take(batch(1), bad=1, on_error=on_error)
    assert caught.value.code == "CONNECTOR_UNREACHABLE"


def test_changed_code_is_taken_with_the_next_batch(sink: Sink, batch: Batch) -> None:
    sink.take(batch(1))
    sink.code(CODE.replace('"finish"', '"changed"'))
    sink.take(batch(2))
    assert sink.said()[-2:] == ["changed", "close"]


@pytest.mark.parametrize(
    "answer", ["5", '[(7, "no such row")]', '["x"]'], ids=["number", "no row", "text"]
)
def test_an_answer_that_means_nothing_is_not_passed_over(
    sink: Sink, batch: Batch, answer: str
) -> None:
    sink.code(CODE.replace("return [", f"return {answer} or ["))
    with pytest.raises(MainstemError) as caught:
        sink.take(batch(1), on_error="quarantine")
    assert caught.value.code == "SINK_CODE_FAILED"


def refusal(sink: Sink, shape: Shape = STREAM, **options: str) -> tuple[str, str | None]:
    with pytest.raises(MainstemError) as caught:
        python.check(sink.options(**options), shape)
    return caught.value.code, caught.value.params.get("option")


def test_what_cannot_work_is_refused_while_planning(sink: Sink) -> None:
    python.check(sink.options(), STREAM)
    assert not sink.log.exists(), "nothing is run to find out"
    assert refusal(sink, file="connectors/other.py") == ("INVALID_OPTION", "file")
    assert refusal(sink, file="../crm.py") == ("INVALID_OPTION", "file")
    assert refusal(sink, file="/etc/passwd") == ("INVALID_OPTION", "file")
    assert refusal(sink, **{"class": "CRM"}) == ("INVALID_OPTION", "class")
    named = Shape("s", (Column("_time", "int"),))
    assert refusal(sink, named) == ("TARGET_MISMATCH", None)
    sink.code("class Crm:\n    def writes(self, rows): pass\n")
    assert refusal(sink) == ("INVALID_OPTION", "class")
    sink.code("class Crm\n")
    assert refusal(sink) == ("INVALID_FUNCTION", None)
    sink.code("class Other: pass\n")
    with pytest.raises(MainstemError) as caught:
        sink.take()
    assert caught.value.code == "SINK_CODE_FAILED"
