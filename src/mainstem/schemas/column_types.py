"""What of a schema's fields becomes columns: shared by all types of schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mainstem.schemas.sql_names import sql_name

MOST_DIGITS = 38
MOST_LEVELS = 32
_MOST_TYPES = 10_000


class NotMapped(ValueError):
    """No column type holds it; the text says why."""


class Way:
    """How one field is walked through: never into itself, nor for ever where types are shared."""

    def __init__(self) -> None:
        self._inside: list[Any] = []
        self._left = _MOST_TYPES

    @contextmanager
    def into(self, node: Any) -> Iterator[None]:
        """While the inside of a type is looked at."""
        self._left -= 1
        if any(node is outer for outer in self._inside):
            raise NotMapped("it contains itself")
        if self._left < 0 or len(self._inside) >= MOST_LEVELS:
            raise NotMapped("it is too large")
        self._inside.append(node)
        yield
        self._inside.pop()


@dataclass(frozen=True)
class Columns:
    """Names and types as a definition has them; `left_out` is a path with the reason."""

    columns: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def collected(
    members: Iterable[tuple[str, Callable[[], str]]], alike: Callable[[str], str] = str.lower
) -> Columns:
    """The columns that can be; `alike` is equal for names that cannot stand beside each other."""
    columns: list[tuple[str, str]] = []
    left_out: list[tuple[str, str]] = []
    names: set[str] = set()
    for name, type_of in members:
        try:
            if alike(name) in names:
                raise NotMapped("another field has the same name but for its case")
            columns.append((name, type_of()))
            names.add(alike(name))
        except NotMapped as problem:
            left_out.append((name, str(problem)))
    return Columns(tuple(columns), tuple(left_out))


def struct(members: Iterable[tuple[str, str]]) -> str:
    """The type of a record inside a column."""
    given = list(members)
    if not given:
        raise NotMapped("a record without fields")
    if len({name.lower() for name, _ in given}) < len(given):
        raise NotMapped("two fields have the same name but for its case")
    return f"STRUCT<{', '.join(f'{sql_name(name)}: {type}' for name, type in given)}>"
