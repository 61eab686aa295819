"""The schemas of definitions against a registry: what a plan asks, and what an apply registers.

A flow is the only writer of its topic, so its schema is that of the topic. A declared object may
be about a topic that others write: it registers its schema when nobody else has, or when it was the
one that did; otherwise it only reads, and has to fit what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mainstem.catalog.plan import SchemaBreak, SchemaStep
from mainstem.definitions.column_places import column_place
from mainstem.definitions.model import Definition, Format
from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_read import NotReadable, bare_key, reading
from mainstem.schemas.canonical import canonical
from mainstem.schemas.diff import diff, render
from mainstem.schemas.followed import FollowedColumns
from mainstem.schemas.known import next_schema, subject_of
from mainstem.schemas.model import Registered, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.record_names import record_names
from mainstem.schemas.source import SchemaSource
from mainstem.schemas.verdict import Broken, verdict
from mainstem.vocabulary import Column


class DefinedSchemas:
    """The `Schemas` of catalog/schemas.py over a registry."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._followed = FollowedColumns(registry)

    def columns(
        self, definition: Definition, known: Sequence[Column], *, widen: bool
    ) -> tuple[Column, ...]:
        """The columns of a declared stream that leaves them to its subject."""
        try:
            return self._followed.columns(definition, known, widen=widen)
        except MainstemError as error:
            raise error.at(definition.location) from None

    def judge(self, definition: Definition, before: Definition | None) -> tuple[SchemaStep, ...]:
        """What becomes of the schemas of an object that is new or changes: of values, of keys."""
        earlier = {} if before is None else {part.of_keys: part for part in _parts(before)}
        judged = (self._judge(part, earlier.get(part.of_keys)) for part in _parts(definition))
        found = (step for step in judged if step is not None)
        return tuple(replace(step, name=definition.name) for step in found)

    def register(self, definition: Definition, subject: str) -> None:
        """Make the object's schema a version of that subject; nothing happens when it is one."""
        for part in _parts(definition):
            if subject_of(part) == subject:
                try:
                    self._registry.register(subject, next_schema(part, self._registry))
                except MainstemError as error:
                    raise error.at(definition.location) from None

    # -- inside

    def _judge(self, part: Definition, before: Definition | None) -> SchemaStep | None:
        if before is not None and _same(part, before):
            return None
        subject, schema = subject_of(part), next_schema(part, self._registry)
        registered = self._registered(subject)
        known = {self._canonical(its.schema) for its in registered}
        if self._canonical(schema) in known:
            return None
        ours = before is not None and (
            self._canonical(next_schema(before, self._registry)) in known
        )
        if known and not part.derived and not ours:
            mine = [its for its in registered if self._is_about(part, its.schema)]
            return self._as_reader(part, mine[-1]) if mine else None
        return self._as_writer(part, subject, schema, registered[-1:])

    def _registered(self, subject: str) -> list[Registered]:
        try:
            versions = self._registry.versions(subject)
        except MainstemError as error:
            if error.code != "SUBJECT_UNKNOWN":
                raise
            return []
        return [self._registry.version(subject, version) for version in versions]

    def _is_about(self, part: Definition, schema: Schema) -> bool:
        """True when a schema is for records of the name that the definition says."""
        if part.record is None:
            return True
        return part.record in record_names(parse(schema, self._registry.resolve))

    def _canonical(self, schema: Schema) -> str:
        try:
            return canonical(parse(schema, self._registry.resolve))
        except MainstemError as error:
            if error.code != "SCHEMA_MALFORMED":
                raise
            return schema.text  # another registry took it: it is like itself only

    def _as_writer(
        self, definition: Definition, subject: str, schema: Schema, newest: list[Registered]
    ) -> SchemaStep:
        judged = verdict(self._registry, subject, schema)
        changes: list[str] = []
        for its in newest:
            found = diff(its.schema, schema, self._registry.resolve)
            changes += render(found, judged.level).splitlines()
        return SchemaStep(
            definition.name,
            subject,
            judged.level.value,
            judged.latest,
            tuple(changes),
            tuple(_break(definition, broken) for broken in judged.breaks),
        )

    def _as_reader(self, definition: Definition, newest: Registered) -> SchemaStep | None:
        """Whether the columns can take what others write; only Avro tells before a record comes."""
        if definition.format is not Format.AVRO or newest.schema.type is not SchemaType.AVRO:
            return None
        root = parse_avro(newest.schema, self._registry.resolve).root
        if definition.of_keys:
            root = bare_key(root, definition.value_columns)
        breaks = []
        for column in definition.value_columns:
            try:
                reading(root, (column,))
            except NotReadable as error:
                place = column_place(definition, column.name)
                breaks.append(SchemaBreak(f"version {newest.version}: {error}", place))
        if not breaks:
            return None
        level = self._registry.level(newest.subject).value
        return SchemaStep(definition.name, newest.subject, level, newest.version, (), tuple(breaks))


def _parts(definition: Definition) -> list[Definition]:
    """The values and the keys of an object, as far as it says itself which schema they have."""
    if definition.pattern is not None or (definition.follows and not definition.derived):
        return []
    parts = (definition, definition.keys)
    return [part for part in parts if part is not None and part.format.registered]


def _same(one: Definition, other: Definition) -> bool:
    """True when their records have the same schema, of the same subject."""
    first, second = (
        (subject_of(part), part.name, part.record, part.format, part.value_columns)
        for part in (one, other)
    )
    return first == second


def _break(definition: Definition, broken: Broken) -> SchemaBreak:
    where = definition.location
    if broken.field is not None:
        where = column_place(definition, broken.field)
    if broken.version is None:
        return SchemaBreak(broken.reason, where)
    problem = f"version {broken.version}, {broken.direction}: {broken.path}: {broken.reason}"
    return SchemaBreak(problem, where)
