"""Would the last records of a topic pass a schema, or a definition? A bounded read, by pieces.

Nothing is written. What is kept is bounded by the number of different reasons, which is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.definitions.rules import told
from mainstem.engine.decode import bad_records
from mainstem.engine.formats import Formats
from mainstem.engine.own_records import own_records
from mainstem.engine.quarantine import diagnose
from mainstem.engine.ranges import read_raw
from mainstem.engine.rules import check_rules
from mainstem.engine.times import check_expression
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.schemas.json_values import Refusal
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.tally import Tally
from mainstem.schemas.trial import Trial
from mainstem.vocabulary import Offsets

PIECE_RECORDS = 50_000
"""Read at once; behind each piece the asker is told how far it is, and may go away."""
_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_WANTED = ("topic", "partition", "offset", "value")


def tried(
    spark: SparkSession,
    connection: Connection,
    admin: Admin,
    formats: Formats,
    payload: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """The answer to a request: `{"read", "of"}` again and again, then `{"found": ...}`."""
    session = spark.newSession()
    if payload.get("schema") is not None:
        schema, topic = schema_of(payload["schema"]), str(payload["topic"])
        formats.check(schema)

        def judge(records: DataFrame) -> Tally:
            return _by_schema(records, formats, schema)
    else:
        definition = _DEFINITION.validate_python(payload["definition"])
        check_expression(session, definition, definition.columns)
        check_rules(session, definition, definition.columns)
        topic = definition.topic

        def judge(records: DataFrame) -> Tally:
            return _by_definition(records, formats, definition)

    end = admin.end_offsets(topic)
    start = last_of(admin.begin_offsets(topic), end, int(payload["last"]))
    whole = Tally()
    done, of = 0, sum(end[p] - first for p, first in start.items())
    yield {"read": done, "of": of}
    for first, behind in pieces(start, end, PIECE_RECORDS):
        whole.add(judge(read_raw(session, topic, connection, first, behind)))
        done += sum(behind[p] - first[p] for p in first)
        yield {"read": done, "of": of}
    yield {"found": whole.document()}


def _by_schema(records: DataFrame, formats: Formats, schema: Schema) -> Tally:
    found, judge = Tally(), _judging(formats.trial(records, schema))
    for row in records.select(*_WANTED).mapInArrow(judge, "tally string").collect():
        found.add(Tally.from_document(json.loads(row.tally)))
    return found


def _by_definition(records: DataFrame, formats: Formats, definition: Definition) -> Tally:
    """By the decoder of the flows: what fails here would be put aside there."""
    found = Tally()
    if definition.record is not None:
        records = own_records(records, definition, formats.of_records(records, definition))
    bad = bad_records(records, definition, formats).select(*_WANTED, "key", "mistaken", "broken")
    for row in bad.toLocalIterator():
        found.refuse(_refusals(row, definition, formats), (row.topic, row.partition, row.offset))
    [there] = records.agg(F.count("*").alias("all"), F.count("value").alias("valued")).collect()
    found.deletions = there["all"] - there["valued"]
    found.passed = there["valued"] - found.failed
    return found


def _refusals(row: Row, definition: Definition, formats: Formats) -> list[Refusal]:
    if row.broken is not None:
        return [Refusal((), f"it breaks {told(definition, [name])}", name) for name in row.broken]
    if row.mistaken is not None:
        return [Refusal((), row.mistaken, "event time")]
    key = None if row.key is None else bytes(row.key)
    problem = diagnose(bytes(row.value or b""), definition, formats, key)
    return [Refusal((), problem, problem.partition(":")[0])]


def schema_of(document: Mapping[str, Any]) -> Schema:
    """A schema out of a request."""
    references = (
        Reference(each["name"], each["subject"], each["version"]) for each in document["references"]
    )
    return Schema(SchemaType(document["type"]), document["text"], tuple(references))


def last_of(begin: Offsets, end: Offsets, count: int) -> dict[int, int]:
    """Where the last `count` records begin, as evenly spread over the partitions as they can be."""
    start = dict(end)
    left = count
    open_ = {p for p, first in begin.items() if start[p] > first}
    while left > 0 and open_:
        share = max(1, left // len(open_))
        for partition in sorted(open_):
            taken = min(share, start[partition] - begin[partition], left)
            start[partition] -= taken
            left -= taken
        open_ = {p for p in open_ if start[p] > begin[p]}
    return start


def pieces(
    start: Offsets, end: Offsets, size: int
) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    """The range in pieces of about `size` records, each with all partitions."""
    at = dict(start)
    share = max(1, size // max(1, len(at)))
    while any(at[p] < end[p] for p in at):
        behind = {p: min(end[p], at[p] + share) for p in at}
        yield at, behind
        at = behind


def _judging(trial: Trial) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        judge_one, tally = trial.judge(), Tally()
        for batch in batches:
            for topic, partition, offset, value in zip(
                *(batch.column(name).to_pylist() for name in _WANTED), strict=True
            ):
                if value is None:
                    tally.deletions += 1
                elif (refusal := judge_one(value)) is None:
                    tally.passed += 1
                else:
                    tally.refuse([refusal], (topic, partition, offset))
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(tally.document())])], ["tally"])

    return judge
