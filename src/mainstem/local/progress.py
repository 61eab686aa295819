"""Progress of a download: a bar on a terminal, a few plain lines elsewhere, silence if asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_STEPS = 4
"""Lines between start and end where there is no terminal."""


class Progress(Protocol):
    """Takes the progress of one download of several files; `advance` comes from any thread."""

    def begin(self, what: str, files: int, total: int, have: int) -> None:
        """The download starts: so many files and bytes, of which some are there."""
        ...

    def advance(self, count: int) -> None:
        """So many more bytes have come; a negative number takes some back."""
        ...

    def end(self) -> None:
        """All have come."""
        ...

    def say(self, text: str) -> None:
        """A message beside the progress."""
        ...


@contextmanager
def progress_on(stream: TextIO, *, quiet: bool = False) -> Iterator[Progress]:
    """The kind of progress that fits the stream."""
    if quiet:
        yield _Silent()
    elif stream.isatty():
        with _Bar.on(stream) as bar:
            yield bar
    else:
        yield _Lines(stream)


class _Silent:
    def begin(self, what: str, files: int, total: int, have: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def end(self) -> None: ...

    def say(self, text: str) -> None: ...


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._what = ""
        self._total = self._have = self._told = 0

    def begin(self, what: str, files: int, total: int, have: int) -> None:
        self._what, self._total, self._have, self._told = what, total, have, 0
        self.say(f"Fetching {files} {what} ({total / 1e6:.0f} MB)")

    def advance(self, count: int) -> None:
        with self._lock:
            self._have += count
            step = self._have * _STEPS // max(1, self._total)
            if self._told < step < _STEPS:
                self._told = step
                self.say(f"  {self._what}: {100 * step // _STEPS} %")

    def end(self) -> None:
        self.say(f"Fetched {self._what}")

    def say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    @classmethod
    @contextmanager
    def on(cls, stream: TextIO) -> Iterator[_Bar]:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with RichProgress(*columns, TransferSpeedColumn(), console=Console(file=stream)) as bar:
            yield cls(bar)

    def begin(self, what: str, files: int, total: int, have: int) -> None:
        self._task = self._bar.add_task(f"{files} {what}", total=total, completed=have)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, count)

    def end(self) -> None:
        self._bar.refresh()

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)
