"""What a run has measured, printed at once: a run that is stopped leaves what it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

out = Console(width=132, highlight=False)
_NAME_WIDTH = 40
_LEAST_WIDTH = 14


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """A table, each row of it as soon as it is there."""
    widths = [max(len(heading), _LEAST_WIDTH) for heading in headings[1:]]

    def show(row: Sequence[str], style: str = "") -> None:
        cells = [row[0].ljust(_NAME_WIDTH), *map(str.rjust, row[1:], widths)]
        out.print("  ".join(cells), style=style)

    if title:
        out.print(title, style="italic")
    show(headings, "bold")
    for row in rows:
        show(row)


@dataclass
class Goals:
    """What was to be reached, and what was: printed once more when all has run."""

    _rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, what: str, measured: str, wanted: str, *, met: bool) -> None:
        """One of them."""
        self._rows.append((what, measured, wanted, "yes" if met else "NO"))

    def print(self) -> None:
        """All of them, side by side."""
        print_rows(("goals", "measured".rjust(24), "goal".rjust(14), "met"), self._rows)
