"""Runs definitions on the real engine, one bounded step at a time: events in, run, rows out.

The driver is for tests of pipelines: same parser, planner, Spark plans and exactly-once writer as
the product, on a real broker, but a flow runs only when it is told to, until it has read all that
is there, and then ends. Topics get a prefix of their own, so that many cases share one broker.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mainstem.catalog.build import build_plan
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.plan import (
    ChangeInPlace,
    CreateObject,
    DropObject,
    FunctionStep,
    Plan,
    Rebuild,
)
from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition, InsertValues, Kind, Query
from mainstem.definitions.patterns import TopicPattern
from mainstem.definitions.project import load_definitions
from mainstem.definitions.python_functions import load_functions
from mainstem.definitions.resolve import order
from mainstem.engine.answers import Answers
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import flow_session
from mainstem.engine.keyed import changelog_of, ticks_of
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.engine.quarantine import Keeper, Report
from mainstem.engine.set_aside import set_aside
from mainstem.engine.spark_errors import flow_error
from mainstem.engine.tables import Tables
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import QUARANTINE_TOPIC, Clock, Column, Record, SystemClock, group_of

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_LONGEST_RUN_SECONDS = 120
_LONGEST_WAIT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Event:
    """A record for a stream: a row, or raw bytes as they are.

    With `topic` it goes to a topic of that name, which is made if there is none.
    """

    stream: str = ""
    row: Mapping[str, Any] | None = None
    raw: bytes | None = None
    key: str | None = None
    timestamp: int | None = None
    topic: str | None = None


@dataclass
class Driver:
    """One case's world: a catalog in memory, topics of its own, checkpoints in `folder`."""

    spark: SparkSession
    connection: Connection
    admin: Admin
    folder: Path
    clock: Clock = field(default_factory=SystemClock)
    prefix: str = field(default_factory=lambda: f"case-{uuid.uuid4().hex[:8]}.")
    catalog: Catalog = field(default_factory=Catalog)
    partitions: int = 2

    def __post_init__(self) -> None:
        self._settings = SparkSettings()
        self._answers = Answers(self.spark, self.connection, self._settings)
        self._reports: list[Report] = []
        self._topics: set[str] = set()
        checkpoints = Checkpoints(self.spark, str(self.folder))
        tables = Tables(self.spark, self.connection, self.admin, checkpoints)
        self._machinery = Machinery(
            self.spark,
            self.connection,
            self._settings,
            checkpoints,
            tables,
            self.admin,
            self.clock,
        )

    def apply(self, sql: str, *, functions: str | None = None, drop_missing: bool = False) -> Plan:
        """Plans and applies the CREATE statements of a text, and the Python `functions` of another.

        Without `functions` those that are there stay. With `drop_missing` the texts are the whole
        project, as for `mainstem apply`: what is not in them is dropped.
        """
        known = dict(self.catalog.functions)
        texts = [("case.sql", sql)]
        if functions is not None:
            texts.append(("functions/case.py", functions))
            known = load_functions(texts)
        definitions = [
            replace(d, topic=self.prefix + d.topic) for d in load_definitions(texts, known)
        ]
        plan = build_plan(
            self.catalog,
            definitions,
            analyser=self,
            facts=_Facts(self.admin),
            origin=Origin.PROJECT,
            drop_missing=drop_missing,
            functions=known,
        )
        for change in plan.functions:
            self._keep_function(change)
        for step in plan.steps:
            match step:
                case CreateObject() | ChangeInPlace():
                    self._keep(step.entry)
                case Rebuild():
                    if step.entry.definition.derived:
                        self.admin.truncate(step.entry.definition.topic)
                    self._keep(step.entry)
                case DropObject():
                    self._drop(step.entry)
        return plan

    def send(self, events: Iterable[Event]) -> None:
        """Writes events to their streams, in order."""
        for event in events:
            value, key = event.raw, event.key
            if event.row is not None:
                value = json.dumps(event.row, default=str).encode()
            if event.topic is not None:
                topic = self._make_topic(event.topic)
            else:
                definition = self.entry(event.stream).definition
                topic = definition.topic
                key = key if key is not None else _key(definition, event.row)
            record = Outgoing(
                key=None if key is None else key.encode(), value=value, timestamp=event.timestamp
            )
            self._producer.send(topic, [record])

    def delete_topic(self, name: str) -> None:
        """Deletes a topic that an event made."""
        self.admin.delete_topic(self.prefix + name)

    def insert(self, statement: InsertValues) -> None:
        """Writes the rows of an INSERT, typed and encoded by the engine."""
        definition = self.entry(statement.name).definition
        payload = {
            "definition": _dump(definition),
            "columns": list(statement.columns),
            "values": statement.values,
        }
        reply = next(iter(self._answers("encode", payload)))
        records = [Outgoing(_bytes(r["key"]), _bytes(r["value"])) for r in reply["records"]]
        self._producer.send(definition.topic, records)

    def run(self) -> None:
        """Runs every flow over all that is there, upstream first, and waits for its end."""
        for entry in self._in_order():
            query = entry.definition.query
            assert query is not None
            inputs = [self.entry(name).definition for name in query.inputs]
            self._run_flow(entry, inputs)
            self._settle(entry.definition.topic)
            for definition in (i for i in inputs if i.kind is Kind.STREAM):
                end = self.admin.all_end_offsets(self.admin.topics_of(definition))
                self._reports.append(Report(definition, {}, end, None))

    def _run_flow(self, entry: Entry, inputs: Sequence[Definition]) -> None:
        """Runs one flow to the end of its input, putting aside what its functions fail for."""
        session = flow_session(self.spark, self._settings.shuffle_partitions)
        checkpoint = str(self.folder / entry.flow_id)
        running, writer = start_micro_batch(
            session, entry, inputs, self._machinery, checkpoint, availableNow=True
        )
        try:
            running.awaitTermination(_LONGEST_RUN_SECONDS)
        except PySparkException as error:
            failure = writer.failure or flow_error(error, entry.name)
            if not set_aside(failure, entry, inputs, self.connection, self.clock):
                raise failure from None
            self._run_flow(entry, inputs)
        else:
            if writer.calling is not None and writer.calling.ring():  # a timer is due
                self._run_flow(entry, inputs)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What the object holds now: a stream's records, or a table's latest rows."""
        definition = self.entry(name).definition
        records = self.records(definition.topic)
        if definition.kind is Kind.TABLE:
            records = list({r.key: r for r in records}.values())
        return [_row(r.value) for r in records if r.value is not None]

    def keys(self, name: str) -> list[str | None]:
        """The keys of all records of the object, as they are in the log."""
        records = self.records(self.entry(name).definition.topic)
        return [None if r.key is None else r.key.decode() for r in records]

    def records(self, topic: str) -> list[Record]:
        """All committed records of a topic, partition by partition."""
        self._settle(topic)
        begin, end = self.admin.begin_offsets(topic), self.admin.end_offsets(topic)
        batches = read_range(self.connection, topic, begin, end)
        return sorted((r for b in batches for r in b), key=lambda r: (r.partition, r.offset))

    def quarantine(self) -> list[Record]:
        """Records of this case that were put into quarantine, by the reports of all runs."""
        eventually(self._keep_bad, _LONGEST_WAIT_SECONDS, what="the quarantine is complete")
        mine = self.prefix.encode()
        return [
            record
            for record in self.records(QUARANTINE_TOPIC)
            if (dict(record.headers).get("topic") or b"").startswith(mine)
        ]

    def history(self, query: Query) -> list[list[Any]]:
        """The rows of a query over the log."""
        payload = {
            "query": TypeAdapter(Query).dump_python(query, mode="json"),
            "inputs": [_dump(self.entry(name).definition) for name in query.inputs],
            "max_rows": 1000,
            "timeout": 60,
        }
        return [row for chunk in self._answers("history", payload) for row in chunk.get("rows", [])]

    def entry(self, name: str) -> Entry:
        """The catalog's entry of that name."""
        entry = self.catalog.get(name)
        if entry is None:
            message = f"the case has no object {name!r}"
            raise KeyError(message)
        return entry

    def close(self) -> None:
        """Removes the case's topics."""
        if "_producer" in self.__dict__:
            self._producer.close()
        kept = [e.definition for e in self.catalog.entries.values() if not _wildcard(e)]
        own = {definition.topic for definition in kept}
        own |= {name for d in kept if d.stateful for name in (changelog_of(d), ticks_of(d))}
        for topic in own | self._topics:
            self.admin.delete_topic(topic)

    @cached_property
    def _producer(self) -> Producer:
        return Producer(self.connection)

    # -- what the planner asks for

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        """The columns of a derived definition, by the engine."""
        payload = {"definition": _dump(definition), "inputs": [_dump(i) for i in inputs]}
        reply = next(iter(self._answers("analyse", payload)))
        return tuple(Column(c["name"], c["type"]) for c in reply["columns"])

    def _keep(self, entry: Entry) -> None:
        definition = entry.definition
        if not _wildcard(entry):
            config = {"cleanup.policy": "compact,delete"} if definition.kind is Kind.TABLE else {}
            spec = TopicSpec(definition.topic, definition.partitions or self.partitions, 1, config)
            self.admin.ensure_topic(spec)
        self.catalog = replace(self.catalog.with_entry(entry), revision=self.catalog.revision + 1)

    def _make_topic(self, name: str) -> str:
        topic = self.prefix + name
        self.admin.ensure_topic(TopicSpec(topic, self.partitions, 1))
        self._topics.add(topic)
        return topic

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
        if not _wildcard(entry):
            self.admin.delete_topic(entry.definition.topic)
        left = {n: e for n, e in self.catalog.entries.items() if n != entry.name.lower()}
        self.catalog = replace(self.catalog, entries=left, revision=self.catalog.revision + 1)

    def _settle(self, topic: str) -> None:
        """Waits until all that was committed can be read: the broker marks it a moment later."""
        eventually(
            lambda: self.admin.end_offsets(topic) == self.admin.end_offsets(topic, committed=False),
            _LONGEST_WAIT_SECONDS,
            what=f"all transactions of {topic} have ended",
        )

    def _keep_bad(self) -> bool:
        """Hands all reports to a new keeper; True when it has been through them."""
        keeper = Keeper(self.spark, self.connection, self.admin, self.clock)
        keeper.start()
        for report in self._reports:
            keeper.report(report)
        keeper.stop()
        return all(map(self._covered, self._reports))

    def _covered(self, report: Report) -> bool:
        """True when the keeper has been through all that a report tells of."""
        group = group_of(f"quarantine.{report.stream.topic}")
        there = self.admin.all_end_offsets(report.end)
        try:
            kept = {topic: self.admin.group_offsets(group, topic) for topic in there}
        except MainstemError:  # a broker that has just started may not know its groups yet
            return False
        return all(
            kept[topic].get(partition, 0) >= end
            for topic in there
            for partition, end in report.end[topic].items()
        )

    def _in_order(self) -> list[Entry]:
        """The flows, each behind those that write what it reads."""
        definitions = order((e.definition for e in self.catalog.entries.values()), {})
        return [self.entry(d.name) for d in definitions if d.derived]


class _Facts:
    """What the planner asks of the log."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def records(self, topic: str) -> int | None:
        """How many records a topic holds; None when there is none."""
        if self._admin.topic(topic) is None:
            return None
        begin, end = self._admin.begin_offsets(topic), self._admin.end_offsets(topic)
        return sum(end[p] - begin[p] for p in end)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None when there is none."""
        info = self._admin.topic(topic)
        return None if info is None else info.partitions

    def matching(self, pattern: TopicPattern) -> list[str]:
        """The topics that a pattern stands for."""
        return self._admin.matching(pattern)


def _wildcard(entry: Entry) -> bool:
    """True for a stream that has no topic of its own."""
    return entry.definition.pattern is not None


def _dump(definition: Definition) -> Any:
    return _DEFINITION.dump_python(definition, mode="json")


def _key(definition: Definition, row: Mapping[str, Any] | None) -> str | None:
    if row is None or not definition.key:
        return None
    if definition.kind is Kind.TABLE or len(definition.key) > 1:
        return json.dumps({name: row.get(name) for name in definition.key}, default=str)
    value = row.get(definition.key[0])
    return None if value is None else str(value)


def _row(value: bytes) -> dict[str, Any]:
    """A record's row, decimals with all their digits."""
    row: dict[str, Any] = json.loads(value, parse_float=Decimal)
    return row


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
