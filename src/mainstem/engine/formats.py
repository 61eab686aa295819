"""Which schemas the records of a topic have, and which one a flow's own records get.

A plan of Spark is made for the schemas that are known when it is made: all versions that are
registered for the topic, and those that were met in it. A batch read looks which ids its records
have before it is planned. A stream cannot: a record with an id that its plan does not know fails
the batch before anything of it is written; the flow then meets that id here and starts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Format
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.avro_read import NotReadable, Reading, reading
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.followed import FollowedColumns
from mainstem.schemas.json_values import JsonReading
from mainstem.schemas.known import KnownSchemas, own_schema, subject_of
from mainstem.schemas.source import SchemaSource
from mainstem.vocabulary import Column

NEW_ID = "SCHEMA_ID_NEW"
AWAITED = "COLUMNS_AWAITED"
_MOST_IDS = 10_000
"""Of one read: more ids than that are no schemas but noise, and met in several rounds."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The schemas that a plan knows, by id."""

    readable: Mapping[int, Reading | JsonReading] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    """Records of these are bad: there is no such schema, or it does not fit the columns."""


@dataclass(frozen=True, slots=True)
class Written:
    """What stands before a flow's own values, and the schema that they are written with."""

    header: bytes
    schema: str


class Formats:
    """What an engine knows of schemas; any thread may call. Registry errors pass through."""

    def __init__(self, registry: SchemaSource) -> None:
        self._known = KnownSchemas(registry)
        self._codec = Codec(self._known)
        self._followed = FollowedColumns(registry)
        self._met: dict[str, set[int]] = {}
        self._readings: dict[tuple[int, tuple[Column, ...]], Reading] = {}

    def of_stream(self, definition: Definition) -> Versions:
        """The versions that a plan over the definition's topics should know."""
        if not definition.format.registered:
            return Versions()
        met = self._met.setdefault(definition.topic, set())
        if definition.pattern is None:
            met.update(self._known.ids_of(definition.topic))
        versions = self._versions(definition, met)
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
                subject=subject_of(definition.topic),
            )

    def of_records(self, records: DataFrame, definition: Definition) -> Versions:
        """The versions that these records have, in Kafka's columns."""
        if not definition.format.registered:
            return Versions()
        return self._versions(definition, _ids_in(records))

    def meet(self, error: MainstemError, records: DataFrame | None = None) -> bool:
        """Takes up the id for which a batch failed, and all others among its records.

        True when that was why: the flow can start again at once. The next plan asks for them.
        """
        if error.code != NEW_ID:
            return False
        met = self._met.setdefault(str(error.params["topic"]), set())
        met.add(int(error.params["id"]))
        if records is not None:
            met.update(_ids_in(records))
        return True

    def written(self, definition: Definition) -> Written:
        """How the definition's own values are written; registers their schema."""
        header = wire.header(self._known.id_for(definition))
        return Written(header, own_schema(definition).text)

    def problem(self, definition: Definition, value: bytes) -> str:
        """What is wrong with a value that could not be decoded."""
        try:
            self._codec.text(definition, value)
        except NotDecoded as error:
            return str(error)
        return "a field does not fit its column's type"

    def _versions(self, definition: Definition, ids: Iterable[int]) -> Versions:
        readable: dict[int, Reading | JsonReading] = {}
        refused = set()
        for id in list(ids):
            try:
                readable[id] = self._reading(definition, id)
            except NotReadable:
                refused.add(id)
        return Versions(readable, frozenset(refused))

    def _reading(self, definition: Definition, id: int) -> Reading | JsonReading:
        if definition.format is Format.JSON_SCHEMA:
            return self._known.json(id)
        columns = definition.value_columns
        if (id, columns) not in self._readings:
            self._readings[id, columns] = reading(self._known.avro(id), columns)
        return self._readings[id, columns]


def _ids_in(records: DataFrame) -> set[int]:
    head = F.substring(F.col("value"), 1, wire.HEADER_BYTES)
    framed = (F.octet_length(head) == wire.HEADER_BYTES) & head.startswith(F.lit(b"\0"))
    found = records.select(head.alias("head")).where(framed).distinct().limit(_MOST_IDS)
    return {wire.schema_id(bytes(row.head)) for row in found.collect()}
