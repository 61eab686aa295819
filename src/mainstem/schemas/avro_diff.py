"""The differences of two Avro schemas: fields meet by name or alias, types by their place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

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
)
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_rules import root_path
from mainstem.schemas.differences import Action, Difference, compare


def avro_differences(old: AvroSchema, new: AvroSchema) -> list[Difference]:
    """All differences, the outermost first."""
    found: list[Difference] = []
    seen: set[tuple[int, int]] = set()
    todo: deque[tuple[AvroType, AvroType, str]] = deque([(old.root, new.root, root_path(new.root))])
    while todo:
        before, after, path = todo.popleft()
        if (id(before), id(after)) in seen:
            continue
        seen.add((id(before), id(after)))
        match before, after:
            case Array(), Array():
                todo.append((before.items, after.items, f"{path}[]"))
            case Map(), Map():
                todo.append((before.values, after.values, f"{path}{{}}"))
            case Record(), Record():
                found += _named(before, after, path)
                found += _fields(before, after, path)
                todo += _pairs(before, after, path)
            case Enum(), Enum():
                found += _named(before, after, path)
                found += _symbols(before, after, path)
            case Fixed(), Fixed():
                found += _named(before, after, path)
                found += compare(path, "size", before.size, after.size)
                found += compare(path, "logical type", *_logical(before, after))
            case Primitive(), Primitive() if before.kind == after.kind:
                found += compare(path, "logical type", *_logical(before, after))
            case (Union(), _) | (_, Union()):
                found += _branches(before, after, path)
                todo += _branch_pairs(before, after, path)
            case _:
                found += compare(path, "type", describe(before), describe(after))
    return found


def _fields(before: Record, after: Record, path: str) -> Iterator[Difference]:
    sources = _sources(before, after)
    for field in after.fields:
        at, source = f"{path}.{field.name}", sources[field.name]
        if source is None:
            yield Difference(at, Action.ADDED, "field", None, _field(field))
            continue
        if source.name != field.name:
            yield Difference(at, Action.RENAMED, "field", source.name, field.name)
        if source.has_default != field.has_default:
            action = Action.ADDED if field.has_default else Action.REMOVED
            yield Difference(at, action, "default", _default(source), _default(field))
        elif source.default != field.default:
            yield Difference(at, Action.CHANGED, "default", source.default, field.default)
        yield from compare(at, "doc", source.doc, field.doc)
        yield from compare(at, "aliases", _list(source.aliases), _list(field.aliases))
        yield from compare(at, "attributes", source.properties or None, field.properties or None)
    kept = {source.name for source in sources.values() if source is not None}
    for field in before.fields:
        if field.name not in kept:
            yield Difference(f"{path}.{field.name}", Action.REMOVED, "field", _field(field), None)


def _pairs(before: Record, after: Record, path: str) -> Iterator[tuple[AvroType, AvroType, str]]:
    sources = _sources(before, after)
    for field in after.fields:
        source = sources[field.name]
        if source is not None:
            yield source.type, field.type, f"{path}.{field.name}"


def _sources(before: Record, after: Record) -> dict[str, Field | None]:
    """New field -> the old one that it was: of its name, or of an alias that no field has."""
    known = {field.name: field for field in before.fields}
    taken = {field.name for field in after.fields}
    found: dict[str, Field | None] = {}
    for field in after.fields:
        aliases = (known.get(alias) for alias in field.aliases if alias not in taken)
        found[field.name] = known.get(field.name) or next(filter(None, aliases), None)
    return found


def _named(before: Named, after: Named, path: str) -> Iterator[Difference]:
    if before.name != after.name:
        yield Difference(path, Action.RENAMED, kind(after), before.name, after.name)
    yield from compare(path, "doc", before.doc, after.doc)
    yield from compare(path, "aliases", _list(before.aliases), _list(after.aliases))


def _symbols(before: Enum, after: Enum, path: str) -> Iterator[Difference]:
    olds, news = set(before.symbols), set(after.symbols)
    for symbol in after.symbols:
        if symbol not in olds:
            yield Difference(path, Action.ADDED, "symbol", None, symbol)
    for symbol in before.symbols:
        if symbol not in news:
            yield Difference(path, Action.REMOVED, "symbol", symbol, None)
    yield from compare(path, "default", before.default, after.default)


def _branches(before: AvroType, after: AvroType, path: str) -> Iterator[Difference]:
    sources = _branch_sources(before, after)
    for branch, source in sources:
        if source is None:
            yield Difference(path, Action.ADDED, "type", None, describe(branch))
    kept = {id(source) for _, source in sources}
    for branch in _types(before):
        if id(branch) not in kept:
            yield Difference(path, Action.REMOVED, "type", describe(branch), None)


def _branch_pairs(
    before: AvroType, after: AvroType, path: str
) -> Iterator[tuple[AvroType, AvroType, str]]:
    in_union = isinstance(after, Union)
    for branch, source in _branch_sources(before, after):
        if source is not None:
            yield source, branch, f"{path}<{root_path(branch)}>" if in_union else path


def _branch_sources(before: AvroType, after: AvroType) -> list[tuple[AvroType, AvroType | None]]:
    """New type -> the old one that it was: of its full name, or else of its name alone."""
    olds = {_label(branch): branch for branch in _types(before)}
    found = {id(branch): olds.pop(_label(branch), None) for branch in _types(after)}
    left = {(kind(branch), root_path(branch)): branch for branch in olds.values()}
    for branch in _types(after):
        if found[id(branch)] is None:
            found[id(branch)] = left.pop((kind(branch), root_path(branch)), None)
    return [(branch, found[id(branch)]) for branch in _types(after)]


def _types(type: AvroType) -> list[AvroType]:
    return type.branches if isinstance(type, Union) else [type]


def _label(type: AvroType) -> tuple[str, str]:
    return kind(type), type.name if isinstance(type, Named) else ""


def _logical(before: AvroType, after: AvroType) -> tuple[str | None, str | None]:
    one, two = logical(before), logical(after)
    return str(one) if one else None, str(two) if two else None


def _field(field: Field) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": describe(field.type)}
    return {**shown, "default": field.default} if field.has_default else shown


def _default(field: Field) -> Any:
    return field.default if field.has_default else None


def _list(names: tuple[str, ...]) -> list[str] | None:
    return list(names) or None
