"""How long what is kept of a table stays, and how several are read."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from mainstem.engine import tables
from mainstem.engine.tables import Tables


def test_what_has_been_replaced_stays_until_its_readers_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed: list[Any] = []
    monkeypatch.setattr(tables, "release", freed.append)
    nothing: Any = None
    known = tables.Tables(nothing, nothing, nothing, nothing, nothing)
    started = threading.Event()
    finish = threading.Event()

    def read() -> None:
        known._reads()
        started.set()
        finish.wait(60)
        known.done()

    reader = threading.Thread(target=read)
    reader.start()
    assert started.wait(60)
    known._retire("t", cast("DataFrame", "old"))
    known._reads()  # this thread begins when it has been replaced
    known._clear("t")
    assert freed == []
    finish.set()
    reader.join()
    known._clear("t")
    assert freed == ["old"]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Tables:
    monkeypatch.setattr(tables, "inheritable_thread_target", lambda _: lambda function: function)
    nothing: Any = None
    return Tables(nothing, nothing, nothing, nothing, nothing)


def table(name: str) -> Any:
    return SimpleNamespace(topic=name)


def test_tables_are_read_at_the_same_time(known: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    caller = known._reads()

    def upto(definition: Any, end: Any) -> None:
        both.wait(60)  # each waits for the other
        assert known._reads() is caller, "it would ask once more what the topics are"

    monkeypatch.setattr(known, "_upto", upto)
    known.bring_up([(table("a"), {0: 1}), (table("b"), {0: 1})])
    assert list(known._reading.values()) == [caller]


def test_what_is_read_already_is_not_read_again(
    known: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(known, "_upto", lambda definition, end: read.append(definition.topic))
    for name in "abc":
        known._held[name] = cast("Any", SimpleNamespace(end={0: 5}))
    known.bring_up([(table("a"), {0: 5}), (table("b"), {0: 6}), (table("c"), {0: 5, 1: 1})])
    assert sorted(read) == ["b", "c"]
    known.bring_up([(table("a"), {0: 5}), (table("b"), {0: 6})])
    assert len(read) == 2, "who asks for the rows of a single one reads it"


def test_a_table_that_cannot_be_read_is_told(
    known: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def upto(definition: Any, end: Any) -> None:
        raise ValueError(definition.topic)

    monkeypatch.setattr(known, "_upto", upto)
    with pytest.raises(ValueError, match="a"):
        known.bring_up([(table("a"), {0: 1}), (table("b"), {0: 1})])
