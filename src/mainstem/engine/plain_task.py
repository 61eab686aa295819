"""A task whose input are the records themselves: key and value, and which rules a row breaks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from mainstem.engine.aside import quarantine_rows
from mainstem.engine.judged import Judge
from mainstem.log.task_writer import Rows, TaskResult


class PlainTask:
    """One task of one batch; in a worker, or in the driver."""

    def __init__(self, judge: Judge | None) -> None:
        self._judge = judge
        self._broken: Counter[str] = Counter()
        self._aside = 0
        self.made = 0
        """Rows that it has written."""
        self.size = 0
        """Bytes of its input."""

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
        """The records."""
        for batch in batches:
            self.size += batch.nbytes
            if self._judge is None or batch.column(2).null_count == len(batch):
                yield Rows(None, batch.column(0).to_pylist(), batch.column(1).to_pylist())
                continue
            rows, kept = self._judge.sorted(batch, self._broken)
            self._aside += len(kept)
            yield from (rows, quarantine_rows(kept))

    def note(self) -> str | None:
        """How many rows broke each rule, if any did; for the driver, now or after a crash."""
        return json.dumps([self._broken, self._aside]) if self._broken else None

    def done(self, result: TaskResult) -> str | None:
        """They are in the log."""
        if result.skipped:
            return result.note
        self.made = max(0, result.rows - self._aside)
        return self.note()
