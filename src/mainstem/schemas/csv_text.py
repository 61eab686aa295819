"""One line of CSV (RFC 4180) -> its fields, and back; an empty field is NULL, `""` a text."""

from __future__ import annotations

from collections.abc import Sequence

QUOTE = '"'


class BadLine(ValueError):
    """A text that is no line of CSV; the text of the error says why."""


def split_line(text: str, delimiter: str) -> list[str | None]:
    """The fields of a line; None for one that is empty and not in quotes."""
    fields: list[str | None] = []
    at = 0
    while True:
        if text[at : at + 1] == QUOTE:
            field, at = _quoted(text, at + 1)
            fields.append(field)
            if at < len(text) and text[at] != delimiter:
                message = f"behind the quotes of field {len(fields)} stands more"
                raise BadLine(message)
        else:
            end = text.find(delimiter, at)
            end = len(text) if end < 0 else end
            fields.append(text[at:end] or None)
            at = end
        if at >= len(text):
            return fields
        at += 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    parts = []
    while True:
        end = text.find(QUOTE, at)
        if end < 0:
            message = "a quote is not closed"
            raise BadLine(message)
        parts.append(text[at:end])
        if text[end + 1 : end + 2] != QUOTE:
            return "".join(parts), end + 1
        parts.append(QUOTE)
        at = end + 2


def join_line(fields: Sequence[str | None], delimiter: str) -> str:
    """The line of some fields."""
    special = (QUOTE, delimiter, "\n", "\r")

    def written(field: str | None) -> str:
        if field is None:
            return ""
        if not field or field != field.strip() or any(one in field for one in special):
            return QUOTE + field.replace(QUOTE, QUOTE * 2) + QUOTE
        return field

    return delimiter.join(map(written, fields))
