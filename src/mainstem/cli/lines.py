"""Lines of a file or pipe in batches: full ones of plenty, small ones when lines trickle in."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mainstem.errors import MainstemError

BATCH_LINES = 1_000
BATCH_BYTES = 4_000_000
LINGER_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its number, 1-based; no line break at its end."""

    number: int
    data: bytes


def numbered(source: Iterable[bytes]) -> Iterator[Line]:
    """The lines that are not blank."""
    for number, line in enumerate(source, 1):
        data = line.rstrip(b"\r\n")
        if data.strip():
            yield Line(number, data)


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lists of lines, each at most BATCH_LINES and about BATCH_BYTES long.

    A thread reads ahead, so that a batch is handed on LINGER_SECONDS after its first line even when
    the next line takes its time, as in a pipe from a live program.
    """
    waiting: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=2 * BATCH_LINES)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are taken
            waiting.put(error)

    threading.Thread(target=read, name="read-lines", daemon=True).start()
    ended = False
    while not ended:
        batch: list[Line] = []
        size, deadline = 0, 0.0
        while len(batch) < BATCH_LINES and size < BATCH_BYTES:
            try:
                patience = max(deadline - time.monotonic(), 0.0) if batch else None
                item = waiting.get(timeout=patience)
            except queue.Empty:
                break
            if isinstance(item, BaseException):
                raise item
            if item is None:
                ended = True
                break
            if not batch:
                deadline = time.monotonic() + LINGER_SECONDS
            batch.append(item)
            size += len(item.data)
        if batch:
            yield batch


def parse_object(line: Line, file: str) -> dict[str, Any]:
    """The JSON object in a line; anything else is refused with file and line number."""
    try:
        value = json.loads(line.data, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise _bad(line, file, "it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _bad(line, file, f"{error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise _bad(line, file, str(error)) from None
    if not isinstance(value, dict):
        raise _bad(line, file, "it is not a JSON object")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _bad(line: Line, file: str, problem: str) -> MainstemError:
    return MainstemError("BAD_LINE", file=file, line=line.number, problem=problem)
