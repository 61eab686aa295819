"""Secrets by reference: `${env:NAME}` and `${file:path}` in options, filled in where they are used.

What is kept, shown and logged is the reference. Whoever connects asks `Secrets` for the values, and
lets it take them out of any text that a driver or a server has answered with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from mainstem.errors import MainstemError, did_you_mean

MASK = "***"
_BEGIN = "${"
_REFERENCE = re.compile(r"\$\{(env|file):([^${}]+)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOREIGN = re.compile(r"\$\{([^{}:]*)")
_MOUNTED = Path("/run/secrets")
"""Where containers are given their secrets: the one folder outside of the project."""
_LONGEST = 65_536
_USER_PART = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#\s]*)@")
_LOOSE_USER_PART = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#\s@:]*:(?!\d+[/?#])\S*@")
_SECRET_WORD = re.compile(
    r"(?:^|[?&;\s])(?:ssl)?(?:password|passwd|pwd|passphrase|token|secret|api_?key)\s*=\s*([^&;\s]+)",
    re.IGNORECASE,
)


def has_reference(text: str) -> bool:
    """True when a part of the text stands for a secret."""
    return _REFERENCE.search(text) is not None


def reference_problem(text: str) -> str | None:
    """What is wrong with the references in a text; None: nothing."""
    rest = _REFERENCE.sub("", text)
    if _BEGIN in rest:
        match = _FOREIGN.search(rest)
        near = did_you_mean(match[1] if match else "", ("env", "file"))
        return f"a reference is written ${{env:NAME}} or ${{file:path}}.{near}"
    for kind, name in _REFERENCE.findall(text):
        if kind == "env" and not _NAME.fullmatch(name):
            return f'"{name}" is not the name of an environment variable'
    return None


def password_in(url: str) -> bool:
    """True when a URL or a list of settings says a password in plain text."""
    bare = _REFERENCE.sub("", url).removeprefix("jdbc:")
    if _SECRET_WORD.search(bare):
        return True
    user = _USER_PART.match(bare)
    if user is not None:
        return bool(user[1].partition(":")[2])
    return _LOOSE_USER_PART.match(bare) is not None


class Secrets:
    """Fills references in, and remembers what they stood for. Threads may share it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """`folder` is the project's, which paths are relative to and may not leave."""
        self.folder = folder.resolve()
        self._environment = environment
        self._seen: set[str] = set()

    def resolve(self, text: str) -> str:
        """The text with its references filled in; SECRET_MISSING when one of them is not there."""
        return _REFERENCE.sub(self._value, text)

    def mask(self, text: str) -> str:
        """The text without the secrets that were filled in."""
        for value in sorted(self._seen.copy(), key=len, reverse=True):
            text = text.replace(value, MASK)
        return text

    def _value(self, match: re.Match[str]) -> str:
        kind, name = match.groups()
        value = self._variable(name) if kind == "env" else self._file(name)
        if not value:
            raise _missing(kind, name, "it is empty")
        self._seen.add(value)
        # a driver's text may quote only this part of a URL, as it was or decoded
        found = _USER_PART.match(value)
        if found is not None and (password := found[1].partition(":")[2]):
            self._seen |= {password, unquote(password)}
        return value

    def _variable(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise _missing("env", name, "the variable is not set where Mainstem runs")
        return value

    def _file(self, name: str) -> str:
        path = (self.folder / name).resolve()
        if not any(path.is_relative_to(home) for home in (self.folder, _MOUNTED)):
            problem = f"the file is neither inside of the project nor below {_MOUNTED}"
            raise _missing("file", name, problem)
        try:
            with path.open(encoding="utf-8") as file:
                value = file.read(_LONGEST + 1)
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or "it is not UTF-8"
            raise _missing("file", name, f"the file cannot be read ({problem})") from None
        if len(value) > _LONGEST:
            raise _missing("file", name, f"the file is longer than {_LONGEST} characters")
        return value.rstrip("\r\n")


def _missing(kind: str, name: str, problem: str) -> MainstemError:
    return MainstemError("SECRET_MISSING", reference=f"${{{kind}:{name}}}", problem=problem)
