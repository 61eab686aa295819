"""Reads an Avro schema into types, by the rules of the specification (1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainstem.errors import MainstemError
from mainstem.schemas.avro_model import (
    MISSING,
    PRIMITIVES,
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
    kind,
)
from mainstem.schemas.avro_names import (
    INT_MAX,
    fits_default,
    full_name,
    is_full_name,
    is_name,
    logical_of,
)
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.references import gather
from mainstem.schemas.text import malformed, pointer, read_json

_TYPE_KEYS = frozenset(
    {"type", "name", "namespace", "aliases", "doc", "fields", "symbols", "size", "items", "values"}
)
_FIELD_KEYS = frozenset({"name", "type", "default", "aliases", "doc", "order"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class AvroSchema:
    """A schema that has been read: its type, and by name all types that it or its references name.

    `document` and `references` are the JSON as it was given, the references in an order in which
    each stands behind what it needs.
    """

    schema: Schema
    root: AvroType
    names: Mapping[str, Named]
    document: Any
    references: tuple[Any, ...]


def parse_avro(schema: Schema, resolve: Resolve) -> AvroSchema:
    """Reads the references, then the schema, into one space of names."""
    reader = _Reader()
    referred = []
    for name, reference in gather(schema, resolve).items():
        document = read_json(reference.text, SchemaType.AVRO)
        referred.append(document)
        try:
            reader.read_whole(document)
        except MainstemError as error:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN", name=name, problem=error.message
            ) from None
    document = read_json(schema.text, SchemaType.AVRO)
    root = reader.read_whole(document)
    return AvroSchema(schema, root, reader.names, document, tuple(referred))


class _Reader:
    """Names known so far; defaults are checked at the end, when all records have their fields."""

    def __init__(self) -> None:
        self.names: dict[str, Named] = {}
        self.defaults: list[tuple[Field, Path]] = []

    def read_whole(self, document: Any) -> AvroType:
        root = self.read(document, "", ())
        known: dict[tuple[int, int], bool] = {}
        for field, path in self.defaults:
            if not fits_default(field.default, field.type, known):
                raise _wrong((*path, "default"), f"no value of the type {kind(field.type)}")
        self.defaults.clear()
        return root

    def read(self, node: Any, space: str, path: Path) -> AvroType:
        match node:
            case str():
                return self.named(node, space, path)
            case list():
                return self.union(node, space, path)
            case {"type": str(type)} if type in _NAMED:
                return self.define(type, node, space, path)
            case {"type": "array"}:
                items = self.part(node, "items", space, path)
                return Array(items, _others(node, _TYPE_KEYS))
            case {"type": "map"}:
                values = self.part(node, "values", space, path)
                return Map(values, _others(node, _TYPE_KEYS))
            case {"type": str(type)} if type in PRIMITIVES:
                return Primitive(type, logical_of(type, 0, node), _others(node, {"type"}))
            case {"type": str(type)}:
                return self.named(type, space, (*path, "type"))
            case {"type": _}:
                raise _wrong((*path, "type"), "a type's own type is a name")
            case dict():
                raise _wrong(path, 'the key "type" is missing')
            case _:
                raise _wrong(path, "a type is a name, a list or an object")

    def named(self, name: str, space: str, path: Path) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        # inside a namespace a plain name may also be one without any
        found = self.names.get(full_name(name, space)) or self.names.get(name)
        if found is None:
            raise _wrong(path, f'the type "{name[:200]}" is not known here')
        return found

    def part(self, node: dict[str, Any], key: str, space: str, path: Path) -> AvroType:
        if key not in node:
            raise _wrong(path, f'the key "{key}" is missing')
        return self.read(node[key], space, (*path, key))

    def union(self, node: list[Any], space: str, path: Path) -> Union:
        branches: list[AvroType] = []
        seen: set[str] = set()
        for index, item in enumerate(node):
            branch = self.read(item, space, (*path, index))
            if isinstance(branch, Union):
                raise _wrong((*path, index), "a union cannot hold another one directly")
            label = branch.name if isinstance(branch, Named) else kind(branch)
            if label in seen:
                raise _wrong((*path, index), f"the union has {label} twice")
            seen.add(label)
            branches.append(branch)
        return Union(branches)

    def define(self, type: str, node: dict[str, Any], space: str, path: Path) -> Named:
        name = self.new_name(node, space, path)
        inner = name.rpartition(".")[0]
        aliases = _aliases(node, path, lambda alias: full_name(alias, inner))
        doc = _text(node, "doc", path)
        more = _others(node, _TYPE_KEYS)
        match type:
            case "fixed":
                size = node.get("size")
                if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= INT_MAX:
                    raise _wrong((*path, "size"), "a size is a whole number that is not negative")
                logical = logical_of("fixed", size, node)
                self.names[name] = fixed = Fixed(name, aliases, size, logical, doc, more)
                return fixed
            case "enum":
                self.names[name] = enum = _enum(name, aliases, node, doc, more, path)
                return enum
            case _:
                record = Record(name, aliases, [], doc, type == "error", more)
                self.names[name] = record
                record.fields += self.fields(node, inner, path)
                return record

    def new_name(self, node: dict[str, Any], space: str, path: Path) -> str:
        name, own = node.get("name"), node.get("namespace")
        if not is_full_name(name):
            raise _wrong((*path, "name"), "a name has letters, digits, _ and no digit first")
        assert isinstance(name, str)
        if own not in (None, "") and not is_full_name(own):
            raise _wrong((*path, "namespace"), "a namespace is made of names and dots")
        name = full_name(name, space if own is None else own)
        if name.rpartition(".")[2] in PRIMITIVES:
            raise _wrong((*path, "name"), f'"{name}" is the name of a primitive type')
        if name in self.names:
            raise _wrong((*path, "name"), f'"{name}" has been defined before')
        return name

    def fields(self, node: dict[str, Any], space: str, path: Path) -> list[Field]:
        given = node.get("fields")
        if not isinstance(given, list):
            raise _wrong((*path, "fields"), "a record has a list of fields")
        fields: list[Field] = []
        seen: set[str] = set()
        for index, item in enumerate(given):
            at = (*path, "fields", index)
            if not isinstance(item, dict) or not is_name(item.get("name")):
                raise _wrong(at, "a field has a name of letters, digits and _")
            name = item["name"]
            if name in seen:
                raise _wrong(at, f'the field "{name}" stands there twice')
            seen.add(name)
            if item.get("order", "ascending") not in ("ascending", "descending", "ignore"):
                raise _wrong((*at, "order"), "an order is ascending, descending or ignore")
            field = Field(
                name,
                self.part(item, "type", space, at),
                item.get("default", MISSING),
                _aliases(item, at, str),
                _text(item, "doc", at),
                item.get("order"),
                _others(item, _FIELD_KEYS),
            )
            if field.has_default:
                self.defaults.append((field, at))
            fields.append(field)
        return fields


def _enum(
    name: str,
    aliases: tuple[str, ...],
    node: dict[str, Any],
    doc: str | None,
    more: dict[str, Any],
    path: Path,
) -> Enum:
    symbols = node.get("symbols")
    if not isinstance(symbols, list) or not all(map(is_name, symbols)):
        raise _wrong((*path, "symbols"), "symbols are a list of names")
    if len(set(symbols)) < len(symbols):
        raise _wrong((*path, "symbols"), "a symbol stands there twice")
    default = more.pop("default", None)
    if default is not None and default not in symbols:
        raise _wrong((*path, "default"), "the default is none of the symbols")
    return Enum(name, aliases, tuple(symbols), default, doc, more)


def _aliases(node: dict[str, Any], path: Path, full: Any) -> tuple[str, ...]:
    given = node.get("aliases", [])
    if not isinstance(given, list) or not all(map(is_full_name, given)):
        raise _wrong((*path, "aliases"), "aliases are a list of names")
    return tuple(map(full, given))


def _text(node: dict[str, Any], key: str, path: Path) -> str | None:
    value = node.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong((*path, key), "this is a text")
    return value


def _others(node: dict[str, Any], known: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in known}


def _wrong(path: Path, problem: str) -> MainstemError:
    return malformed(SchemaType.AVRO, pointer(*path), problem)
