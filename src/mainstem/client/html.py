"""Answers as a notebook shows them: plain HTML, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

MOST_ROWS = 50
_LONGEST = 200


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """Rows under the names of their columns, and a line below."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def preformatted(text: str) -> str:
    """A text as it is."""
    return f"<pre>{escape(text)}</pre>"


def cell(value: Any) -> str:
    """A value as short text."""
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
