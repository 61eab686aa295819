"""What a Java stack trace says, without the stack."""

from __future__ import annotations

import re

_LONGEST = 400
_FRAME = re.compile(r"^\s*(at |\.\.\. \d+ more)")
_CAUSE = "Caused by: "
_CLASS = re.compile(r"^(?:[a-z_][\w]*\.)+([A-Z][\w$]*)(?::\s*|$)")


def short_trace(trace: str) -> str:
    """The message of a trace, and that of its deepest cause where that is another one.

    Names of classes go, unless nothing else is said: they tell a user nothing.
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip() and not _FRAME.match(line)]
    if not lines:
        return ""
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    first, last = _said(_head(lines)), _said(causes[-1]) if causes else ""
    text = first if not last or last in first else f"{first}: {last}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _head(lines: list[str]) -> str:
    """The first message, which may have several lines."""
    head = []
    for line in lines:
        if line.startswith((_CAUSE, "Suppressed: ")):
            break
        head.append(line)
    return " ".join(head)


def _said(text: str) -> str:
    match = _CLASS.match(text)
    if match is None:
        return text.rstrip(".")
    rest = text[match.end() :].strip()
    # one class may wrap the text of another
    return _said(rest) if rest else match[1]
