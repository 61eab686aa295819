"""The Python functions of a project against those of the catalog, and the flows that call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mainstem.catalog.entry import Catalog
from mainstem.catalog.plan import FunctionStep
from mainstem.definitions.model import Create, Definition, FunctionDefinition
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def function_steps(
    catalog: Catalog, wanted: Mapping[str, FunctionDefinition], *, drop_missing: bool
) -> tuple[FunctionStep, ...]:
    """What makes the catalog hold these functions; equal versions are left as they are."""
    steps = []
    for name, function in sorted(wanted.items()):
        before = catalog.functions.get(name)
        if before is None:
            steps.append(FunctionStep("create", function))
        elif not same(before, function):
            steps.append(FunctionStep("change", function))
    if drop_missing:
        gone = sorted(set(catalog.functions) - set(wanted))
        steps += [FunctionStep("drop", catalog.functions[name]) for name in gone]
    return tuple(steps)


def same(one: FunctionDefinition, other: FunctionDefinition) -> bool:
    """True when calls of both mean the same."""
    return (one.name, one.signature, one.version) == (other.name, other.signature, other.version)


def check_users(catalog: Catalog, steps: tuple[FunctionStep, ...], keeping: set[str]) -> None:
    """Refuse to drop a function that an object calls which stays as it is."""
    for step in steps:
        if step.step != "drop":
            continue
        users = [e.name for e in catalog.users(step.function.name) if e.name.lower() in keeping]
        if users:
            raise MainstemError(
                "HAS_DEPENDENTS", name=f"{step.function.name}()", dependents=", ".join(users)
            )


def renewed(definition: Definition, functions: Mapping[str, FunctionDefinition]) -> Definition:
    """A definition of the catalog with the present version of the functions that it calls.

    Its text is read again, since a changed function may take other arguments.
    """
    query = definition.query
    if query is None or not query.functions:
        return definition
    if all(same(f, functions[f.name.lower()]) for f in query.functions):
        return definition
    statement = parse_one(definition.text, definition.location.file, functions)
    if not isinstance(statement, Create) or statement.definition.query is None:
        raise AssertionError("a derived definition has the text of its CREATE statement")
    called = statement.definition.query.functions
    return replace(definition, query=replace(query, functions=called))
