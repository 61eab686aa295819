"""What a batch of a source that is asked has read, noted before it is read.

Spark's own position of such a source is only a count of batches. What batch n reads is decided when
it begins, and noted in the checkpoint:

1. There is a note of batch n: it was begun before, and reads the same again.
2. There is none: the source is asked, by what the notes before say. If there is no news, nothing is
   noted or written. Crash: the batch begins anew, with other news perhaps; nothing was written.
3. The note is written, whole or not at all. Crash: see 1.
4. The records are written by tasks whose tokens have the batch's number (`writer`). Crash: see 1;
   tasks that had committed write nothing.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from mainstem.engine.checkpoints import Checkpoints

_READ, _ALL = "read", "all"
_KEPT = 2
"""The batch that is at work, and the one before it: of an older one nothing is asked again."""


class BatchNotes:
    """The notes of one flow; for its own thread."""

    def __init__(self, checkpoints: Checkpoints, folder: str) -> None:
        self._checkpoints = checkpoints
        self._folder = folder

    def of(self, batch_id: int) -> Any:
        """What a batch reads; None: it was not begun, or had nothing to read."""
        text = self._checkpoints.read_note(self._folder, _READ, batch_id)
        return None if text is None else json.loads(text)

    def write(self, batch_id: int, document: Any) -> None:
        """Notes what a batch reads."""
        self._checkpoints.write_note(self._folder, _READ, batch_id, json.dumps(document))

    def last(self) -> tuple[int, Any] | None:
        """The newest note, and its batch."""
        numbers = self._numbers(_READ)
        return (numbers[-1], self.of(numbers[-1])) if numbers else None

    def sum_up(self, batch_id: int, document: Any) -> None:
        """Notes what all batches up to this one come to; what is older is not needed any more.

        A crash in between leaves more than is needed.
        """
        self._checkpoints.write_note(self._folder, _ALL, batch_id, json.dumps(document))
        for number in self._numbers(_ALL):
            if number < batch_id:
                self._checkpoints.delete_note(self._folder, _ALL, number)
        self.forget(batch_id)

    def forget(self, batch_id: int) -> None:
        """Removes the notes of batches long before this one."""
        for number in self._numbers(_READ):
            if number <= batch_id - _KEPT:
                self._checkpoints.delete_note(self._folder, _READ, number)

    def since(self) -> tuple[Any, list[Any]]:
        """What was summed up last, None for nothing, and the notes of the batches behind it."""
        sums = self._numbers(_ALL)
        text = self._checkpoints.read_note(self._folder, _ALL, sums[-1]) if sums else None
        behind = [n for n in self._numbers(_READ) if not sums or n > sums[-1]]
        return None if text is None else json.loads(text), [self.of(n) for n in behind]

    def _numbers(self, name: str) -> list[int]:
        paths = self._checkpoints.folders(f"{self._folder}/{name}")
        names = (PurePosixPath(path).name for path in paths)
        return sorted(int(found) for found in names if found.isdecimal())
