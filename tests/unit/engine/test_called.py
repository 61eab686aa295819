from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from mainstem.engine.called import Called


class Writer:
    def __init__(self, failure: Exception | None = None) -> None:
        self.batches: list[tuple[Any, int]] = []
        self.failure = failure

    def __call__(self, batch: Any, batch_id: int) -> None:
        self.batches.append((batch, batch_id))
        if self.failure is not None:
            raise self.failure


def test_batches_are_handed_on() -> None:
    writer = Writer()
    Called(writer)("rows", 7)
    assert writer.batches == [("rows", 7)]


def test_nothing_keeps_the_writer_alive_not_even_its_failure() -> None:
    writer = Writer(RuntimeError("a batch that cannot be written"))
    called, alive = Called(writer), weakref.ref(writer)
    with pytest.raises(RuntimeError, match="cannot be written") as caught:
        called("rows", 0)
    del writer
    gc.collect()
    assert alive() is None
    assert str(caught.value)
    with pytest.raises(RuntimeError, match="let go of"):
        called("rows", 1)
