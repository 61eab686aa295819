"""Follows the references of a schema to everything that it needs, each once, the deepest first."""

from __future__ import annotations

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Resolve, Schema
from mainstem.schemas.text import check_size

MAX_REFERENCES = 500
MAX_TOTAL_BYTES = 4 * 1024 * 1024


def gather(schema: Schema, resolve: Resolve) -> dict[str, Schema]:
    """Name -> schema of all that is referred to; what one needs stands before it.

    A name may stand for one schema only: two versions under one name would contradict.
    """
    order: dict[str, Schema] = {}
    origin: dict[str, tuple[str, int]] = {}
    # (reference, whether its own references have been followed), with the way to it
    todo: list[tuple[Reference, bool]] = [(ref, False) for ref in reversed(schema.references)]
    open_: dict[tuple[str, int], Schema] = {}
    total = 0
    while todo:
        reference, followed = todo.pop()
        key = (reference.subject, reference.version)
        if followed:
            order[reference.name] = open_.pop(key)
            continue
        if key in open_:
            way = [*list(open_)[list(open_).index(key) :], key]
            raise MainstemError(
                "SCHEMA_REFERENCE_CIRCLE",
                path=" -> ".join(f"{subject} version {version}" for subject, version in way),
            )
        if origin.setdefault(reference.name, key) != key:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN",
                name=reference.name,
                problem=f"it stands for version {origin[reference.name][1]} of "
                f'"{origin[reference.name][0]}" and for version {reference.version} of '
                f'"{reference.subject}"',
            )
        if reference.name in order:
            continue
        found = resolve(reference)
        if found.type is not schema.type:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN",
                name=reference.name,
                problem=f"it is of type {found.type}, not {schema.type}",
            )
        check_size(found.text)
        total += len(found.text)
        if len(origin) > MAX_REFERENCES or total > MAX_TOTAL_BYTES:
            raise MainstemError(
                "SCHEMA_TOO_LARGE",
                problem=f"it refers to more than {MAX_REFERENCES} schemas or "
                f"{MAX_TOTAL_BYTES} bytes",
            )
        open_[key] = found
        todo.append((reference, True))
        todo += [(ref, False) for ref in reversed(found.references)]
    return order
