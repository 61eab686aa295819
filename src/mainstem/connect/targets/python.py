"""Rows of a sink to a class of the project, at least once.

What happens to a part of a batch:

1. The file is read and run, unless this worker has done so with the same text; an object of the
   class is made, and its `open` called.
2. `write` is called with the rows as they come. Crash: the part comes again from its first row, to
   another object. What `write` says of rows, or raises if `on_error` says so, becomes poison.
3. `finish` is called, then `close`; the latter in any case. Crash behind it: as in 2, unless the
   token of the part is there.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.target import (
    DELETED,
    GONE,
    OFFSET,
    PARTITION,
    TIME,
    TOPIC,
    Form,
    Part,
    Poison,
    Shape,
    mismatch,
    poison_at,
    unreachable,
)
from mainstem.definitions.python_source import PythonSource
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import SourceLocation

GUARANTEE = (
    "at least once: after a failure rows come again to the class, which can tell them by their "
    "offsets"
)
KEYED = False

PASSED_ON = "option."
_METADATA = {"_topic": TOPIC, "_partition": PARTITION, "_offset": OFFSET, "_time": TIME}
_USER_ERRORS = (Exception, SystemExit)
_LONGEST = 300
_loaded: dict[str, ModuleType] = {}
"""By the hash of a file's text. What a module keeps, such as connections, lives as long as the
worker does."""


def form(options: Mapping[str, Any]) -> Form:
    """Columns with their types."""
    return Form.COLUMNS


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the file has such a class; nothing of it is run."""
    file, name = _shown(options), options["class"]
    try:
        source = PythonSource(file, options["file"].read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _invalid("file", file, f"it cannot be read: {problem}") from None
    found = source.classes.get(name)
    if found is None:
        known = sorted(source.classes)
        problem = f"{file} has no such class.{did_you_mean(name, known)}"
        raise _invalid("class", name, problem)
    methods = {node.name for node in found.body if isinstance(node, ast.FunctionDef)}
    if "write" not in methods and not found.bases:
        raise _invalid("class", name, f"the class has no method write ({file}:{found.lineno})")
    taken = {*_METADATA, DELETED} & {column.name.lower() for column in shape.columns}
    if taken:
        name = min(taken)
        advice = "Give the column another name: TRANSFORM (rename(...))."
        raise mismatch(f"class {options['class']}", f'"{name}" is a column of ours', advice)


def open_target(options: Mapping[str, Any], shape: Shape) -> PythonTarget:
    """The target for one task."""
    return PythonTarget(options, shape)


class PythonTarget:
    """One part of a batch: one object of the class."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._aside = options["on_error"] == "quarantine"
        self._made: Any = None

    def open(self, part: Part) -> None:
        """Makes the object."""
        file = _shown(self._options)
        try:
            text = self._options["file"].read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self._failed(f"{file} cannot be read: {_text(error)}", None) from None
        kind = getattr(self._ask(_load, text, file), self._options["class"], None)
        if kind is None:
            raise self._failed(f"{file} has no such class any more", None)
        self._made = self._ask(kind, dict(self._options[PASSED_ON]))
        if hasattr(self._made, "open"):
            self._ask(self._made.open, part.sink, part.batch)

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Hands the rows over."""
        return self._by_halves(rows)

    def finish(self) -> Sequence[Poison]:
        """Lets the object bring to an end what it has begun."""
        if hasattr(self._made, "finish"):
            self._ask(self._made.finish)
        return []

    def close(self) -> None:
        """Lets go of the object; what it raises now changes nothing of what `finish` has said."""
        made, self._made = self._made, None
        if hasattr(made, "close"):
            with suppress(*_USER_ERRORS):
                made.close()

    def _by_halves(self, rows: pa.Table) -> list[Poison]:
        try:
            answer = self._made.write(self._view(rows))
            # a generator does its work only now
            said = list(answer) if isinstance(answer, Iterable) else answer
        except OSError as error:  # what it writes to is away: no row is to blame
            raise self._away(error) from None
        except _USER_ERRORS as error:
            if not self._aside:
                raise self._failed(_text(error), error) from None
            if rows.num_rows == 1:
                return [poison_at(rows, 0, _text(error))]
        else:
            return self._said(rows, said)
        half = rows.num_rows // 2
        return [*self._by_halves(rows.slice(0, half)), *self._by_halves(rows.slice(half))]

    def _said(self, rows: pa.Table, answer: Any) -> list[Poison]:
        """What `write` returned as poison."""
        try:
            pairs = [(int(number), str(cause)) for number, cause in answer or ()]
        except (TypeError, ValueError):
            pairs = [(-1, "")]
        if any(not 0 <= number < rows.num_rows for number, _ in pairs):
            problem = "write returns neither None nor pairs of a row's number and a cause"
            raise self._failed(problem, None)
        return [poison_at(rows, number, cause[:_LONGEST]) for number, cause in pairs]

    def _view(self, rows: pa.Table) -> pa.Table:
        """The rows as the class gets to see them."""
        columns = {column.name: rows[column.name] for column in self._shape.columns}
        columns |= {name: rows[hidden] for name, hidden in _METADATA.items()}
        if self._shape.deletes:
            columns[DELETED] = rows[GONE]
        return pa.table(columns)

    def _ask(self, question: Callable[..., Any], *given: Any) -> Any:
        try:
            return question(*given)
        except OSError as error:
            raise self._away(error) from None
        except _USER_ERRORS as error:
            raise self._failed(_text(error), error) from None

    def _away(self, error: OSError) -> MainstemError:
        return unreachable(f"what class {self._options['class']} writes to", _text(error))

    def _failed(self, problem: str, error: BaseException | None) -> MainstemError:
        file = _shown(self._options)
        place = None if error is None else _line(error, file)
        name = self._options["class"]
        return MainstemError(
            "SINK_CODE_FAILED", location=place, name=name, problem=problem, file=file
        )


def _load(text: str, file: str) -> ModuleType:
    """The module of a file with that text."""
    version = sha256(text.encode()).hexdigest()
    module = _loaded.get(version)
    if module is None:
        module = ModuleType(f"mainstem_connectors_{version[:16]}")
        sys.modules[module.__name__] = module  # dataclasses look their module up
        # the project's own code: whoever may apply may run it
        exec(compile(text, file, "exec"), module.__dict__)  # noqa: S102
        _loaded[version] = module
    return module


def _shown(options: Mapping[str, Any]) -> str:
    """The file as it is known in the project."""
    path: Path = options["file"]
    return f"{path.parent.name}/{path.name}"


def _invalid(option: str, value: str, problem: str) -> MainstemError:
    advice = "docs/connectors.md says what such a class looks like."
    return MainstemError(
        "INVALID_OPTION", option=option, value=value, problem=problem, advice=advice
    )


def _line(error: BaseException, file: str) -> SourceLocation | None:
    """The last line of the user's file that was running."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file and frame.lineno is not None:
            return SourceLocation(file, frame.lineno, (frame.colno or 0) + 1, frame.line or "")
    return None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")[:_LONGEST]
