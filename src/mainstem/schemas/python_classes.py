"""The text of Python classes (pydantic): names that are free, fields with their defaults."""

from __future__ import annotations

import json
import keyword
import re
from typing import Any

from pydantic import BaseModel

MODULES = ("datetime", "decimal", "uuid")
_TAKEN = frozenset((*MODULES, "None", "bool", "int", "float", "bytes", "str", "list", "dict"))
"""What annotations mention: a field of that name would hide it."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_NOT_IN_A_FIELD = re.compile(r"\W", re.ASCII)

Member = tuple[str, str, str | None]
"""A field's name, its annotation, and its default if it has one."""


class Classes:
    """The classes that were needed so far; a record that contains itself is named, not repeated."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []

    def named(self, node: Any, wanted: str) -> tuple[str, bool]:
        """The name of a record's class, and whether it is still to be written."""
        if id(node) in self._names:
            return self._names[id(node)], False
        words = [word for word in _NOT_IN_A_NAME.split(wanted) if word]
        plain = "".join(word[0].upper() + word[1:] for word in words) or "Record"
        plain = plain if plain[0].isalpha() else f"Record{plain}"
        taken = {
            *self._names.values(),
            "Any",
            "Literal",
            "Field",
            "BaseModel",
            "ConfigDict",
            "None",
        }
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}{number}", number + 1
        self._names[id(node)] = name
        self._kept.append(node)  # an id is of use as long as its object is there
        return name, True

    def write(
        self,
        name: str,
        members: list[Member],
        about: str | None = None,
        *,
        closed: bool = False,
    ) -> None:
        """Adds the class of a record."""
        lines = [f"class {name}(BaseModel):"]
        if about:
            lines.append(f"    {text(about)}")
        names = _field_names([member for member, _, _ in members])
        options = ['extra="forbid"'] if closed else []
        if any(names[member] != member for member, _, _ in members):
            options += ["populate_by_name=True", "serialize_by_alias=True"]
        if options:
            lines.append(f"    model_config = ConfigDict({', '.join(options)})")
        # a field without a default may stand behind one with: they are given by name
        for member, type, default in members:
            value = f" = {default}" if default is not None else ""
            if names[member] != member:
                first = f"{default}, " if default is not None else ""
                value = f" = Field({first}alias={text(member)})"
            lines.append(f"    {names[member]}: {type}{value}")
        if len(lines) == 1:
            lines.append("    pass")
        self.texts.append("\n".join(lines))


def _field_names(members: list[str]) -> dict[str, str]:
    """Names that Python, pydantic and the annotations leave free."""
    found: dict[str, str] = {}
    used = set(members)
    for member in members:
        name = _NOT_IN_A_FIELD.sub("_", member).lstrip("_") or "field"
        name = f"field_{name}" if name[0].isdigit() else name
        # a name with a capital may be that of a class
        if (
            keyword.iskeyword(name)
            or name in _TAKEN
            or name[0].isupper()
            or hasattr(BaseModel, name)
        ):
            name += "_"
        while name != member and (name in used or name in found.values()):
            name += "_"
        found[member] = name
    return found


def either(types: list[str]) -> str:
    """A union, null last."""
    plain = list(dict.fromkeys(types))
    if "Any" in plain:
        return "Any"
    return " | ".join(sorted(plain, key=lambda type: type == "None"))


def text(value: str) -> str:
    """A literal, which JSON's texts are, too."""
    return json.dumps(value, ensure_ascii=False)
