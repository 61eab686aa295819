"""What an Avro reader cannot read: schema resolution as the specification has it.

Beyond the specification's text, two logical types that both are valid and differ are a break: the
bytes would be read, and mean something else (seconds for days, hundredths for units).

No recursion: types may refer to one another in chains as long as a schema is large.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from mainstem.schemas.avro_model import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    describe,
    kind,
    logical,
    unqualified,
)
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.breaks import MAX_BREAKS, Break

PROMOTIONS: Final = {
    # writer -> readers, beside the type itself, the nearest first
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def avro_breaks(reader: AvroSchema, writer: AvroSchema) -> list[Break]:
    """All breaks, the outermost first."""
    walk = _Walk()
    walk.meet(reader.root, writer.root, root_path(reader.root))
    return walk.run()


def root_path(type: AvroType) -> str:
    """How the path of a schema starts."""
    return unqualified(type.name) if isinstance(type, Named) else kind(type)


def same_name(reader: Named, writer: Named) -> bool:
    """Names match without their namespaces, or by an alias of the reader."""
    return unqualified(reader.name) == unqualified(writer.name) or writer.name in reader.aliases


class _Walk:
    """Pairs of a reader's and a writer's type that are still to be compared."""

    def __init__(self) -> None:
        self.todo: deque[tuple[AvroType, AvroType, str]] = deque()
        self.seen: set[tuple[int, int]] = set()
        self.found: list[Break] = []
        self.choices: dict[int, Callable[[AvroType], AvroType | None]] = {}

    def run(self) -> list[Break]:
        while self.todo and len(self.found) < MAX_BREAKS:
            self.compare(*self.todo.popleft())
        return self.found

    def meet(self, reader: AvroType, writer: AvroType, path: str) -> None:
        pair = (id(reader), id(writer))
        if pair not in self.seen:
            self.seen.add(pair)
            self.todo.append((reader, writer, path))

    def add(self, path: str, kind: str, reason: str) -> None:
        self.found.append(Break(path, kind, reason))

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> None:
        match reader, writer:
            case _, Union():
                for branch in writer.branches:
                    self.meet(reader, branch, path)
            case Union(), _:
                self.into_union(reader, writer, path)
            case Array(), Array():
                self.meet(reader.items, writer.items, f"{path}[]")
            case Map(), Map():
                self.meet(reader.values, writer.values, f"{path}{{}}")
            case Record(), Record():
                self.names(reader, writer, path)
                self.records(reader, writer, path)
            case Enum(), Enum():
                self.names(reader, writer, path)
                self.enums(reader, writer, path)
            case Fixed(), Fixed():
                self.names(reader, writer, path)
                if reader.size != writer.size:
                    sizes = f"{writer.size} bytes are written, {reader.size} are expected"
                    self.add(path, "FIXED_SIZE_MISMATCH", sizes)
                self.logical_types(reader, writer, path)
            case Primitive(), Primitive() if _promotes(reader.kind, writer.kind):
                self.logical_types(reader, writer, path)
            case _:
                types = f"{describe(writer)} is written, {describe(reader)} is expected"
                self.add(path, "TYPE_MISMATCH", types)

    def into_union(self, reader: Union, writer: AvroType, path: str) -> None:
        if id(reader) not in self.choices:
            self.choices[id(reader)] = _chooser(reader)
        branch = self.choices[id(reader)](writer)
        if branch is None:
            missing = f"the union {describe(reader)} has no branch for {describe(writer)}"
            self.add(path, "MISSING_UNION_BRANCH", missing)
        else:
            self.meet(branch, writer, f"{path}<{root_path(branch)}>")

    def names(self, reader: Named, writer: Named, path: str) -> None:
        if not same_name(reader, writer):
            names = f"{writer.name} is written, {reader.name} is expected and has no such alias"
            self.add(path, "NAME_MISMATCH", names)

    def enums(self, reader: Enum, writer: Enum, path: str) -> None:
        known = set(reader.symbols)
        missing = [symbol for symbol in writer.symbols if symbol not in known]
        if missing and reader.default is None:
            listed = ", ".join(missing[:20]) + (" ..." if len(missing) > 20 else "")
            reason = f"the symbols {listed} are written, are not known and have no default"
            self.add(path, "MISSING_ENUM_SYMBOLS", reason)

    def records(self, reader: Record, writer: Record, path: str) -> None:
        written = {field.name: field for field in writer.fields}
        # the reader's aliases rename what was written, before names are compared
        renamed = {alias: f.name for f in reader.fields for alias in f.aliases if alias in written}
        for field in reader.fields:
            at = f"{path}.{field.name}"
            sources = [alias for alias in field.aliases if alias in written]
            if field.name in written and renamed.get(field.name, field.name) == field.name:
                sources.append(field.name)
            match [*dict.fromkeys(sources)]:
                case []:
                    self.no_source(field, at)
                case [name]:
                    self.meet(field.type, written[name].type, at)
                case names:
                    both = f"the written fields {', '.join(names)} are all this field"
                    self.add(at, "FIELD_ALIAS_AMBIGUOUS", both)

    def no_source(self, field: Field, path: str) -> None:
        if not field.has_default:
            reason = f"the field {field.name} is not written, and has no default"
            self.add(path, "READER_FIELD_MISSING_DEFAULT_VALUE", reason)

    def logical_types(self, reader: AvroType, writer: AvroType, path: str) -> None:
        expected, written = logical(reader), logical(writer)
        if expected is None or written is None or expected == written:
            return
        reason = f"{written} is written, {expected} is expected: the same bytes mean another value"
        self.add(path, "LOGICAL_TYPE_MISMATCH", reason)


def _promotes(reader: str, writer: str) -> bool:
    return reader == writer or reader in PROMOTIONS.get(writer, ())


def _chooser(union: Union) -> Callable[[AvroType], AvroType | None]:
    """Finds the branch for a writer's type without a look at each, since unions can be large."""
    kinds: dict[str, AvroType] = {}
    names: dict[tuple[str, str], Named] = {}
    for branch in union.branches:
        if not isinstance(branch, Named):
            kinds[kind(branch)] = branch
    # a full name counts before an alias, and both before a name without its namespace
    for get in (
        lambda type: (type.name,),
        lambda type: type.aliases,
        lambda type: (f"~{unqualified(type.name)}",),
    ):
        for branch in union.branches:
            if isinstance(branch, Named):
                for name in get(branch):
                    names.setdefault((kind(branch), name), branch)

    def choose(writer: AvroType) -> AvroType | None:
        own = kind(writer)
        if isinstance(writer, Named):
            exact = names.get((own, writer.name))
            return exact or names.get((own, f"~{unqualified(writer.name)}"))
        found = (kinds.get(other) for other in (own, *PROMOTIONS.get(own, ())))
        return next((branch for branch in found if branch is not None), None)

    return choose
