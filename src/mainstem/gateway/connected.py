"""Sources, sinks and connectors as SHOW and DESCRIBE tell of them; secrets are references there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mainstem.catalog.connectors import of_source
from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.catalogue import named, specs
from mainstem.connect.spec import ConnectorSpec, Field
from mainstem.definitions.connections import connection_of
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError

Table = tuple[tuple[str, ...], list[list[Any]]]
"""The names of columns, and rows."""

PYTHON = "python"
"""In the place of a connector: a sink that is a function of the project."""
Statuses = Mapping[str, Mapping[str, Any]]


def sources(catalog: Catalog, running: Iterable[Mapping[str, Any]]) -> Table:
    """Every source, what came with it, and how it is doing: `running` are the connectors."""
    states = {connector["name"]: connector for connector in running}
    rows = []
    for entry in catalog.of_kind(Kind.SOURCE):
        theirs = of_source(catalog, entry.name)
        tables = [d.name for d in theirs if d.kind is Kind.TABLE] or [d.name for d in theirs]
        state = states.get(entry.name, {})
        error = state.get("error") or {}
        said = (state.get("state"), error.get("title"))
        rows.append([entry.name, _connector(entry.definition), ", ".join(tables), *said])
    return ("name", "connector", "brings", "state", "error"), rows


def sinks(catalog: Catalog, statuses: Statuses) -> Table:
    """Every sink, what it reads, and how it is doing."""
    rows = []
    for entry in catalog.flows():
        if entry.definition.is_sink:
            status = statuses.get(entry.name, {})
            error = status.get("error") or {}
            said = (status.get("state"), status.get("lag_records"), error.get("title"))
            rows.append([entry.name, _connector(entry.definition), _read(entry), *said])
    return ("name", "connector", "reads", "state", "lag_records", "error"), rows


def connectors() -> Table:
    """Every connector that there is."""
    rows: list[list[Any]] = [[s.name, s.role.value, s.paragraphs[0]] for s in specs().values()]
    return ("name", "role", "about"), rows


def described(catalog: Catalog, entry: Entry) -> tuple[Table, list[str]]:
    """The options of a source or a sink as written, and notes."""
    connection = connection_of(entry.definition)
    assert connection is not None, f"{entry.name} has no connector"
    rows: list[list[Any]] = [["connector", connection.connector], *map(list, connection.options)]
    if entry.definition.kind is Kind.SOURCE:
        theirs = of_source(catalog, entry.name)
        notes = [f"{d.kind} {d.name}: topic {d.topic}" for d in theirs]
    else:
        notes = [f"reads {_read(entry)}; its receipts are in the topic {entry.definition.topic}"]
    notes += [f"transform: {transform.shown}" for transform in entry.definition.transforms]
    return (("option", "value"), rows), notes


def connector_options(
    name: str, own: Callable[[], Mapping[str, ConnectorSpec]] = dict
) -> tuple[Table, list[str]]:
    """The options of a connector, and what it is for; UNKNOWN_CONNECTOR when there is none.

    `own` gives the project's own ones; it is asked when there is no other of that name.
    """
    try:
        found = named(name)
    except MainstemError:
        described = own().get(name)
        if described is None:
            raise
        found = [described]
    names = ("option", "type", "required", "default", "secret", "meaning")
    rows = [
        [f"{spec.role}: " * (len(found) > 1) + f.name, *_told(f)]
        for spec in found
        for f in spec.fields
    ]
    notes = [line for spec in found for line in _about(spec)]
    return (names, rows), notes


def _told(field: Field) -> list[Any]:
    kind = " or ".join(field.choices) or field.kind.value
    return [kind, field.required, field.default, field.secret, field.doc]


def _about(spec: ConnectorSpec) -> list[str]:
    return [*spec.paragraphs, spec.statement]


def _connector(definition: Definition) -> str:
    connection = connection_of(definition)
    return PYTHON if connection is None else connection.connector


def _read(entry: Entry) -> str:
    query = entry.definition.query
    return ", ".join(query.inputs) if query is not None else ""


def check_writable(definition: Definition) -> None:
    """Refuse records for a source, and for what only a source writes."""
    if definition.kind is Kind.SOURCE:
        raise MainstemError(
            "WRONG_KIND",
            name=definition.name,
            actual="source",
            expected="declared stream or table",
            advice="Write to the system that it captures.",
        )
    if definition.source is not None:
        raise MainstemError(
            "OBJECT_OF_SOURCE",
            kind=definition.kind.value,
            name=definition.name,
            source=definition.source,
            advice="Write to the system that it captures; the change comes from there.",
        )
