"""Every error a user can meet: one catalogue (`errors.toml`), one exception class.

MainstemError
    code      stable name, such as UNKNOWN_RELATION; tests and clients look at this
    params    what fills the message and the hint
    location  file, line and column, when the cause is in a text
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mainstem.vocabulary import SourceLocation


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What the catalogue says of one code."""

    message: str
    hint: str
    status: int
    exit: int


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    """All codes, read once from `errors.toml`."""
    text = files("mainstem").joinpath("errors.toml").read_text("utf-8")
    return {
        code: CatalogueEntry(
            message=entry["message"],
            hint=entry["hint"],
            status=entry.get("status", 400),
            exit=entry.get("exit", 1),
        )
        for code, entry in tomllib.loads(text).items()
    }


class MainstemError(Exception):
    """An error by code and parameters; its text comes from the catalogue."""

    def __init__(self, code: str, *, location: SourceLocation | None = None, **params: Any) -> None:
        self.code = code
        self.params = params
        self.location = location
        self.entry = catalogue()[code]
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """What happened, in one sentence."""
        return self.entry.message.format(**self.params)

    @property
    def hint(self) -> str:
        """What to do about it."""
        return self.entry.hint.format(**self.params)

    @property
    def status(self) -> int:
        """HTTP status of the error."""
        return self.entry.status

    @property
    def exit_code(self) -> int:
        """Exit code of a command that ends with the error."""
        return self.entry.exit

    def at(self, location: SourceLocation | None) -> MainstemError:
        """The same error with a place, unless it has one."""
        if self.location is None:
            self.location = location
        return self

    def problem(self) -> dict[str, Any]:
        """The error as an RFC 9457 problem document."""
        document: dict[str, Any] = {
            "type": f"urn:mainstem:error:{self.code}",
            "title": self.code,
            "status": self.status,
            "detail": self.message,
            "hint": self.hint,
        }
        if self.location is not None:
            document["location"] = {
                "file": self.location.file,
                "line": self.location.line,
                "column": self.location.column,
                "snippet": self.location.snippet,
            }
        return document

    def render(self) -> str:
        """The error as text for a terminal, with a caret under the place."""
        return render_problem(self.problem())


def render_problem(problem: dict[str, Any]) -> str:
    """A problem document (ours or one that a gateway sent) as text for a terminal."""
    lines = []
    place = problem.get("location")
    prefix = f"{place['file']}:{place['line']}:{place['column']}: " if place else ""
    lines.append(f"{prefix}{problem['title']}: {problem['detail']}")
    if place and place.get("snippet"):
        snippet = place["snippet"].replace("\t", " ")
        lines += [f"  {snippet}", "  " + " " * (place["column"] - 1) + "^"]
    if problem.get("hint"):
        lines.append(f"hint: {problem['hint']}")
    return "\n".join(lines)


def filled(template: str, text: str) -> dict[str, Any] | None:
    """What stands in the places of a template of the catalogue; None: the text is another one."""
    pattern, seen = "", set()
    for index, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        if index % 2 == 0:
            pattern += re.escape(piece)
        else:
            pattern += f"(?P={piece})" if piece in seen else f"(?P<{piece}>.*?)"
            seen.add(piece)
    match = re.fullmatch(pattern, text, re.DOTALL)
    return None if match is None else match.groupdict()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean "x"?` for the nearest known name, or nothing; fits at the end of a hint."""
    choices = list(known)
    folded = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f' Did you mean "{folded[near[0]]}"?' if near else ""
