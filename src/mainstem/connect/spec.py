"""The description of a connector, from which its validation, its docs and its SQL options come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

from mainstem.connect.secrets import Secrets, has_reference, password_in, reference_problem
from mainstem.definitions.options import milliseconds
from mainstem.errors import MainstemError, did_you_mean

_SECRET = re.compile("password|secret|token|credential|api_?key", re.IGNORECASE)
"""In the name of an option that nobody has described: its value is not for others to see."""


class Role(StrEnum):
    """Which way records go through a connector."""

    SOURCE = "source"
    SINK = "sink"


class FieldKind(StrEnum):
    """What an option takes; the text is what the docs call it."""

    TEXT = "text"
    NAMES = "names, comma separated"
    """Becomes a tuple."""
    INTEGER = "whole number"
    NUMBER = "number"
    BOOLEAN = "true or false"
    INTERVAL = "interval"
    """Becomes milliseconds."""
    URL = "URL"
    """Without a password, but for a reference to one."""
    FILE = "file of the project"
    """Becomes its whole path where it is used."""


@dataclass(frozen=True, slots=True)
class Field:
    """One option of a connector. Values are as a user writes them, the default's, too."""

    name: str
    kind: FieldKind
    doc: str
    example: str
    default: str | None = None
    """None: the option may be left out and is then None, unless it is required."""
    required: bool = False
    secret: bool = False
    """True: only a reference is taken, such as `${env:PASSWORD}`."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    place: bool = False
    """True: it says where records are or go to. With another value a sink begins anew, and a
    source, whose position means nothing elsewhere, refuses it."""

    def read(self, text: str) -> Any:
        """The value of a text; ValueError with what is wrong with it, which never quotes it."""
        match self.kind:
            case FieldKind.TEXT | FieldKind.URL:
                value: Any = self._chosen(text)
            case FieldKind.FILE:
                value = _inside(text)
            case FieldKind.NAMES:
                value = tuple(part.strip() for part in text.split(","))
                if not all(value):
                    raise ValueError("a name is missing")
            case FieldKind.BOOLEAN:
                if text.lower() not in ("true", "false"):
                    raise ValueError("it is neither true nor false")
                value = text.lower() == "true"
            case FieldKind.INTERVAL:
                value = milliseconds(text)
                if value is None:
                    raise ValueError("it is not an interval such as '10 seconds'")
            case FieldKind.INTEGER | FieldKind.NUMBER:
                value = self._number(text)
        return value

    def _chosen(self, text: str) -> str:
        if not text.strip():
            raise ValueError("it is empty")
        if not self.choices:
            return text
        if text.lower() in self.choices:
            return text.lower()
        known = ", ".join(self.choices)
        raise ValueError(f"it is none of {known}.{did_you_mean(text, self.choices)}")

    def _number(self, text: str) -> float:
        whole = self.kind is FieldKind.INTEGER
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"it is not a {self.kind}") from None
        if not isfinite(value):
            raise ValueError("it is not finite")
        if self.least is not None and value < self.least:
            raise ValueError(f"it is less than {self.least:g}")
        if self.most is not None and value > self.most:
            raise ValueError(f"it is more than {self.most:g}")
        return value


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """A connector as a whole: what it is for, and its options."""

    name: str
    role: Role
    doc: str
    """A sentence for lists; more may follow behind an empty line."""
    fields: tuple[Field, ...]
    passed_on: str | None = None
    """What options begin with that go to the system outside as they are. The values have them
    under this name, without it."""

    @property
    def paragraphs(self) -> list[str]:
        """The text, each paragraph on one line."""
        parts = re.split(r"\n\s*\n", self.doc.strip())
        return [" ".join(part.split()) for part in parts]

    @property
    def statement(self) -> str:
        """A statement as an example: with all that is required."""
        head = "SOURCE shop" if self.role is Role.SOURCE else "SINK orders_out FROM orders"
        written = [("connector", self.name)]
        written += [(field.name, field.example) for field in self.fields if field.required]
        names = {name: f'"{name}"' if "." in name else name for name, _ in written}
        options = ",\n".join(f"  {names[name]} = '{value}'" for name, value in written)
        return f"CREATE {head} WITH (\n{options}\n);"

    def field(self, name: str) -> Field | None:
        """The option of that name."""
        return next((field for field in self.fields if field.name == name), None)

    def validate(self, written: Mapping[str, str]) -> dict[str, Any]:
        """The value of every option; what has a reference stays as it is written.

        An error has the option's name among its parameters (`option`), so that the caller can give
        it the option's place.
        """
        self._check_secrets(written)
        self._check_names(written)
        values = {}
        for field in self.fields:
            text = written.get(field.name, field.default)
            referring = text is not None and has_reference(text)
            values[field.name] = text if referring else self._read(field, text)
        return values | self._passed_on(written)

    def resolve(self, written: Mapping[str, str], secrets: Secrets) -> dict[str, Any]:
        """The value of every option, secrets filled in: for whoever connects, and nobody else."""
        self.validate(written)
        values = {}
        for field in self.fields:
            text = written.get(field.name, field.default)
            values[field.name] = self._resolved(field, text, secrets)
        passed = self._passed_on(written)
        return values | {
            name: {key: secrets.resolve(text) for key, text in given.items()}
            for name, given in passed.items()
        }

    def moved(self, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
        """The first option by which records are or go elsewhere; None: they do not."""
        for field in self.fields:
            old, new = (written.get(field.name, field.default) for written in (before, after))
            if field.place and old != new:
                return field.name
        return None

    def _passed_on(self, written: Mapping[str, str]) -> dict[str, dict[str, str]]:
        if self.passed_on is None:
            return {}
        start = self.passed_on
        given = {n.removeprefix(start): t for n, t in written.items() if n.startswith(start)}
        return {start: given}

    def _resolved(self, field: Field, text: str | None, secrets: Secrets) -> Any:
        if text is None or not has_reference(text):
            value = self._read(field, text)
            is_file = field.kind is FieldKind.FILE and value is not None
            return secrets.folder / value if is_file else value
        try:
            value = secrets.resolve(text)
        except MainstemError as error:
            error.params["option"] = field.name
            raise
        try:
            return field.read(value)
        except ValueError as problem:
            raise _invalid(field, text, str(problem)) from None

    def _read(self, field: Field, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return field.read(text)
        except ValueError as problem:
            raise _invalid(field, text, str(problem)) from None

    def _check_secrets(self, written: Mapping[str, str]) -> None:
        """Before anything else, so that no other error shows what should not have been written."""
        for name, text in written.items():
            if problem := reference_problem(text):
                raise MainstemError(
                    "INVALID_OPTION",
                    option=name,
                    value="${...}",  # the rest may be a secret in plain text
                    problem=problem,
                    advice="Correct the reference.",
                )
            field = self.field(name)
            secret = field.secret if field is not None else _SECRET.search(name) is not None
            plain = secret and not has_reference(text)
            if plain or password_in(text):
                raise MainstemError("SECRET_IN_PLAIN", option=name, variable=name.upper())

    def _check_names(self, written: Mapping[str, str]) -> None:
        known = [field.name for field in self.fields]
        for name in written:
            passed = self.passed_on is not None and name.startswith(self.passed_on)
            if name not in known and not passed:
                raise MainstemError(
                    "UNKNOWN_OPTION",
                    option=name,
                    what=f"the {self.role} connector {self.name}",
                    known=", ".join(known),
                    suggestion=did_you_mean(name, known),
                )
        for field in self.fields:
            if field.required and field.name not in written:
                raise MainstemError(
                    "MISSING_OPTION",
                    option=field.name,
                    what=f"the {self.role} connector {self.name}",
                    example=f"{field.name} = '{field.example}'",
                )


def _inside(text: str) -> str:
    """A path that does not lead out of the project."""
    path = PurePosixPath(text)
    if has_reference(text) or path.is_absolute() or ".." in path.parts or not path.name:
        raise ValueError("it is not the path of a file inside of the project")
    return str(path)


def _invalid(field: Field, text: str, problem: str) -> MainstemError:
    return MainstemError(
        "INVALID_OPTION",
        option=field.name,
        value=text,
        problem=problem,
        advice=f"Write for example {field.name} = '{field.example}'.",
    )
