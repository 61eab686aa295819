"""The input of a Python task, whole or not at all.

Arrow takes the end of the bytes for the end of the batches. When Spark's JVM dies or cancels a task
(a flow that is stopped, another task that failed), the bytes end between two batches, and a task
that commits what it has read would commit a part of its batch, with a token that says "all". Here
Spark's reader is made to fail where bytes are missing; `mainstem.engine.daemon` installs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
from pyspark.sql.pandas.serializers import ArrowStreamSerializer

_load_stream = ArrowStreamSerializer.load_stream


class BrokenInputError(EOFError):
    """Spark did not send all of a task's input."""


class _WholeStream:
    """A stream of bytes that raises when it ends before all that was asked for has come."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            message = "Spark ended the task before all of its input had come"
            raise BrokenInputError(message)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _load_whole_stream(self: ArrowStreamSerializer, stream: Any) -> Iterator[pa.RecordBatch]:
    return _load_stream(self, _WholeStream(stream))  # type: ignore[arg-type]


def install() -> None:
    """From now on, this process and its forks read the input of Arrow functions whole."""
    ArrowStreamSerializer.load_stream = _load_whole_stream  # type: ignore[method-assign]


def require_installed() -> None:
    """Raise in a worker that would take a broken input for a whole one."""
    if ArrowStreamSerializer.load_stream is not _load_whole_stream:
        message = "Spark's Python workers must be started by mainstem.engine.daemon"
        raise RuntimeError(message)
