"""Which schemas the records of a topic have, and which one a flow's own records get.

A plan of Spark is made for the schemas that are known when it is made: all versions that are
registered for the topic, and those that were met in it. A batch read looks which ids its records
have before it is planned. A stream cannot: a record with an id that its plan does not know fails
the batch before anything of it is written; the flow then meets that id here and starts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Format, SubjectStrategy
from mainstem.engine.known_changes import KnownChanges
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.avro_read import NotReadable, Reading, bare_key, reading
from mainstem.schemas.changes import ChangeReading
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.followed import FollowedColumns
from mainstem.schemas.given import gathered
from mainstem.schemas.json_values import JsonReading
from mainstem.schemas.known import KnownSchemas, own_schema, subject_of
from mainstem.schemas.model import Schema
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_read import ProtobufReading
from mainstem.schemas.record_names import beginnings
from mainstem.schemas.source import SchemaSource
from mainstem.schemas.trial import Trial
from mainstem.vocabulary import Column

AnyReading = Reading | JsonReading | ProtobufReading
NEW_ID = "SCHEMA_ID_NEW"
NEW_CHANGE = "CHANGE_SCHEMA_NEW"
AWAITED = "COLUMNS_AWAITED"
_MOST_IDS = 10_000
"""Of one read: more ids than that are no schemas but noise, and met in several rounds."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The schemas that a plan knows, by id."""

    readable: Mapping[int, AnyReading] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    """Records of these are bad: there is no such schema, or it does not fit the columns."""
    named: frozenset[bytes] = frozenset()
    """Where names count: what values begin with that have the definition's name."""
    others: frozenset[bytes] = frozenset()
    """What values begin with that have another name: they are none of the definition's own."""
    changes: tuple[ChangeReading, ...] = ()
    """Of captured changes, which have their schemas in themselves; the last that was met first."""
    refused_starts: frozenset[bytes] = frozenset()
    """What values of captured changes begin with that are none."""
    keys: Versions | None = None
    """The same for the keys of the records, where the definition says their format."""


@dataclass(frozen=True, slots=True)
class Written:
    """What stands before a flow's own values, and the schema that they are written with."""

    header: bytes
    schema: str


class Formats:
    """What an engine knows of schemas; any thread may call. Registry errors pass through."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._known = KnownSchemas(registry)
        self._codec = Codec(self._known)
        self._followed = FollowedColumns(registry)
        self._met: dict[str, set[int]] = {}
        self.changes = KnownChanges()
        self._readings: dict[tuple[int, tuple[Column, ...], bool], Reading] = {}

    def of_stream(self, definition: Definition) -> Versions:
        """The versions that a plan over the definition's topics should know."""
        keys = None if definition.keys is None else self.of_stream(definition.keys)
        if definition.format is Format.DEBEZIUM:
            readings, refused = self.changes.of_stream(definition)
            return Versions(changes=readings, refused_starts=refused)
        if not definition.format.registered:
            return Versions(keys=keys)
        met = self._met.setdefault(definition.topic, set())
        known: list[int] = []
        by_name = definition.subject_strategy is SubjectStrategy.RECORD_NAME
        if definition.pattern is None or by_name:
            known = self._known.ids_of(definition)
        versions = replace(self._versions(definition, [*met, *known]), keys=keys)
        if definition.follows and not definition.derived:
            # behind the others: a version that came in between is in neither or in both
            self._check_columns(definition)
        return versions

    def _check_columns(self, definition: Definition) -> None:
        """COLUMNS_AWAITED while the registry has columns for the stream that it has not yet.

        A plan without them would pass their values over.
        """
        added = self._followed.added(definition)
        if added:
            raise MainstemError(
                AWAITED,
                name=definition.name,
                columns=", ".join(added),
                subject=subject_of(definition),
            )

    def of_records(self, records: DataFrame, definition: Definition) -> Versions:
        """The versions that these records have, in Kafka's columns."""
        keys = None
        if definition.keys is not None:
            keys = self.of_records(records.select(F.col("key").alias("value")), definition.keys)
        if definition.format is Format.DEBEZIUM:
            readings, refused = self.changes.of_records(records, definition)
            return Versions(changes=readings, refused_starts=refused)
        if not definition.format.registered:
            return Versions(keys=keys)
        return replace(self._versions(definition, _ids_in(records)), keys=keys)

    def check(self, schema: Schema) -> None:
        """Raises what is wrong with a schema, or with what it refers to."""
        parse(schema, self._registry.resolve)

    def trial(self, records: DataFrame, schema: Schema) -> Trial:
        """What holds these records against another schema."""
        return Trial(schema, gathered(self._registry, _ids_in(records), schema))

    def meet(self, error: MainstemError, records: DataFrame | None = None) -> bool:
        """Takes up the id for which a batch failed, and all others among its records.

        True when that was why: the flow can start again at once. The next plan asks for them.
        Captured changes have schemas in place of ids.
        """
        if error.code == NEW_CHANGE and records is not None:
            self.changes.meet(str(error.params["topic"]), records)
            return True
        if error.code != NEW_ID:
            return False
        met = self._met.setdefault(str(error.params["topic"]), set())
        met.add(int(error.params["id"]))
        if records is not None:
            met.update(_ids_in(records), _ids_in(records.select(F.col("key").alias("value"))))
        return True

    def written(self, definition: Definition) -> Written:
        """How the definition's own values are written; registers their schema."""
        header = wire.header(self._known.id_for(definition))
        return Written(header, own_schema(definition).text)

    def written_messages(self, definition: Definition) -> ProtobufReading:
        """The same for Protobuf: the schema, whose first message they are."""
        return self._known.protobuf(self._known.id_for(definition))

    def problem(self, definition: Definition, value: bytes) -> str:
        """What is wrong with a value that could not be decoded."""
        try:
            self._codec.text(definition, value)
        except NotDecoded as error:
            return str(error)
        return "a field does not fit its column's type"

    def key_problem(self, keys: Definition, key: bytes) -> str | None:
        """What is wrong with a record's key; None when that is as its format says."""
        try:
            self._codec.key_text(keys, key)
        except NotDecoded as error:
            return str(error)
        return None

    def _versions(self, definition: Definition, ids: Iterable[int]) -> Versions:
        readable: dict[int, AnyReading] = {}
        refused, others, named = set[int](), set[bytes](), set[bytes]()
        for id in list(ids):
            try:
                if definition.record is not None:
                    mine, its = beginnings(id, self._known.names(id), definition.record)
                    named |= mine
                    others |= its
                    if not mine:
                        continue
                readable[id] = self._reading(definition, id)
            except NotReadable:
                refused.add(id)
        return Versions(readable, frozenset(refused), frozenset(named), frozenset(others))

    def _reading(self, definition: Definition, id: int) -> AnyReading:
        if definition.format is Format.JSON_SCHEMA:
            return self._known.json(id)
        if definition.format is Format.PROTOBUF:
            return self._known.protobuf(id)
        columns, of_keys = definition.value_columns, definition.of_keys
        if (id, columns, of_keys) not in self._readings:
            root = self._known.avro(id)
            root = bare_key(root, columns) if of_keys else root
            self._readings[id, columns, of_keys] = reading(root, columns)
        return self._readings[id, columns, of_keys]


def _ids_in(records: DataFrame) -> set[int]:
    head = F.substring(F.col("value"), 1, wire.HEADER_BYTES)
    framed = (F.octet_length(head) == wire.HEADER_BYTES) & head.startswith(F.lit(b"\0"))
    found = records.select(head.alias("head")).where(framed).distinct().limit(_MOST_IDS)
    return {wire.schema_id(bytes(row.head)) for row in found.collect()}
