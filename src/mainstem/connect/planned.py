"""Connectors for a plan: options against their description, then the systems outside are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mainstem.catalog.connectors import Expansion
from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Capture, Captured
from mainstem.connect.catalogue import spec_of
from mainstem.connect.on_spark import runs_on_spark
from mainstem.connect.secrets import Secrets
from mainstem.connect.source_transforms import place_of, told_columns
from mainstem.connect.spec import ConnectorSpec, Role
from mainstem.connect.targets.beside import beside_of
from mainstem.connect.targets.target import Shape
from mainstem.definitions.connections import CONNECTOR, connection_of, option_place
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.definitions.transforms import Mask, Transform
from mainstem.errors import MainstemError

UNREACHABLE = "CONNECTOR_UNREACHABLE"
_AT_NAME = ("UNKNOWN_OPTION",)
"""Errors about an option that are at its name; all others are at its value."""


Check = Callable[[str, Mapping[str, Any], Definition, Sequence[Transform]], None]
"""Raises what speaks against a sink's target: connector, options, what is read, transforms.

Called while a plan is made, in the gateway, from any thread. Options are those of the connector's
description, with secrets filled in.
"""

AskEngine = Callable[[Definition], tuple[Captured, ...]]
"""Looks into the system of a source as `Capture.look` does; the options are as written."""


class PlannedConnectors:
    """The `Connectors` of catalog/connectors.py."""

    def __init__(
        self,
        secrets: Secrets,
        capture_of: Callable[[str], Capture],
        check: Check,
        runs: Callable[[str], bool] = lambda _: False,
        ask_engine: AskEngine | None = None,
    ) -> None:
        """`capture_of` gives what looks into the systems of a source connector; `runs` says whether
        a source of that name is looked after, be it that it is wanted or not gone yet. `ask_engine`
        looks into those of sources that run there; None: there is no engine.
        """
        self._secrets = secrets
        self._capture_of = capture_of
        self._check = check
        self._runs = runs
        self._ask_engine = ask_engine

    def validate(self, definition: Definition) -> None:
        """Refuse a connector that does not exist, and options that it does not take."""
        connection = _connection(definition)
        try:
            _spec(definition).validate(dict(connection.options))
            if definition.kind is Kind.SOURCE:
                told_columns(definition)
        except MainstemError as error:
            raise self._placed(error, definition) from None

    def expand(
        self, source: Definition, before: Definition | None, known: Sequence[Definition]
    ) -> Expansion:
        """The streams and tables of a source."""
        try:
            if before is not None:
                _check_change(before, source)
            elif self._runs(source.name):
                # it could still write to the topics that would be made now
                raise MainstemError("SOURCE_LEAVING", name=source.name)
            return self._expand(source, before, known)
        except MainstemError as error:
            raise self._placed(error, source) from None

    def check(self, sink: Definition, read: Definition) -> None:
        """Refuse a target that cannot take the rows of the object that is read."""
        connection = _connection(sink)
        try:
            options = _spec(sink).resolve(dict(connection.options), self._secrets)
            for transform in sink.transforms:
                if isinstance(transform, Mask) and transform.salt is not None:
                    self._secrets.resolve(transform.salt)
            if read.pattern is not None and sink.start not in ("earliest", "latest"):
                raise MainstemError(
                    "INVALID_OPTION",
                    option="start",
                    value=sink.start,
                    problem=f'"{read.name}" has many topics, and more may come',
                    advice="Use 'earliest' or 'latest'.",
                )
            self._check(connection.connector, options, read, sink.transforms)
        except MainstemError as error:
            raise self._placed(error, sink) from None

    def check_rebuild(self, sink: Definition, read: Definition) -> None:
        """Refuse a target that cannot be replaced by another in one step."""
        connection = _connection(sink)
        try:
            beside = beside_of(connection.connector, sink.name)
            options = _spec(sink).resolve(dict(connection.options), self._secrets)
            beside.check(options, Shape.of(options, read, sink.transforms), sink.name)
        except MainstemError as error:
            raise self._placed(error, sink) from None

    def moved(self, before: Definition, sink: Definition) -> bool:
        """True when a sink writes to another place, where what was written before is not."""
        old, new = connection_of(before), _connection(sink)
        if old is None or old.connector != new.connector:
            return True
        return _spec(sink).moved(dict(old.options), dict(new.options)) is not None

    # -- inside

    def _expand(
        self, source: Definition, before: Definition | None, known: Sequence[Definition]
    ) -> Expansion:
        try:
            tables = self._look(source)
        except MainstemError as error:
            if error.code != UNREACHABLE or not known:
                raise
            same = tuple(replace(d, location=source.location, text=source.text) for d in known)
            why = self._secrets.mask(error.message)
            note = f"source {source.name} was not looked into, its tables are as known: {why}"
            return Expansion(same, (note,))
        tables, notes = _without_added(source, before, known, tables)
        if before is None:
            notes += tuple(captured.note for captured in tables if captured.note)
        tables = tuple(_with_columns_known(captured, known) for captured in tables)
        return Expansion(definitions_of(source, tables), notes)

    def _look(self, source: Definition) -> tuple[Captured, ...]:
        """What the system behind a source has; whoever connects to it fills in the secrets."""
        connection = _connection(source)
        if runs_on_spark(connection.connector):
            assert self._ask_engine is not None, "there is no engine"
            return self._ask_engine(source)
        options = _spec(source).resolve(dict(connection.options), self._secrets)
        asked = {**options, **told_columns(source)}
        return self._capture_of(connection.connector).look(source.name, asked)

    def _placed(self, error: MainstemError, definition: Definition) -> MainstemError:
        """The error without secrets, at the option that it is about or at the statement."""
        for name, value in error.params.items():
            if isinstance(value, str):
                error.params[name] = self._secrets.mask(value)
        option = error.params.get("option")
        if option is None:
            named = None
            if definition.kind is Kind.SOURCE and error.location is None:
                named = place_of(definition, error.params.get("column"))
            return error.at(named or definition.location)
        place = option_place(definition, option, value=error.code not in _AT_NAME)
        if error.code == "SECRET_IN_PLAIN":
            place = replace(place, snippet="")  # which would show it
        return error.at(place)


def _connection(definition: Definition) -> Connection:
    connection = connection_of(definition)
    assert connection is not None, f"{definition.name} has no connector"
    return connection


def _spec(definition: Definition) -> ConnectorSpec:
    role = Role.SOURCE if definition.kind is Kind.SOURCE else Role.SINK
    return spec_of(role, _connection(definition).connector)


def _check_change(before: Definition, source: Definition) -> None:
    old, new = _connection(before), _connection(source)
    moved = (
        CONNECTOR
        if old.connector != new.connector
        else _spec(source).moved(dict(old.options), dict(new.options))
    )
    if moved is not None:
        raise MainstemError("SOURCE_MOVED", option=moved, name=source.name)


def _with_columns_known(captured: Captured, known: Sequence[Definition]) -> Captured:
    """A table with the columns that it ever had, for older changes have them; new ones behind."""
    names = {read.name for read in known if read.topic == captured.topic}
    tables = (
        d for d in known if d.query is not None and d.target is None and names & set(d.query.inputs)
    )
    before = [column for table in tables for column in table.columns]
    now = {column.name: column for column in captured.columns}
    stay = (now.pop(column.name, column) for column in before)
    return replace(captured, columns=(*stay, *now.values()))


def _without_added(
    source: Definition,
    before: Definition | None,
    known: Sequence[Definition],
    tables: tuple[Captured, ...],
) -> tuple[tuple[Captured, ...], tuple[str, ...]]:
    """Those that were there, and those whose rows from before can be read while the source runs."""
    if before is None:
        return tables, ()
    topics = {definition.topic for definition in known}
    added = [captured for captured in tables if captured.topic not in topics]
    if not added:
        return tables, ()
    names = ", ".join(captured.table for captured in added)
    if all(captured.joins for captured in added):
        return tables, (f"source {source.name} reads {names} while the changes of others go on",)
    if before.captures != source.captures:
        raise MainstemError("TABLE_ADDED", option="tables", name=source.name, tables=names)
    note = f"source {source.name} does not capture {names}, made after it: use another source"
    return tuple(captured for captured in tables if captured.topic in topics), (note,)
