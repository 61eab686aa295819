"""One value on stdout as a table, JSON, JSON lines or CSV; all messages go to stderr."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, TextIO

_SAMPLE = 20
"""Rows that a streamed table looks at before it fixes the widths of its columns."""


class Format(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def colour_allowed(stream: TextIO, *, wanted: bool = True) -> bool:
    """True when the stream is a terminal that shows colours and nobody has forbidden them."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return wanted and not plain and stream.isatty()


def distinct(names: Iterable[str]) -> list[str]:
    """The names with `_2`, `_3` ... behind repeated ones, so that a JSON object can hold them."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def read_json(text: str | bytes) -> Any:
    """A JSON text with numbers as written: 12.30 stays 12.30, a long decimal keeps its digits."""
    return json.loads(text, parse_float=Decimal)


def to_json(value: Any, *, indent: int | None = None, level: int = 0) -> str:
    """JSON as people read it: letters beyond ASCII as they are, decimals with all their digits."""
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, (dict, list, tuple)) or not value:
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, dict):
        opening, closing = "{", "}"
        items = [
            json.dumps(str(k), ensure_ascii=False)
            + ": "
            + to_json(v, indent=indent, level=level + 1)
            for k, v in value.items()
        ]
    else:
        opening, closing = "[", "]"
        items = [to_json(v, indent=indent, level=level + 1) for v in value]
    if indent is None:
        return opening + ", ".join(items) + closing
    inner, outer = "\n" + " " * indent * (level + 1), "\n" + " " * indent * level
    return opening + inner + f",{inner}".join(items) + outer + closing


def cell(value: Any) -> str:
    """A value as one cell of a table or of CSV; nothing for null, JSON for nested values."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return to_json(value)
    return str(value)


def write(
    form: Format,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    document: Any = None,
    colour: bool = True,
) -> None:
    """Print rows; with `-o json` print `document` instead, when the value is more than its rows."""
    if form is Format.JSON and document is not None:
        sys.stdout.write(to_json(document, indent=2) + "\n")
    elif form is Format.TABLE:
        _table(columns, list(rows), colour=colour)
    else:
        with RowWriter(form, columns) as writer:
            for row in rows:
                writer.row(row)
    sys.stdout.flush()


def write_pairs(
    form: Format, pairs: Mapping[str, Any], *, document: Any = None, colour: bool = True
) -> None:
    """Print one object: a line for each property, or the object itself as JSON or CSV."""
    if form is Format.TABLE:
        write(form, ("property", "value"), list(pairs.items()), colour=colour)
    elif form is Format.JSON:
        write(form, (), (), document=document if document is not None else dict(pairs))
    else:
        write(form, list(pairs), [list(pairs.values())])


class RowWriter:
    """Prints rows as they come. JSON is still one value: an array that ends with the stream."""

    def __init__(self, form: Format, columns: Sequence[str]) -> None:
        self._form = form
        self._columns = distinct(columns)
        self._csv = csv.writer(sys.stdout, lineterminator="\n")
        self._rows = 0
        self._waiting: list[Sequence[Any]] = []
        self._widths: list[int] | None = None

    def __enter__(self) -> RowWriter:
        if self._form is Format.CSV:
            self._csv.writerow(self._columns)
        elif self._form is Format.JSON:
            sys.stdout.write("[")
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        if self._form is Format.JSON:
            sys.stdout.write("]\n")
        sys.stdout.flush()

    def row(self, values: Sequence[Any]) -> None:
        """Print one row; a table may hold it back until `flush`."""
        if self._form is Format.CSV:
            self._csv.writerow([cell(v) for v in values])
        elif self._form is Format.TABLE:
            self._waiting.append(values)
            if self._widths is not None or len(self._waiting) >= _SAMPLE:
                self._print_waiting()
        else:
            text = to_json(dict(zip(self._columns, values, strict=True))) + "\n"
            if self._form is Format.JSON:
                # the comma comes first, so that each line is whole as soon as its row is there
                text = (", " if self._rows else " ") + text
            sys.stdout.write(text)
        self._rows += 1

    def flush(self) -> None:
        """Let the reader see all rows so far."""
        if self._form is Format.TABLE and self._waiting:
            self._print_waiting()
        sys.stdout.flush()

    def _print_waiting(self) -> None:
        if self._widths is None:
            self._widths = _widths(self._columns, self._waiting)
            _print_lines(_aligned([self._columns], self._widths))
        _print_lines(_aligned(self._waiting, self._widths))
        self._waiting.clear()


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, colour: bool) -> None:
    if not sys.stdout.isatty():
        widths = _widths(columns, rows)
        _print_lines(_aligned([columns, *rows], widths))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], (int, float, Decimal)) for row in rows)
        table.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    Console(file=sys.stdout, no_color=not colour_allowed(sys.stdout, wanted=colour)).print(table)


def _widths(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[int]:
    widths = [len(column) for column in columns]
    for row in rows:
        widths = [max(w, len(_flat(v))) for w, v in zip(widths, row, strict=True)]
    return widths


def _aligned(rows: Iterable[Sequence[Any]], widths: Sequence[int]) -> Iterator[str]:
    for row in rows:
        yield "  ".join(_flat(v).ljust(w) for v, w in zip(row, widths, strict=True)).rstrip()


def _flat(value: Any) -> str:
    # a line break or control character in the data must not break the columns or the terminal
    text = cell(value)
    return (
        text
        if text.isprintable()
        else "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
        )
    )


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
