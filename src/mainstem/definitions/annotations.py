"""Python annotations -> Spark types, from the source text alone."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source
from mainstem.definitions.python_source import PythonSource
from mainstem.definitions.types import read_type
from mainstem.errors import MainstemError, did_you_mean

_SIMPLE = {
    "str": "string",
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "bytes": "binary",
    "decimal.Decimal": "decimal(38,18)",
    "datetime.date": "date",
    "datetime.datetime": "timestamp",
}
_LISTS = ("list", "typing.List")
_MAPS = ("dict", "typing.Dict")
_ROWS = (
    *_LISTS,
    *(f"{m}.{n}" for m in ("typing", "collections.abc") for n in ("Iterator", "Iterable")),
)
_GENERATORS = ("typing.Generator", "collections.abc.Generator")
_RECORDS = ("typing.NamedTuple", "typing.TypedDict", "typing_extensions.TypedDict")
ARRAYS = ("pyarrow.Array", "pyarrow.ChunkedArray")
_ADVICE = (
    "Use str, int, float, bool, bytes, Decimal, date, datetime, list[...], dict[str, ...], a "
    'dataclass, NamedTuple or TypedDict of this file, or Annotated[..., "an SQL type"].'
)
_TYPES = "Write a column type as in CREATE STREAM: bigint, decimal(10,2), array<string>."
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an annotation says: Spark's short form, and whether None is in it."""

    type: str
    nullable: bool
    python: str
    """Full name of the Python type, such as `pyarrow.Array`."""


class Annotations:
    """Reads the annotations of one file."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        self._open: list[str] = []
        """Classes whose fields are being read."""

    def read(self, node: ast.expr) -> Annotation:
        """What an annotation says."""
        node = self._plain(node)
        choices = [c for c in self._choices(node) if not _is_none(c)]
        nullable = len(choices) < len(self._choices(node))
        if len(choices) != 1:
            raise self._unknown(node)
        return self._one(self._plain(choices[0]), nullable)

    def rows(self, node: ast.expr) -> str:
        """The struct of the rows that a function gives."""
        node = self._plain(node)
        match node:
            case ast.Subscript(value=outer, slice=inner):
                kind = self._source.dotted(outer)
                if kind in _GENERATORS and isinstance(inner, ast.Tuple) and inner.elts:
                    inner = inner.elts[0]
                if kind in _ROWS or kind in _GENERATORS:
                    found = self.read(inner)
                    if found.type.startswith("struct<") and not found.nullable:
                        return found.type
        raise self._source.error(
            node,
            "the function gives rows",
            "Annotate it with Iterator[Row] or list[Row], Row being a dataclass, NamedTuple or "
            "TypedDict of this file.",
        )

    def _one(self, node: ast.expr, nullable: bool) -> Annotation:
        name = self._source.dotted(node)
        match node:
            case ast.Name() | ast.Attribute() if name in _SIMPLE:
                return Annotation(_SIMPLE[name], nullable, name)
            case ast.Name(id=local) if local in self._source.classes:
                return Annotation(self._struct(self._source.classes[local]), nullable, local)
            case ast.Subscript(value=outer, slice=inner):
                return self._generic(node, self._source.dotted(outer) or "", inner, nullable)
        if name in ARRAYS:
            raise self._source.error(
                node,
                "an array needs the type of its values",
                'Write Annotated[pa.Array, "bigint"], with the SQL type of the values.',
            )
        raise self._unknown(node)

    def _generic(self, node: ast.expr, outer: str, inner: ast.expr, nullable: bool) -> Annotation:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if outer == "typing.Annotated" and len(parts) >= 2:
            return self._annotated(parts, nullable)
        if outer in _LISTS and len(parts) == 1:
            return Annotation(f"array<{self.read(parts[0]).type}>", nullable, "list")
        if outer in _MAPS and len(parts) == 2:
            key, value = self.read(parts[0]), self.read(parts[1])
            return Annotation(f"map<{key.type},{value.type}>", nullable, "dict")
        raise self._unknown(node)

    def _annotated(self, parts: list[ast.expr], nullable: bool) -> Annotation:
        base = [c for c in self._choices(self._plain(parts[0])) if not _is_none(c)]
        nullable = nullable or len(base) < len(self._choices(self._plain(parts[0])))
        for part in parts[1:]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                python = self._source.dotted(base[0]) if len(base) == 1 else None
                return Annotation(self._sql_type(part, part.value), nullable, python or "")
        raise self._unknown(parts[0])

    def _sql_type(self, node: ast.expr, text: str) -> str:
        source = Source(text)
        try:
            tokens = source.statements()
            if len(tokens) == 1:
                cursor = Cursor(source, tokens[0])
                found = read_type(cursor, "annotation")
                cursor.finish()
                return found
        except MainstemError:
            pass  # the place of the annotation tells more than a place within it
        raise self._source.error(node, f'"{text}" is not an SQL type', _TYPES)

    def _struct(self, node: ast.ClassDef) -> str:
        if node.name in self._open:
            raise self._source.error(
                node, f'"{node.name}" contains itself', "A column has a type of finite depth."
            )
        bases = [self._source.dotted(base) for base in node.bases]
        decorators = [
            self._source.dotted(d.func if isinstance(d, ast.Call) else d)
            for d in node.decorator_list
        ]
        is_record = len(bases) == 1 and bases[0] in _RECORDS
        is_dataclass = not bases and "dataclasses.dataclass" in decorators
        if not (is_record or is_dataclass):
            raise self._source.error(
                node,
                f'"{node.name}" is not a type of rows',
                "Make it a dataclass without a base class, a NamedTuple or a TypedDict.",
            )
        self._open.append(node.name)
        fields: dict[str, str] = {}
        for item in node.body:
            match item:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    if name.lower() in fields or not _PLAIN.fullmatch(name):
                        raise self._source.error(
                            item,
                            f'"{name}" cannot be a field',
                            "Fields have names of ASCII letters, digits and underscores that "
                            "differ by more than case.",
                        )
                    fields[name.lower()] = f"{name}:{self.read(annotation).type}"
        self._open.pop()
        if not fields:
            raise self._source.error(node, f'"{node.name}" has no fields', "Add some: name: type.")
        return f"struct<{','.join(fields.values())}>"

    def _plain(self, node: ast.expr) -> ast.expr:
        """The annotation itself when it is written as a string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value.strip(), mode="eval").body
            except (SyntaxError, ValueError):
                raise self._unknown(node) from None
            for part in ast.walk(inner):  # all of it stands where the string stands
                if isinstance(part, ast.expr):
                    part.lineno, part.col_offset = node.lineno, node.col_offset
            return inner
        return node

    def _choices(self, node: ast.expr) -> list[ast.expr]:
        """The parts of `X | None`, `Optional[X]` and `Union[X, None]`."""
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return [*self._choices(left), *self._choices(right)]
            case ast.Subscript(value=outer, slice=inner):
                name = self._source.dotted(outer)
                if name == "typing.Optional":
                    return [*self._choices(inner), ast.Constant(None)]
                if name == "typing.Union":
                    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        return [node]

    def _unknown(self, node: ast.expr) -> Exception:
        text = ast.unparse(node)
        known = [*_SIMPLE, "Decimal", "date", "datetime", *self._source.classes]
        near = did_you_mean(text, known) if len(text) > 2 else ""
        return self._source.error(node, f'"{text}" has no SQL type', _ADVICE + near)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
