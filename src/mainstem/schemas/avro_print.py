"""Prints Avro types as JSON: each named type where it stands first, by its name afterwards."""

from __future__ import annotations

from collections.abc import Container, Mapping
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
    namespace,
    unqualified,
)
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.text import MAX_DEPTH, too_deep


def with_references(parsed: AvroSchema) -> Any:
    """One document that needs no other: what the references define is where it is used first."""
    return _Printer(known=(), sort=False).type(parsed.root, "", 0)


def without_references(parsed: AvroSchema, *, sort: bool = False) -> Any:
    """The document in one way of writing it; `sort`: with what has no order in one order, too."""
    own = _own_names(parsed.document)
    known = parsed.names.keys() - own
    return _Printer(known=known, sort=sort).type(parsed.root, "", 0)


def _own_names(document: Any) -> set[str]:
    """Full names that a document defines."""
    names: set[str] = set()
    todo: list[tuple[Any, str]] = [(document, "")]
    while todo:
        node, space = todo.pop()
        match node:
            case list():
                todo += [(item, space) for item in node]
            case {"type": "record" | "error" | "enum" | "fixed", "name": str(name)}:
                own = node.get("namespace", space)
                full = name if "." in name or not own else f"{own}.{name}"
                names.add(full)
                for field in node.get("fields", ()):
                    todo.append((field["type"], namespace(full)))
            case {"type": "array"}:
                todo.append((node["items"], space))
            case {"type": "map"}:
                todo.append((node["values"], space))
    return names


class _Printer:
    def __init__(self, known: Container[str], sort: bool) -> None:
        self.known = known
        self.sort = sort
        self.printed: set[str] = set()

    def type(self, type: AvroType, space: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise too_deep(MAX_DEPTH)
        match type:
            case Primitive():
                more = self.more(type.properties)
                return {"type": type.kind, **more} if more else type.kind
            case Array():
                items = self.type(type.items, space, depth + 1)
                return {"type": "array", "items": items, **self.more(type.properties)}
            case Map():
                values = self.type(type.values, space, depth + 1)
                return {"type": "map", "values": values, **self.more(type.properties)}
            case Union():
                return [self.type(branch, space, depth + 1) for branch in type.branches]
            case Record() | Enum() | Fixed():
                return self.named(type, space, depth)

    def named(self, type: Named, space: str, depth: int) -> Any:
        own = namespace(type.name)
        if type.name in self.known or type.name in self.printed:
            return unqualified(type.name) if own == space else type.name
        self.printed.add(type.name)
        kind = "error" if isinstance(type, Record) and type.error else type.__class__.__name__
        node: dict[str, Any] = {"type": kind.lower(), "name": unqualified(type.name)}
        if own != space:
            node["namespace"] = own
        if type.doc is not None:
            node["doc"] = type.doc
        match type:
            case Record():
                node["fields"] = [self.field(field, own, depth + 2) for field in type.fields]
            case Enum():
                node["symbols"] = list(type.symbols)
                if type.default is not None:
                    node["default"] = type.default
            case Fixed():
                node["size"] = type.size
        node.update(self.more(type.properties))
        if type.aliases:
            node["aliases"] = self.aliases(type.aliases)
        return node

    def field(self, field: Field, space: str, depth: int) -> dict[str, Any]:
        node: dict[str, Any] = {
            "name": field.name,
            "type": self.type(field.type, space, depth + 1),
        }
        if field.doc is not None:
            node["doc"] = field.doc
        if field.has_default:
            node["default"] = field.default
        if field.order not in (None, "ascending"):
            node["order"] = field.order
        if field.aliases:
            node["aliases"] = self.aliases(field.aliases)
        node.update(self.more(field.properties))
        return node

    def aliases(self, aliases: tuple[str, ...]) -> list[str]:
        return sorted(aliases) if self.sort else list(aliases)

    def more(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items()) if self.sort else properties)
