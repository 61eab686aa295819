"""Reads a JSON Schema (drafts 4 to 2020-12), with every `$ref` in it followed once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urljoin

from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing import Registry, Resource
from referencing.exceptions import InvalidAnchor, NoSuchAnchor, PointerToNowhere, Unresolvable
from referencing.jsonschema import specification_with

from mainstem.errors import MainstemError
from mainstem.schemas.json_drafts import DEFAULT, LEGACY, draft_of
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.references import gather
from mainstem.schemas.text import malformed, pointer, read_json, too_deep

MAX_LEVELS = 64
"""Schemas inside one another; the library recurses ten frames deep for each."""
MAX_BESIDE = 10_000
"""Schemas that one and the same value is held against."""

# where schemas stand inside a schema: as the value, in a list, in an object
ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
IN_PLACE = frozenset(
    {"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
"""Those whose schemas apply to the value itself, not to a part of it."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Path = tuple[str | int, ...]


class Place(NamedTuple):
    """A schema within a schema: its keywords, how references resolve from there, its draft."""

    contents: Any
    resolver: Any
    draft: type[Validator]

    def follow(self, reference: str) -> Place:
        """What a reference stands for."""
        found = self.resolver.lookup(reference)
        return Place(found.contents, found.resolver, self.draft)

    def part(self, contents: Any) -> Place:
        """A schema inside this one."""
        if not isinstance(contents, dict):
            # true and false have no address of their own
            return Place(contents, self.resolver, self.draft)
        resource = _specification(self.draft).create_resource(contents)
        return Place(contents, self.resolver.in_subresource(resource), self.draft)


@dataclass(frozen=True)
class JsonSchema:
    """A schema that has been read, its draft, and the registry in which its references resolve."""

    schema: Schema
    document: Any
    draft: type[Validator]
    registry: Registry[Any]

    @property
    def root(self) -> Place:
        """The whole of it."""
        resource = _specification(self.draft).create_resource(self.document)
        return Place(self.document, self.registry.resolver_with_root(resource), self.draft)

    def validator(self) -> Validator:
        """Checks values; one validator may check any number, and from several threads."""
        return self.draft(
            self.document, registry=self.registry, format_checker=self.draft.FORMAT_CHECKER
        )


def parse_json_schema(schema: Schema, resolve: Resolve) -> JsonSchema:
    """Checks the schema by its draft's own schema, and that each reference leads somewhere."""
    document = read_json(schema.text, SchemaType.JSON)
    draft = _draft(document)
    registry = _registry(schema, document, gather(schema, resolve))
    _check(document, draft, None)
    parsed = JsonSchema(schema, document, draft, registry)
    _follow_all(parsed)
    return parsed


def _registry(schema: Schema, document: Any, given: dict[str, Schema]) -> Registry[Any]:
    """All that is referred to, under each address by which a text may call it."""
    found: dict[str, Resource[Any]] = {}
    addressed: list[tuple[str, Resource[Any]]] = []
    owners = [(_identity(document) or "", schema)]
    for name, reference in given.items():
        other = read_json(reference.text, SchemaType.JSON)
        _check(other, _draft(other), name)
        found[name] = _specification(_draft(other)).create_resource(other)
        address = _identity(other) or name
        addressed.append((address, found[name]))
        owners.append((address, reference))
    pairs = [*found.items(), *addressed]
    for address, owner in owners:
        # relative to the place of the schema that names it
        pairs += [(urljoin(address, ref.name), found[ref.name]) for ref in owner.references]
    registry: Registry[Any] = SPECIFICATIONS.with_resources(pairs)
    return registry


def inner(contents: Any) -> Iterator[tuple[Path, Any]]:
    """The schemas directly inside a schema, with the way to each."""
    if not isinstance(contents, dict):
        return
    for key, value in contents.items():
        if key in ONE and isinstance(value, dict | bool):
            yield (key,), value
        elif key in MANY and isinstance(value, list):
            yield from (((key, index), item) for index, item in enumerate(value))
        elif key in NAMED and isinstance(value, dict):
            for name, item in value.items():
                # a list under "dependencies" is one of names
                if isinstance(item, dict | bool):
                    yield (key, name), item


def _check(document: Any, draft: type[Validator], name: str | None) -> None:
    try:
        _check_levels_and_patterns(document)
        _check_by_draft(document, draft)
    except MainstemError as error:
        if name is None or error.code != "SCHEMA_MALFORMED":
            raise
        raise MainstemError("SCHEMA_REFERENCE_UNKNOWN", name=name, problem=error.message) from None


def _check_by_draft(document: Any, draft: type[Validator]) -> None:
    try:
        error = best_match(draft(draft.META_SCHEMA).iter_errors(document))
    except RecursionError:
        raise too_deep(MAX_LEVELS) from None
    if error is not None:
        problem = error.message if len(error.message) <= 300 else f"{error.message[:300]} ..."
        raise malformed(SchemaType.JSON, pointer(*error.absolute_path), problem)


def _check_levels_and_patterns(document: Any) -> None:
    todo: list[tuple[Any, Path, int]] = [(document, (), 0)]
    while todo:
        contents, path, level = todo.pop()
        if level > MAX_LEVELS:
            raise too_deep(MAX_LEVELS)
        todo += [(item, (*path, *way), level + 1) for way, item in inner(contents)]
        if isinstance(contents, dict):
            _check_pattern(contents.get("pattern"), (*path, "pattern"))
            names = contents.get("patternProperties")
            for name in names if isinstance(names, dict) else ():
                _check_pattern(name, (*path, "patternProperties", name))


def _check_pattern(pattern: Any, path: Path) -> None:
    """A pattern that Python cannot compile would fail with the first value that meets it."""
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except (re.error, OverflowError, RecursionError) as error:
        problem = f"the pattern cannot be used: {error}"
        raise malformed(SchemaType.JSON, pointer(*path), problem[:300]) from None


def _follow_all(parsed: JsonSchema) -> None:
    todo: list[tuple[Path, Place]] = [((), parsed.root)]
    # schema -> those that apply to the same value
    beside: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    while todo:
        path, place = todo.pop()
        if id(place.contents) in beside or not isinstance(place.contents, Mapping):
            continue
        here = beside.setdefault(id(place.contents), [])
        names[id(place.contents)] = pointer(*path)
        alone = parsed.draft in LEGACY and "$ref" in place.contents
        for key in REFERENCES:
            reference = place.contents.get(key)
            if isinstance(reference, str):
                target = _lead(place, reference, (*path, key))
                here.append(id(target.contents))
                todo.append(((*path, key), target))
        for way, contents in inner(place.contents):
            if way[0] in IN_PLACE and not alone:
                here.append(id(contents))
            todo.append(((*path, *way), place.part(contents)))
    _check_ends(beside, names)


def _check_ends(beside: dict[int, list[int]], names: dict[int, str]) -> None:
    """Refuses schemas that lead back to themselves for one and the same value: no check ends.

    Nor soon, when each of thirty leads to the next one twice.
    """
    done: dict[int, int] = {}
    """With how many schemas apply to one value."""
    for start, first in beside.items():
        way: dict[int, Iterator[int]] = {start: iter(first)}
        while way and start not in done:
            last = next(reversed(way))
            following = next((node for node in way[last] if node not in done), None)
            if following is None:
                done[last] = 1 + sum(done.get(node, 1) for node in beside[last])
                if done[last] > MAX_BESIDE:
                    problem = f"{names[last]} puts more than {MAX_BESIDE} schemas on one value"
                    raise MainstemError("SCHEMA_TOO_LARGE", problem=problem)
                del way[last]
            elif following in way:
                circle = [*way][[*way].index(following) :]
                path = " -> ".join(names[node] for node in [*circle, following][:20])
                raise MainstemError("SCHEMA_REFERENCE_CIRCLE", path=path)
            elif following in beside:
                way[following] = iter(beside[following])


def _lead(place: Place, reference: str, path: Path) -> Place:
    try:
        return place.follow(reference)
    except (NoSuchAnchor, PointerToNowhere, InvalidAnchor, ValueError, LookupError, TypeError):
        problem = f'"{reference[:200]}" leads to nothing'
        raise malformed(SchemaType.JSON, pointer(*path), problem) from None
    except Unresolvable:
        problem = f"{pointer(*path)} names it, and the references do not"
        raise MainstemError(
            "SCHEMA_REFERENCE_UNKNOWN", name=reference[:200], problem=problem
        ) from None


def _draft(document: Any) -> type[Validator]:
    if not isinstance(document, dict | bool):
        raise malformed(SchemaType.JSON, "/", "a schema is an object, true or false")
    if not isinstance(document, dict) or "$schema" not in document:
        return DEFAULT
    draft = draft_of(document["$schema"])
    if draft is None:
        known = "drafts 4, 6, 7, 2019-09 and 2020-12"
        raise malformed(SchemaType.JSON, "/$schema", f"this is none of the {known}")
    return draft


def _identity(document: Any) -> str | None:
    identity = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    return identity if isinstance(identity, str) else None


def _specification(draft: type[Validator]) -> Any:
    return specification_with(draft.META_SCHEMA["$schema"])
