"""One statement of SQL, whatever its kind, from text to answer.

Blocking work (plans, the engine, the log) runs in threads; pull queries run on the event loop.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from mainstem.catalog.backfill import BEGINNING
from mainstem.catalog.entry import Catalog, Entry
from mainstem.catalog.personal import personal
from mainstem.definitions.bounds import bounds
from mainstem.definitions.connections import connection_of
from mainstem.definitions.model import (
    ApplyLate,
    Create,
    CreateIndex,
    Definition,
    Describe,
    DescribeConnector,
    Drop,
    DropIndex,
    Explain,
    ExplainRow,
    InsertValues,
    Kind,
    Listing,
    Pause,
    Query,
    Resume,
    Select,
    Show,
    StartBackfill,
    Statement,
)
from mainstem.definitions.parse import parse_one
from mainstem.definitions.resolve import classify
from mainstem.errors import MainstemError
from mainstem.gateway import connected
from mainstem.gateway.backfills import SHOWN, Backfills
from mainstem.gateway.changes import Changes, Done, plan_text, unknown
from mainstem.gateway.contracts import Broken, explained_rules, rule_lines, rules_shown
from mainstem.gateway.engine import Engine
from mainstem.gateway.explained import row_tree, upstream
from mainstem.gateway.indexes import shown_indexes
from mainstem.gateway.pulled import Asked, Known, Pulled, check_parameters
from mainstem.gateway.records import outgoing, read_rows
from mainstem.gateway.waiting import why_open
from mainstem.gateway.writer import Writer
from mainstem.log.admin import Admin
from mainstem.receipts import write_receipt
from mainstem.schemas.codec import Codec

_MOST_TOPICS = 20
"""Topics that DESCRIBE names; a pattern may stand for thousands."""

Statuses = Callable[[], Mapping[str, dict[str, Any]]]


class Statements:
    """Runs statements against the services that it is given."""

    def __init__(
        self,
        *,
        catalog: Callable[[], Catalog],
        changes: Changes,
        backfills: Backfills,
        engine: Engine,
        writer: Writer,
        codec: Codec,
        admin: Admin,
        pulled: Pulled,
        statuses: Statuses,
        connectors: Callable[[], Sequence[Mapping[str, Any]]],
        broken: Broken,
        index_states: Callable[[], Mapping[tuple[str, str], str]],
        max_rows: int,
        timeout_seconds: float,
    ) -> None:
        self._catalog = catalog
        self._changes = changes
        self._backfills = backfills
        self._engine = engine
        self._writer = writer
        self._codec = codec
        self._admin = admin
        self._pulled = pulled
        self._statuses = statuses
        self._connectors = connectors
        self._broken = broken
        self._index_states = index_states
        self._max_rows = max_rows
        self._timeout = timeout_seconds

    async def run(self, text: str, asked: Asked) -> str:
        """The answer to one statement, as JSON text."""
        known = self._pulled.known(text)
        if known is not None:
            return await self._pulled.answer(known, asked)
        statement = await self._parse(text)
        if isinstance(statement, Select):
            return await self._select(text, statement, asked)
        if isinstance(statement, Explain) and isinstance(statement.target, Select):
            return json.dumps(await self._explain_select(statement.target))
        if asked.says_more:
            problem = "only a SELECT takes parameters, a limit or wait_for"
            raise MainstemError("BAD_REQUEST", problem=problem)
        document = await asyncio.to_thread(self._run, statement)
        return json.dumps(document)

    async def stream(self, text: str, asked: Asked) -> AsyncIterator[bytes]:
        """The answer to a pull query as lines of JSON, in pieces."""
        known = self._pulled.known(text)
        if known is None:
            statement = await self._parse(text)
            read = self._read(text, statement) if isinstance(statement, Select) else None
            if not isinstance(read, Known):
                problem = "only a query over tables is answered in lines"
                raise MainstemError("BAD_REQUEST", problem=problem)
            known = read
        return await self._pulled.stream(known, asked)

    async def _parse(self, text: str) -> Statement:
        return await asyncio.to_thread(parse_one, text, functions=self._catalog().functions)

    def _run(self, statement: Statement) -> dict[str, Any]:
        match statement:
            case Create():
                return _done(self._changes.create(statement))
            case Drop():
                return _done(self._changes.drop(statement))
            case CreateIndex():
                return _done(self._changes.create_index(statement))
            case DropIndex():
                return _done(self._changes.drop_index(statement))
            case Pause(name, location) | Resume(name, location):
                try:
                    return _done(self._changes.pause(name, isinstance(statement, Pause)))
                except MainstemError as error:
                    raise error.at(location) from None
            case ApplyLate(name, location):
                return self._apply_late(self._entry(name, location), location)
            case StartBackfill(name, location):
                try:
                    told = self._backfills.start(name, statement.since or BEGINNING, statement.rate)
                except MainstemError as error:
                    raise error.at(location) from None
                reads = f"{_count(told['records'], 'record')}, from {told['since']}"
                return _message(f"backfill of {told['name']} begins: it reads {reads}", told)
            case InsertValues():
                return self._insert(statement)
            case Show(what):
                return self._show(what)
            case Describe(name, location):
                return self._describe(self._entry(name, location))
            case DescribeConnector(name, location):
                try:
                    return _noted(*connected.connector_options(name, self._engine.connectors))
                except MainstemError as error:
                    raise error.at(location) from None
            case Explain(target):
                return self._explain(target, statement)
            case ExplainRow(query):
                return self._explain_row(query)
            case Select():
                raise AssertionError("run handles queries before it comes here")

    # -- queries

    def _read(self, text: str, select: Select) -> Known | dict[str, Definition]:
        """A pull query in PostgreSQL's words; what a history query reads."""
        catalog = self._catalog()
        definitions = _definitions(catalog, select)
        kind = classify(select, lambda name: definitions.get(name.lower()))
        if kind == "push":
            raise MainstemError(
                "BAD_REQUEST", problem="EMIT CHANGES is a subscription: GET /v1/subscribe?sql=..."
            )
        if kind in ("history", "past"):
            return definitions
        return self._pulled.read(text, select, definitions, catalog)

    async def _select(self, text: str, select: Select, asked: Asked) -> str:
        read = self._read(text, select)
        if isinstance(read, Known):
            return await self._pulled.answer(read, asked)
        if check_parameters(select, asked.parameters) is not None or asked.wait_for is not None:
            raise MainstemError(
                "NOT_SUPPORTED",
                location=select.location,
                what="a parameter" if asked.parameters else "wait_for",
                where="a query over the log",
                advice="Write the value into the query; it reads all that the log has.",
            )
        most = min(asked.limit or self._max_rows, self._max_rows)
        return await asyncio.to_thread(self._history, select, list(read.values()), most)

    def _history(self, select: Select, inputs: list[Definition], most: int) -> str:
        answer = self._engine.history(select.query, inputs, most, self._timeout, select.moments)
        return json.dumps(
            {
                "kind": "rows",
                "columns": answer.columns,
                "rows": answer.rows,
                "truncated": answer.truncated,
                "freshness": None,
                "read": answer.read,
                "note": f"read {_extent(answer.read)}",
                "warnings": _warnings(answer.read),
            }
        )

    # -- the rest

    def _insert(self, statement: InsertValues) -> dict[str, Any]:
        entry = self._entry(statement.name, statement.location)
        try:
            check_writable(entry)
        except MainstemError as error:
            raise error.at(statement.location) from None
        known = entry.definition
        for name in statement.columns:
            if known.column(name) is None:
                columns = [c.name for c in known.columns]
                raise MainstemError(
                    "UNKNOWN_COLUMN",
                    location=statement.location,
                    column=name,
                    known=", ".join(columns),
                    suggestion="",
                )
        rows = read_rows(known, self._engine.rows(known, statement), statement.columns)
        try:
            records = outgoing(known, rows, self._codec)
        except MainstemError as error:
            raise error.at(statement.location) from None
        offsets = self._writer.write(known.topic, records)
        count = len(records)
        return _message(
            f"{count} record{'' if count == 1 else 's'} written to {entry.name}",
            {
                "written": count,
                "offsets": {str(p): o for p, o in offsets.items()},
                "receipt": write_receipt({entry.name: offsets}),
            },
        )

    def _apply_late(self, entry: Entry, location: Any) -> dict[str, Any]:
        definition, catalog = entry.definition, self._catalog()
        names = definition.query.inputs if definition.query else ()
        inputs = [e.definition for name in names if (e := catalog.get(name))]
        try:
            done = self._engine.apply_late(entry.flow_id, definition, inputs)
        except MainstemError as error:
            raise error.at(location) from None
        text = (
            "no late record waits"
            if not done["records"]
            else (
                f"{_count(done['records'], 'late record')} taken in: "
                f"{_count(done['windows'], 'window')} computed again, "
                f"{_count(done['rows'], 'row')} written"
            )
        )
        return _message(f"{entry.name}: {text}", done)

    def _show(self, what: Listing) -> dict[str, Any]:
        catalog = self._catalog()
        match what:
            case Listing.STREAMS | Listing.TABLES:
                kind = Kind.STREAM if what is Listing.STREAMS else Kind.TABLE
                tagged = personal(catalog)
                listed = [e for e in catalog.of_kind(kind) if not e.definition.is_sink]
                rows = [
                    [
                        e.name,
                        e.definition.topic,
                        e.definition.derived,
                        ", ".join(e.definition.key),
                        ", ".join(tagged.get(e.name.lower(), ())),
                    ]
                    for e in listed
                ]
                answer = _rows(("name", "topic", "derived", "key", "pii"), rows)
                wildcards = [e for e in listed if e.definition.pattern is not None]
                if wildcards:
                    notes = (f"{e.name} {self._matched(e.definition)}" for e in wildcards)
                    answer["note"] = "\n".join(notes)
                return answer
            case Listing.TOPICS:
                found = [[t.name, t.partitions, t.replication_factor] for t in self._admin.topics()]
                return _rows(("name", "partitions", "replication_factor"), found)
            case Listing.FLOWS:
                return self._show_flows(catalog)
            case Listing.BACKFILLS:
                rows = [[one[name] for name in SHOWN] for one in self._backfills.all()]
                return _rows(SHOWN, rows)
            case Listing.FUNCTIONS:
                functions = [f for _, f in sorted(catalog.functions.items())]
                rows = [[f.name, f.flavour.value, f.signature, str(f.location)] for f in functions]
                return _rows(("name", "flavour", "signature", "file"), rows)
            case Listing.SOURCES:
                return _rows(*connected.sources(catalog, self._connectors()))
            case Listing.SINKS:
                return _rows(*connected.sinks(catalog, self._statuses()))
            case Listing.CONNECTORS:
                return _rows(*connected.connectors())
            case Listing.INDEXES:
                return _rows(*shown_indexes(catalog, self._index_states()))

    def _show_flows(self, catalog: Catalog) -> dict[str, Any]:
        statuses = self._statuses()
        names = ("state", "lane", "lag_records", "lag_seconds", "rows_in_total", "rows_out_total")
        rows = []
        for entry in catalog.flows():
            status = statuses.get(entry.name, {})
            error = status.get("error")
            rows.append(
                [
                    entry.name,
                    *(status.get(name) for name in names),
                    None if error is None else error.get("title"),
                ]
            )
        return _rows(("name", *names, "error"), rows)

    def _describe(self, entry: Entry) -> dict[str, Any]:
        definition = entry.definition
        if connection_of(definition) is not None:
            return _noted(*connected.described(self._catalog(), entry))
        key = {name.lower() for name in definition.key}
        tagged = personal(self._catalog()).get(entry.name.lower(), {})
        rows = [
            [c.name, c.type, c.name.lower() in key, c.name.lower() in tagged]
            for c in definition.columns
        ]
        answer = _rows(("column", "type", "key", "pii"), rows)
        notes = [] if definition.pattern is None else [self._matched(definition)]
        if definition.record is not None:
            notes.append(f"has the records {definition.record} only")
        if definition.source is not None:
            notes.append(f"comes with the source {definition.source}")
        notes += rule_lines(definition, self._broken)
        notes += [f"index {i.name} ({', '.join(i.columns)})" for i in definition.indexes]
        if notes:
            answer["note"] = "\n".join(notes)
        return answer

    def _matched(self, wildcard: Definition) -> str:
        topics = self._admin.topics_of(wildcard)
        shown = ", ".join(topics[:_MOST_TOPICS])
        if len(topics) > _MOST_TOPICS:
            shown += f" and {len(topics) - _MOST_TOPICS} more"
        return f"reads the topics {wildcard.topic}; now: {shown or 'none'}"

    def _explain(self, target: str | Select | Create, statement: Explain) -> dict[str, Any]:
        match target:
            case str():
                entry = self._entry(target, statement.location)
                return self._explain_flow(entry.definition, self._statuses().get(entry.name, {}))
            case Create(definition):
                return self._explain_flow(definition)
            case Select():
                raise AssertionError("run handles queries before it comes here")

    def _explain_flow(
        self, definition: Definition, status: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """How a flow runs; with its `status`, also what its windows wait for."""
        query = definition.query
        if query is None:
            raise MainstemError("NO_FLOW", location=definition.location, name=definition.name)
        catalog = self._catalog()
        inputs = [e.definition for name in query.inputs if (e := catalog.get(name))]
        told = self._engine.explain(definition, inputs)
        told["waiting"] = (
            [] if status is None else why_open(definition, inputs, status, time.time())
        )
        told["rules"] = rules_shown(definition, self._broken)
        lines = [
            f"flow {definition.name}: {told['kind']}, {told['lane']}",
            *(f"  {reason}" for reason in told["reasons"]),
            f"reads {', '.join(query.inputs)}; writes topic {definition.topic}",
            *(f"  {line}" for line in explained_rules(definition, inputs, self._broken)),
            *(f"  {line}" for line in told["waiting"]),
            told["plan"].rstrip(),
        ]
        return _message("\n".join(lines), told)

    async def _explain_select(self, select: Select) -> dict[str, Any]:
        definitions = _definitions(self._catalog(), select)
        kind = classify(select, lambda name: definitions.get(name.lower()))
        inputs = ", ".join(definition.name for definition in definitions.values())
        match kind:
            case "pull":
                text, plan, hints = await self._pulled.explain(select, definitions)
                lines = [f"pull query over {inputs}, answered by PostgreSQL:", text, plan]
                lines += [hint["message"] for hint in hints]
                detail = {"class": kind, "postgres": text, "plan": plan, "hints": hints}
                return _message("\n".join(filter(None, lines)), detail)
            case "push":
                how = f"push query: changes of {inputs}, from the log"
            case "history":
                sources = list(definitions.values())
                read = await asyncio.to_thread(self._engine.extent, select.query, sources)
                bounded = bounds(select.query)
                lines = [f"history query: Spark reads {_extent(read)} in the log"]
                for name, mentions in bounded.items():
                    told = " or ".join(" and ".join(map(str, mention)) for mention in mentions)
                    lines.append(f"  of {definitions[name].name}: {told}")
                return _message("\n".join(lines), {"class": kind, "read": read})
            case "past":
                sources = list(definitions.values())
                ask = self._engine.extent
                read = await asyncio.to_thread(ask, select.query, sources, select.moments)
                lines = [f"query over the past: Spark reads {_extent(read)} in the log"]
                lines += [f"  {r['stream']} as of {r['at']}" for r in read]
                return _message(
                    "\n".join([*lines, *_warnings(read)]), {"class": kind, "read": read}
                )
        return _message(how, {"class": kind})

    def _explain_row(self, query: Query) -> dict[str, Any]:
        table = self._entry(query.inputs[0], query.location).definition
        known = upstream(self._catalog(), table, query.location)
        told = self._engine.explain_row(query, known, self._timeout)
        return _message(row_tree(told), told)

    def _entry(self, name: str, location: Any) -> Entry:
        catalog = self._catalog()
        entry = catalog.get(name)
        if entry is None:
            raise unknown(catalog, name).at(location)
        return entry


def check_writable(entry: Entry) -> None:
    """Refuse records for an object that others write, or that has no topic of its own."""
    connected.check_writable(entry.definition)
    if entry.definition.pattern is not None:
        raise MainstemError(
            "WRONG_KIND",
            name=entry.name,
            actual="wildcard stream",
            expected="stream with a topic of its own",
            advice=f"Write to a stream or topic that {entry.definition.topic} stands for.",
        )
    if entry.definition.derived:
        raise MainstemError(
            "WRONG_KIND",
            name=entry.name,
            actual=f"derived {entry.definition.kind}",
            expected=f"declared {entry.definition.kind}",
            advice="Its flow writes it; write to what the flow reads instead.",
        )


def _definitions(catalog: Catalog, select: Select) -> dict[str, Definition]:
    found = {}
    for name in select.query.inputs:
        entry = catalog.get(name)
        if entry is None:
            raise unknown(catalog, name).at(select.query.location)
        found[name.lower()] = entry.definition
    return found


def _done(done: Done) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    if done.plan is not None:
        detail = {"plan": plan_text(done.plan), "revision": done.plan.revision}
    return _message(done.message, detail)


def _extent(read: Sequence[Mapping[str, Any]]) -> str:
    """`5 of 100 records of clicks`, for each stream."""
    return ", ".join(
        f"{r['records']:,} of {_count(r['of'], 'record')} of {r['stream']}" for r in read
    )


def _warnings(read: Sequence[Mapping[str, Any]]) -> list[str]:
    """What may be missing, said once for each table."""
    return list(dict.fromkeys(r["warning"] for r in read if r.get("warning")))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _message(message: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "message", "message": message, "detail": detail}


_TYPES = {bool: "boolean", int: "bigint", float: "double"}


def _rows(names: Sequence[str], rows: list[list[Any]]) -> dict[str, Any]:
    def type_of(index: int) -> str:
        value = next((row[index] for row in rows if row[index] is not None), None)
        return _TYPES.get(type(value), "string")

    return {
        "kind": "rows",
        "columns": [{"name": name, "type": type_of(i)} for i, name in enumerate(names)],
        "rows": rows,
        "truncated": False,
        "freshness": None,
    }


def _noted(table: connected.Table, notes: Sequence[str]) -> dict[str, Any]:
    return {**_rows(*table), "note": "\n".join(notes)}
