"""What Spark calls with each batch, without keeping alive who is called.

Java keeps a `foreachBatch` function for as long as it keeps the query, and keeps the query for as
long as Python knows it. A function that knows its own query would close a circle through both
heaps, which neither collector sees: each run of a flow would stay in memory for ever, with its
session, its plans and its clients.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from pyspark.sql import DataFrame


class Called:
    """Hands batches on to a writer that somebody else keeps for as long as the query runs."""

    def __init__(self, writer: Callable[[DataFrame, int], None]) -> None:
        self._writer = weakref.ref(writer)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Raises no error that knows, through its traceback, what the writer does."""
        failure = self._write(batch, batch_id)
        if failure is not None:
            raise RuntimeError(failure)

    def _write(self, batch: DataFrame, batch_id: int) -> str | None:
        writer = self._writer()
        if writer is None:
            return "the flow was let go of while its query ran"
        try:
            writer(batch, batch_id)
        except RuntimeError as error:  # of those, only the text gets through Spark to the flow
            return str(error)
        return None
