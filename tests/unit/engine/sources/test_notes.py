"""What the batches of a source have read, as it is found again after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mainstem.engine.sources.notes import BatchNotes


class Folder:
    """Checkpoints on a local disk, without Spark."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read_note(self, folder: str, name: str, batch_id: int) -> str | None:
        path = self._root / folder / name / str(batch_id)
        return path.read_text() if path.exists() else None

    def write_note(self, folder: str, name: str, batch_id: int, text: str) -> None:
        path = self._root / folder / name / str(batch_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def delete_note(self, folder: str, name: str, batch_id: int) -> None:
        (self._root / folder / name / str(batch_id)).unlink(missing_ok=True)

    def folders(self, folder: str) -> list[str]:
        path = self._root / folder
        return [str(each) for each in path.iterdir()] if path.exists() else []


@pytest.fixture
def notes(tmp_path: Path) -> BatchNotes:
    checkpoints: Any = Folder(tmp_path)
    return BatchNotes(checkpoints, "in.1")


def test_a_batch_that_was_begun_is_known(notes):
    assert notes.of(0) is None
    assert notes.last() is None
    assert notes.since() == (None, [])
    notes.write(0, {"to": 1})
    notes.write(7, {"to": 2})
    assert notes.of(7) == {"to": 2}
    assert notes.last() == (7, {"to": 2})
    assert notes.since() == (None, [{"to": 1}, {"to": 2}])


def test_what_is_summed_up_is_not_kept_twice(notes):
    for batch in range(4):
        notes.write(batch, batch)
    notes.sum_up(3, [0, 1, 2, 3])
    assert notes.since() == ([0, 1, 2, 3], [])
    assert (notes.of(1), notes.of(2), notes.of(3)) == (None, 2, 3)  # the last may run again
    notes.write(5, 5)
    assert notes.since() == ([0, 1, 2, 3], [5])
    notes.sum_up(5, [0, 1, 2, 3, 5])
    assert notes.since() == ([0, 1, 2, 3, 5], [])


def test_old_notes_go(notes):
    for batch in (1, 2, 8, 9):
        notes.write(batch, batch)
        notes.forget(batch)
    assert notes.since()[1] == [8, 9]
