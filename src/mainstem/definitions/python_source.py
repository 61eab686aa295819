"""The source text of a Python file: its tree, its imports, its places, and what a function needs.

Nothing here runs the text. A function's version is a hash of its own tree and of everything at
the top of the file that it can reach, so that a change elsewhere in the file leaves it alone.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Iterator
from functools import cached_property

from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

_WORD = re.compile(r"[^\W\d]\w*")
_LONGEST_ANNOTATION = 200
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class PythonSource:
    """One Python file as text and as a tree."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines = text.splitlines()
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            place = self._location(error.lineno or 1, error.offset or 1)
            raise _invalid(place, f"this is not Python: {error.msg}") from None
        except (ValueError, RecursionError) as error:  # a zero byte; nesting without end
            raise _invalid(self._location(1, 1), f"this is not Python: {error}") from None

    def location(self, node: ast.expr | ast.stmt | ast.arg) -> SourceLocation:
        """Where a node begins; columns count characters, as everywhere."""
        line = self._lines[node.lineno - 1] if node.lineno <= len(self._lines) else ""
        return self._location(node.lineno, len(line.encode()[: node.col_offset].decode()) + 1)

    def offset(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Where a node begins, as an offset in the text."""
        before = self.text.splitlines(keepends=True)[: node.lineno - 1]
        line = self._lines[node.lineno - 1]
        return sum(map(len, before)) + len(line.encode()[: node.col_offset].decode())

    def error(self, node: ast.expr | ast.stmt | ast.arg, problem: str, advice: str) -> Exception:
        """INVALID_FUNCTION at a node."""
        return _invalid(self.location(node), problem, advice)

    @cached_property
    def imports(self) -> dict[str, str]:
        """What names at the top of the file stand for: `dt` -> `datetime`."""
        found: dict[str, str] = {}
        for node in self.tree.body:
            match node:
                case ast.Import(names=names):
                    for name in names:
                        whole = name.name if name.asname else name.name.split(".")[0]
                        found[name.asname or whole] = whole
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    for name in names:
                        found[name.asname or name.name] = f"{module}.{name.name}"
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes at the top of the file."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    def dotted(self, node: ast.expr) -> str | None:
        """The full name that an expression such as `dt.date` stands for; None for others."""
        match node:
            case ast.Name(id=name):
                return self.imports.get(name, name)
            case ast.Attribute(value=value, attr=attribute):
                before = self.dotted(value)
                return None if before is None else f"{before}.{attribute}"
            case _:
                return None

    def needed(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """The statements at the top of the file that the function can reach, itself included."""
        wanted: list[ast.stmt] = [function]
        for statement in wanted:
            used = _used(statement)
            for other in self.tree.body:
                bound = _binds(other)
                if other not in wanted and (bound is None or bound & used):
                    wanted.append(other)
        return [node for node in self.tree.body if node in wanted]

    def excerpt(self, statements: list[ast.stmt]) -> str:
        """The lines of these statements, at their places; all other lines are empty."""
        kept = set[int]()
        for node in statements:
            above = [d.lineno for d in getattr(node, "decorator_list", ())]
            kept.update(range(min([node.lineno, *above]), (node.end_lineno or node.lineno) + 1))
        lines = (line if number in kept else "" for number, line in enumerate(self._lines, 1))
        return "\n".join(lines).rstrip() + "\n"

    def _location(self, line: int, column: int) -> SourceLocation:
        snippet = self._lines[line - 1] if line <= len(self._lines) else ""
        return SourceLocation(self.file, line, column, snippet)


def _invalid(
    location: SourceLocation, problem: str, advice: str = "Correct the file at the marked place."
) -> MainstemError:
    return MainstemError("INVALID_FUNCTION", location=location, problem=problem, advice=advice)


def _binds(statement: ast.stmt) -> frozenset[str] | None:
    """Names that a statement at the top of a file gives a meaning; None when it may do more."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset((name,))
        case ast.ImportFrom(module="__future__"):
            return None
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            if any(name.name == "*" for name in names):
                return None
            return frozenset((name.asname or name.name).split(".")[0] for name in names)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return frozenset()
        case ast.Assign(targets=targets):
            return _names(targets)
        case ast.AnnAssign(target=target):
            return _names([target])
        case _:
            return None


def _names(targets: list[ast.expr]) -> frozenset[str] | None:
    found: set[str] = set()
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for part in parts:
            if not isinstance(part, ast.Name):
                return None
            found.add(part.id)
    return frozenset(found)


def _used(statement: ast.stmt) -> set[str]:
    """Names in a statement, those in annotations that are written as strings, too."""
    if isinstance(statement, ast.FunctionDef):
        arguments = [n for n in ast.walk(statement.args) if isinstance(n, ast.arg)]
        head = [statement.args, statement.returns, *statement.decorator_list]
        inside = (n.id for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Name))
        # what is called like a parameter is the parameter; a text inside is no annotation
        own = set(inside) - {argument.arg for argument in arguments}
        return own.union(*(_mentioned(part) for part in head if part is not None))
    return _mentioned(statement)


def _mentioned(tree: ast.AST) -> set[str]:
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.update(_WORD.findall(node.value[:_LONGEST_ANNOTATION]))
    return used


def narrowed(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, imports without the names that none of the others uses."""
    imports = (ast.Import, ast.ImportFrom)
    used = set[str]().union(*(_used(s) for s in statements if not isinstance(s, imports)))
    found: list[ast.stmt] = []
    for statement in statements:
        match statement:
            case ast.ImportFrom(module="__future__"):
                pass  # what it changes are annotations
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                kept = [n for n in names if (n.asname or n.name).split(".")[0] in used | {"*"}]
                if kept:
                    copied = copy.copy(statement)
                    copied.names = kept
                    found.append(copied)
            case _:
                found.append(statement)
    return found


def version_of(statements: list[ast.stmt]) -> str:
    """A hash of what the statements say; layout, comments and documentation do not count."""
    text = "\n".join(map(_normal, statements))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _normal(node: ast.stmt) -> str:
    """The tree as text, without places, comments and documentation."""
    copy = ast.parse(ast.unparse(node))
    for inner in ast.walk(copy):
        if isinstance(inner, _DOCUMENTED) and ast.get_docstring(inner, clean=False) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    return ast.dump(copy)


def walk_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file, nested ones and methods, too."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
