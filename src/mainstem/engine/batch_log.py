"""The batches of a flow without state in its own checkpoint, noted as Spark notes them.

A batch is begun when its end is in `offsets`, and done when it is in `commits`. Whoever finds the
checkpoint, Spark or a shared scan, goes on behind the last batch that is done, and runs one that
was only begun again, up to the same end.
"""

from __future__ import annotations

import json
import time

from mainstem.engine.checkpoints import Checkpoints
from mainstem.vocabulary import Offsets

_KEPT = 20
"""Batches that stay noted; as many as Spark keeps in our sessions."""
_HEAD_LINES = 2
"""Of a file of offsets: version and settings; then a line for each input."""


class BatchLog:
    """Of one flow with one topic, whose query does not run. For one thread at a time."""

    def __init__(self, checkpoints: Checkpoints, folder: str, topic: str) -> None:
        self._checkpoints = checkpoints
        self._folder = folder
        self._topic = topic
        self.epoch = checkpoints.query_id(folder)
        """Identity of the checkpoint."""
        begun, done = checkpoints.last_batches(folder)
        if begun is None or done is None or begun - done not in (0, 1):
            message = f"the checkpoint has batch {begun} begun and batch {done} done"
            raise ValueError(message)
        self.last = done
        """The last batch that is done."""
        self._commit = self._text("commits", done)
        self._head = self._text("offsets", begun).split("\n")[:_HEAD_LINES]
        self.position = self._end_of(done)
        """Where it ended."""
        self.begun = self._end_of(begun) if begun > done else None
        """Where the batch behind it ends, if one was begun."""

    @property
    def next(self) -> int:
        """The batch that is at work, or the one that comes."""
        return self.last + 1

    def begin(self, end: Offsets) -> None:
        """Notes where the next batch ends. Crash: it runs again, with this end."""
        version, settings = self._head
        now = {**json.loads(settings), "batchTimestampMs": int(time.time() * 1000)}
        ends = {self._topic: {str(p): offset for p, offset in sorted(end.items())}}
        text = "\n".join((version, _compact(now), _compact(ends)))
        self._checkpoints.write_note(self._folder, "offsets", self.next, text)
        self.begun = end

    def done(self) -> None:
        """Notes that all of the batch is written. Crash before: it runs again, and finds so."""
        if self.begun is None:
            message = "no batch was begun"
            raise ValueError(message)
        self._checkpoints.write_note(self._folder, "commits", self.next, self._commit)
        self.last, self.position, self.begun = self.next, self.begun, None
        if self.last % _KEPT == 0:
            for name in ("offsets", "commits"):
                self._checkpoints.delete_notes(self._folder, name, self.last - _KEPT)

    def _text(self, name: str, batch: int) -> str:
        text = self._checkpoints.read_note(self._folder, name, batch)
        if text is None:
            message = f"the checkpoint has no {name} of batch {batch}"
            raise ValueError(message)
        return text

    def _end_of(self, batch: int) -> Offsets:
        ends = self._checkpoints.batch_end(self._folder, batch)
        if ends.keys() != {self._topic}:
            message = f"the checkpoint is one of {sorted(ends)}, not of {self._topic}"
            raise ValueError(message)
        return ends[self._topic]


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
