"""How long what is kept of a table stays."""

import threading
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from mainstem.engine import tables


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
