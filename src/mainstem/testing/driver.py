"""Runs definitions on the real engine, one bounded step at a time: events in, run, rows out.

The driver is for tests of pipelines: same parser, planner, Spark plans and exactly-once writer as
the product, on a real broker, but a flow runs only when it is told to, until it has read all that
is there, and then ends. Topics get a prefix of their own, so that many cases share one broker.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from mainstem.catalog.build import build_plan
from mainstem.catalog.connectors import Connectors
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.plan import (
    DropObject,
    FunctionStep,
    Plan,
    Rebuild,
)
from mainstem.config import SparkSettings
from mainstem.connect.capture import Captured
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import (
    Definition,
    FlowKind,
    InsertValues,
    Kind,
    Moment,
    Query,
    Select,
)
from mainstem.definitions.project import load_definitions
from mainstem.definitions.python_functions import load_functions
from mainstem.definitions.resolve import order
from mainstem.engine.answers import Answers
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import flow_session
from mainstem.engine.few_rows import MOST_ROWS
from mainstem.engine.formats import Formats
from mainstem.engine.keyed import changelog_of, ticks_of
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.engine.new_schemas import meet_schemas
from mainstem.engine.quarantine import Keeper, Report
from mainstem.engine.set_aside import set_aside
from mainstem.engine.sources.source import source_flows
from mainstem.engine.spark_errors import flow_error
from mainstem.engine.tables import Tables
from mainstem.engine.writer import BatchWriter
from mainstem.gateway.records import outgoing, read_rows
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.schemas.codec import Codec
from mainstem.schemas.defined import DefinedSchemas
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.batch import Pair, batch_answer
from mainstem.testing.case_log import (
    CaseLedger,
    Facts,
    covered,
    key_bytes,
    row_of,
    value_of,
)
from mainstem.testing.case_topics import LONGEST_WAIT_SECONDS, CaseTopics
from mainstem.testing.registry import MemoryRegistry
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import (
    LATE_TOPIC,
    QUARANTINE_TOPIC,
    Clock,
    Column,
    Record,
    SystemClock,
)

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_LONGEST_RUN_SECONDS = 900
_AT_ONCE = 4
_MOST_PIECES = 3


@dataclass(frozen=True, slots=True)
class Event:
    """A record for a stream: a row, or raw bytes as they are.

    With `topic` it goes to a topic of that name, which is made if there is none. With `schema` the
    row is written by that schema, as a writer would that knows no definition of ours.
    """

    stream: str = ""
    row: Mapping[str, Any] | None = None
    raw: bytes | None = None
    key: Any = None
    """A text or bytes, or the key's columns."""
    timestamp: int | None = None
    topic: str | None = None
    schema: str | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass
class Driver:
    """One case's world: a catalog in memory, topics of its own, checkpoints in `folder`.

    With `pieces` each run cuts what is new into micro-batches at random places; else it is one.
    """

    spark: SparkSession
    connection: Connection
    admin: Admin
    folder: Path
    clock: Clock = field(default_factory=SystemClock)
    prefix: str = field(default_factory=lambda: f"case-{uuid.uuid4().hex[:8]}.")
    catalog: Catalog = field(default_factory=Catalog)
    partitions: int = 2
    pieces: random.Random | None = None
    producer: Producer | None = None
    """One that several drivers share; None: the driver makes and closes its own."""
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    connectors: Connectors | None = None
    """What sources and sinks ask; None: the case has none."""
    most_here: int = MOST_ROWS
    """Tables with no more rows are taken for small ones."""

    def __post_init__(self) -> None:
        self._settings = SparkSettings()
        self._ledger = CaseLedger(self.connection, self.admin, self.prefix)
        self.formats = Formats(self.registry)
        self.codec = Codec(KnownSchemas(self.registry))
        self._answers = Answers(
            self.spark,
            self.connection,
            self._settings,
            self.admin,
            self._ledger,
            self.formats,
            self.folder,
        )
        self._reports: list[Report] = []
        self._topics = CaseTopics(self.connection, self.admin, self.prefix)
        self._sent = 0
        checkpoints = Checkpoints(self.spark, str(self.folder))
        parts = (self.spark, self.connection, self.admin, checkpoints, self.formats)
        tables = Tables(*parts, most_here=self.most_here)
        self._machinery = Machinery(
            self.spark,
            self.connection,
            self._settings,
            checkpoints,
            tables,
            self.admin,
            self.clock,
            self.formats,
            self.folder,
        )

    def apply(
        self,
        sql: str,
        *,
        functions: str | None = None,
        python: str | None = None,
        drop_missing: bool = False,
    ) -> Plan:
        """Plans and applies the CREATE statements of a text, and what Python texts hold.

        `functions` is a file of `functions/`, `python` one of `pipeline/`. Without `functions`
        those that are there stay. With `drop_missing` the texts are the whole project, as for
        `mainstem apply`: what is not in them is dropped.
        """
        known = dict(self.catalog.functions)
        texts = [("case.sql", sql)]
        if python is not None:
            texts.append(("pipeline/case.py", python))
        if functions is not None:
            texts.append(("functions/case.py", functions))
            known = load_functions(texts)
        definitions = [
            replace(d, topic=self.prefix + d.topic if d.topic else "")
            for d in load_definitions(texts, known)
        ]
        plan = build_plan(
            self.catalog,
            definitions,
            analyser=self,
            facts=Facts(self.admin),
            origin=Origin.PROJECT,
            drop_missing=drop_missing,
            functions=known,
            schemas=DefinedSchemas(self.registry),
            connectors=self.connectors,
        )
        for change in plan.functions:
            self._keep_function(change)
        for kind, steps in groupby(plan.steps, type):
            entries = [step.entry for step in steps]
            if kind is DropObject:
                for entry in entries:
                    self._drop(entry)
                continue
            if kind is Rebuild:
                for entry in entries:
                    if entry.definition.derived:
                        self.admin.truncate(entry.definition.topic)
            self._keep(entries)
        return plan

    def send(self, events: Iterable[Event]) -> None:
        """Writes events to their streams; those of one partition keep their order."""
        records = [self._outgoing(event) for event in events]
        if records:
            self._producer.send(records[0].topic or "", records)
        self._sent += len(records)

    def _outgoing(self, event: Event) -> Outgoing:
        value, key = event.raw, event.key
        if event.row is not None:
            written = None if event.topic else self.entry(event.stream).definition
            value = value_of(written, event.row, event.schema, self.codec, self.registry)
        partitions = self.partitions
        if event.topic is not None:
            topic = self._topics.make(event.topic, partitions)
        else:
            definition = self.entry(event.stream).definition
            topic, partitions = definition.topic, definition.partitions or partitions
            key = key_bytes(definition, event.row, key, self.codec)
        chosen = None
        if key is None and self.pieces is not None:
            chosen = self.pieces.randrange(partitions)
        return Outgoing(
            key=key.encode() if isinstance(key, str) else key,
            value=value,
            topic=topic,
            partition=chosen,
            timestamp=event.timestamp,
            headers=event.headers,
        )

    def delete_topic(self, name: str) -> None:
        """Deletes a topic that an event made."""
        self._topics.delete(self.prefix + name)

    def insert(self, statement: InsertValues) -> None:
        """Writes the rows of an INSERT, typed by the engine."""
        definition = self.entry(statement.name).definition
        payload = {
            "definition": _dump(definition),
            "columns": list(statement.columns),
            "values": statement.values,
        }
        reply = next(iter(self._answers("rows", payload)))
        rows = read_rows(definition, reply["rows"], statement.columns)
        records = outgoing(definition, rows, self.codec)
        self._producer.send(definition.topic, records)
        self._sent += len(records)

    def run(self) -> None:
        """Runs every flow over all that is there and waits for its end, upstream first.

        Flows that do not wait for each other run side by side, a few at a time. Sources that are
        flows come first; one that is asked for news is asked once.
        """
        for level in [source_flows(self.catalog), *self._levels()]:
            for first in range(0, len(level), _AT_ONCE):
                self._run_together(level[first : first + _AT_ONCE])
            for entry in level:
                self._topics.settle(entry.definition.topic)
                for source in self._inputs(entry.definition):
                    if source.kind is Kind.STREAM:
                        end = self.admin.all_end_offsets(self.admin.topics_of(source))
                        self._reports.append(Report(source, {}, end, None))
        self._sent = 0

    def _run_together(self, flows: Sequence[Entry]) -> None:
        running = []
        try:
            for entry in flows:
                running.append((entry, self._start(entry)))
            for entry, run in running:
                self._wait(entry, run)
        finally:
            for _, (query, _) in running:
                if query.isActive:  # another one has failed
                    query.stop()

    def _start(self, entry: Entry) -> tuple[StreamingQuery, BatchWriter]:
        session = flow_session(self.spark, self._settings.shuffle_partitions)
        inputs = self._inputs(entry.definition)
        checkpoint = str(self.folder / entry.flow_id)
        return start_micro_batch(
            session, entry, inputs, self._cutting(), checkpoint, availableNow=True
        )

    def _wait(self, entry: Entry, run: tuple[StreamingQuery, BatchWriter]) -> None:
        """Waits until a flow has read its input, putting aside what its functions fail for."""
        query, writer = run
        try:
            if not query.awaitTermination(_LONGEST_RUN_SECONDS):
                message = f"flow {entry.name} has not ended within {_LONGEST_RUN_SECONDS} s"
                raise TimeoutError(message)
        except PySparkException as error:
            failure = writer.failure or flow_error(error, entry.name)
            inputs = self._inputs(entry.definition)
            met = meet_schemas(failure, inputs, self._machinery, writer.failed_between)
            if not met and not set_aside(failure, entry, inputs, self.connection, self.clock):
                raise failure from None
            self._wait(entry, self._start(entry))
        else:
            if writer.calling is not None and writer.calling.ring():  # a timer is due
                self._wait(entry, self._start(entry))

    def _cutting(self) -> Machinery:
        """The machinery of one run of a flow: how many records a micro-batch of it takes."""
        if self.pieces is None or self._sent < 2:
            return self._machinery
        limit = self.pieces.randint(-(-self._sent // _MOST_PIECES), self._sent)
        settings = self._settings.model_copy(update={"max_records_per_batch": limit})
        return replace(self._machinery, settings=settings)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What the object holds now: a stream's records, or a table's latest rows."""
        definition = self.entry(name).definition
        return [row_of(self.codec.text(definition, value)) for _, value in self.pairs(name)]

    def pairs(self, name: str) -> list[Pair]:
        """Keys and values of what the object holds now."""
        definition = self.entry(name).definition
        records = self._own_records(definition)
        if definition.kind is Kind.TABLE:
            records = list({r.key: r for r in records}.values())
        return [(r.key, r.value) for r in records if r.value is not None]

    def has_batch_answer(self, flow: Entry) -> bool:
        """False where the order of things is the answer: Python calls, changes of a table."""
        definition = flow.definition
        changes = definition.kind is Kind.STREAM and self._kind(definition) is FlowKind.TABLE
        return definition.made_by is None and not changes

    def batch(self, name: str) -> list[Pair]:
        """What the object would hold if its query were asked once, over all of its input."""
        definition = self.entry(name).definition
        return batch_answer(definition, self._inputs(definition), self._machinery)

    def keys(self, name: str) -> list[str | None]:
        """The keys of all records of the object, as they are in the log."""
        definition = self.entry(name).definition
        keys = [record.key for record in self._own_records(definition)]
        if definition.keys is not None:
            told = definition.keys
            keys = [None if key is None else self.codec.key_text(told, key) for key in keys]
        return [None if key is None else key.decode() for key in keys]

    def _own_records(self, definition: Definition) -> list[Record]:
        """The records of the object's topic, without those of other names."""
        records = self.records(definition.topic)
        return [r for r in records if self.codec.is_own(definition, r.value)]

    def records(self, topic: str) -> list[Record]:
        """All committed records of a topic, partition by partition."""
        return self._topics.records(topic)

    def quarantine(self) -> list[Record]:
        """Records of this case that were put into quarantine, by the reports of all runs."""
        eventually(self._keep_bad, LONGEST_WAIT_SECONDS, what="the quarantine is complete")
        mine = self.prefix.encode()
        return [
            record
            for record in self.records(QUARANTINE_TOPIC)
            if (dict(record.headers).get("topic") or b"").startswith(mine)
        ]

    def late(self, name: str) -> list[dict[str, Any]]:
        """The records that came too late for a flow and wait in the ledger."""
        self._topics.settle(LATE_TOPIC)
        self._ledger.refresh()
        return [entry for _, entry in self._ledger.of(self.entry(name).flow_id).entries]

    def apply_late(self, name: str) -> dict[str, Any]:
        """Corrects a table by the records that came too late."""
        self._topics.settle(LATE_TOPIC)
        entry = self.entry(name)
        query = entry.definition.query
        payload = {
            "flow": entry.flow_id,
            "definition": _dump(entry.definition),
            "inputs": [_dump(self.entry(n).definition) for n in query.inputs] if query else [],
        }
        return next(iter(self._answers("apply_late", payload)))

    def history(self, select: Select) -> list[list[Any]]:
        """The rows of a query over the log."""
        return [row for chunk in self.answer(select) for row in chunk.get("rows", [])]

    def answer(self, select: Select) -> Iterable[dict[str, Any]]:
        """What the engine answers to a query over the log, piece by piece."""
        query = select.query
        payload = {
            "query": TypeAdapter(Query).dump_python(query, mode="json"),
            "inputs": [_dump(self.entry(name).definition) for name in query.inputs],
            "moments": TypeAdapter(tuple[Moment, ...]).dump_python(select.moments, mode="json"),
            "max_rows": 1000,
            "timeout": 60,
        }
        return self._answers("history", payload)

    def explain_row(self, query: Query) -> dict[str, Any]:
        """The events behind the row that a query finds."""
        payload = {
            "query": TypeAdapter(Query).dump_python(query, mode="json"),
            "definitions": [_dump(e.definition) for e in self.catalog.entries.values()],
            "timeout": 120,
        }
        return next(iter(self._answers("explain_row", payload)))

    def entry(self, name: str) -> Entry:
        """The catalog's entry of that name."""
        entry = self.catalog.get(name)
        if entry is None:
            message = f"the case has no object {name!r}"
            raise KeyError(message)
        return entry

    def flows(self) -> list[Entry]:
        """The derived objects, each behind those that it reads."""
        definitions = order((e.definition for e in self.catalog.entries.values()), {})
        return [self.entry(d.name) for d in definitions if d.derived]

    def _levels(self) -> list[list[Entry]]:
        """The flows: behind those of the first list come those that read what these write."""
        levels: list[list[Entry]] = []
        for entry in self.flows():
            inputs = self._inputs(entry.definition)
            depth = 0
            for level, before in enumerate(levels):
                if any(source.reads(e.definition.topic) for e in before for source in inputs):
                    depth = level + 1
            levels[depth:] = levels[depth:] or [[]]
            levels[depth].append(entry)
        return levels

    def has_table_flows(self) -> bool:
        """True when a table is made of tables."""
        return any(self._kind(flow.definition) is FlowKind.TABLE for flow in self.flows())

    def _kind(self, definition: Definition) -> FlowKind:
        return flow_kind(self._inputs(definition))

    def _inputs(self, definition: Definition) -> list[Definition]:
        names = definition.query.inputs if definition.query is not None else ()
        return [self.entry(name).definition for name in names]

    def close(self) -> None:
        """Removes the case's topics."""
        if "_producer" in self.__dict__ and self.producer is None:
            self._producer.close()
        kept = [e.definition for e in self.catalog.entries.values() if not _topicless(e)]
        own = {definition.topic for definition in kept}
        own |= {name for d in kept if d.stateful for name in (changelog_of(d), ticks_of(d))}
        self._topics.close(own)

    @cached_property
    def _producer(self) -> Producer:
        return self.producer or Producer(self.connection)

    # -- what the planner asks for

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        """The columns of a derived definition, by the engine."""
        payload = {"definition": _dump(definition), "inputs": [_dump(i) for i in inputs]}
        reply = next(iter(self._answers("analyse", payload)))
        return tuple(Column(c["name"], c["type"]) for c in reply["columns"])

    def inspect(self, definition: Definition, inputs: Sequence[Definition]) -> Query:
        """What the plan of a Python function tells, by the engine."""
        payload = {"definition": _dump(definition), "inputs": [_dump(i) for i in inputs]}
        reply = next(iter(self._answers("inspect", payload)))
        return TypeAdapter(Query).validate_python(reply["query"])

    def look(self, source: Definition) -> tuple[Captured, ...]:
        """What a source brings, by the engine."""
        reply = next(iter(self._answers("look", {"definition": _dump(source)})))
        return TypeAdapter(tuple[Captured, ...]).validate_python(reply["brings"])

    def _keep(self, entries: Sequence[Entry]) -> None:
        own = (e.definition for e in entries if not _topicless(e))
        self._topics.ensure(own, self.partitions)
        for entry in entries:
            catalog = self.catalog.with_entry(entry)
            self.catalog = replace(catalog, revision=catalog.revision + 1)

    def _keep_function(self, change: FunctionStep) -> None:
        functions = dict(self.catalog.functions)
        if change.step == "drop":
            del functions[change.function.name.lower()]
        else:
            functions[change.function.name.lower()] = change.function
        self.catalog = replace(
            self.catalog, functions=functions, revision=self.catalog.revision + 1
        )

    def _drop(self, entry: Entry) -> None:
        if not _topicless(entry):
            self._topics.delete(entry.definition.topic)
        left = {n: e for n, e in self.catalog.entries.items() if n != entry.name.lower()}
        self.catalog = replace(self.catalog, entries=left, revision=self.catalog.revision + 1)

    def _keep_bad(self) -> bool:
        """Hands all reports to a new keeper; True when it has been through them."""
        keeper = Keeper(self.spark, self.connection, self.admin, self.clock, self.formats)
        keeper.start()
        for report in self._reports:
            keeper.report(report)
        keeper.stop()
        return all(covered(self.admin, report) for report in self._reports)


def _topicless(entry: Entry) -> bool:
    """True for a source, and for a stream that has no topic of its own."""
    return entry.definition.pattern is not None or not entry.definition.topic


def _dump(definition: Definition) -> Any:
    return _DEFINITION.dump_python(definition, mode="json")
