"""What tells requests apart: a header of theirs, or a place in their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem.connect.listening.options import invalid
from mainstem.errors import MainstemError

OPTION = "id"
_HEADER = "header:"
_ROOT = "$."
_LONGEST = 500


class RequestId:
    """The option `id`: `header:X-GitHub-Delivery`, or `$.data.id`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._header = ""
        self._path: tuple[str, ...] = ()
        if text.lower().startswith(_HEADER):
            self._header = text[len(_HEADER) :].strip().lower()
        elif text.startswith(_ROOT):
            self._path = tuple(text[len(_ROOT) :].split("."))
        if not self._header and not (self._path and all(self._path)):
            problem = "it is neither a header nor a path in the JSON"
            raise invalid(OPTION, text, problem, "'header:X-GitHub-Delivery', or '$.id'")

    def of(self, headers: Mapping[str, str], body: Any, name: str) -> str:
        """That of a request; INVALID_RECORD when it has none."""
        value: Any = headers.get(self._header) if self._header else body
        for part in self._path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            problem = f"{self._text} was expected to be an id: a text or a whole number"
            raise MainstemError(
                "INVALID_RECORD", index=0, path=self._text, name=name, problem=problem
            )
        text = str(value)
        if len(text) > _LONGEST:
            problem = f"{self._text} is longer than {_LONGEST} characters"
            raise MainstemError(
                "INVALID_RECORD", index=0, path=self._text, name=name, problem=problem
            )
        return text
