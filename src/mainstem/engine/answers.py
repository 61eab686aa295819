"""What the engine answers to requests: analysis, plans, history, rows and records to be checked."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.config import SparkSettings
from mainstem.connect.capture import Captured
from mainstem.connect.spec import ConnectorSpec
from mainstem.definitions.affected import affected
from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import Definition, FlowKind, Kind, Lane, Moment, Query
from mainstem.definitions.query import mentions
from mainstem.definitions.resolve import resolve
from mainstem.definitions.state import keeps_state
from mainstem.engine.apply_late import apply_late
from mainstem.engine.as_of import Past
from mainstem.engine.compile import (
    columns_of,
    compile_empty,
    compile_history,
    compile_mentions,
    compile_stream,
    flow_session,
)
from mainstem.engine.encode import JSON_OPTIONS
from mainstem.engine.explain_row import Explainer
from mainstem.engine.extent import Extent, extents
from mainstem.engine.formats import Formats
from mainstem.engine.function_arguments import check_arguments
from mainstem.engine.functions import check_loads
from mainstem.engine.keyed_rules import explained, rows_of_function
from mainstem.engine.pipeline_rules import inspected
from mainstem.engine.realtime import obstacles, promise
from mainstem.engine.refit import refit
from mainstem.engine.remembering import check_streaming, remembers
from mainstem.engine.rules import check_rows, check_rules
from mainstem.engine.sources.formats import described
from mainstem.engine.sources.looks import Looking, look_at
from mainstem.engine.spark_errors import is_data_error, query_error, short
from mainstem.engine.table_changes import as_changes
from mainstem.engine.target import explained_target
from mainstem.engine.times import check_expression
from mainstem.engine.transform_checks import check_transforms
from mainstem.engine.transform_trial import tried_transforms
from mainstem.engine.trial import tried
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.late import Ledger
from mainstem.vocabulary import Column, SystemClock

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_QUERY: TypeAdapter[Query] = TypeAdapter(Query)
_CAPTURED: TypeAdapter[tuple[Captured, ...]] = TypeAdapter(tuple[Captured, ...])
_SPECS: TypeAdapter[dict[str, ConnectorSpec]] = TypeAdapter(dict[str, ConnectorSpec])
_MOMENTS: TypeAdapter[tuple[Moment, ...]] = TypeAdapter(tuple[Moment, ...])
_ROWS_PER_CHUNK = 1000
_RELATION = re.compile(r"StreamingRelationV2 .*")
_EXACTLY_ONCE = "exactly once: records and commit token are written in one transaction per task"
_WHOLE_BATCH = "exactly once: records and commit token are written in one transaction per batch"
_NOT_REAL_TIME = "it reads tables"
_AS_THEY_ARE = "each record meets the tables as they are when it is processed"
_EACH_CHANGE = "each change of a row is written, as the row was before and is after it"
_CAPTURED_CHANGES = "the changes are taken in the order of the source; of a key the last one counts"
_DIFFERENCES = "the differences are written"


class Answers:
    """Handles requests, each in a thread of its own; safe to call from several at once."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        settings: SparkSettings,
        admin: Admin,
        ledger: Ledger,
        formats: Formats,
        project: Path,
        is_live: Callable[[str], bool] = lambda flow: True,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._settings = settings
        self._admin = admin
        self._ledger = ledger
        self._formats = formats
        self._project = project
        self._is_live = is_live
        """Tells whether a flow is the one that writes its table; without a catalog, each is."""

    def __call__(self, kind: str, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The reply to one request, in chunks."""
        match kind:
            case "ping":
                yield {}
            case "analyse":
                columns = self._analyse(payload)
                yield {"columns": [{"name": c.name, "type": c.type} for c in columns]}
            case "inspect":
                yield {"query": _QUERY.dump_python(self._inspect(payload), mode="json")}
            case "explain":
                yield self._explain(payload)
            case "rows":
                yield self._rows(payload)
            case "history":
                yield from self._history(payload)
            case "extent":
                yield self._extent(payload)
            case "explain_row":
                yield self._explain_row(payload)
            case "apply_late":
                yield self._apply_late(payload)
            case "try":
                parts = (self._spark, self._connection, self._admin, self._formats)
                yield from tried(*parts, payload)
            case "transform":
                yield tried_transforms(self._spark, payload)
            case "look":
                looking = Looking(self._spark, self._settings, self._project)
                source = _DEFINITION.validate_python(payload["definition"])
                yield {"brings": _CAPTURED.dump_python(look_at(source, looking), mode="json")}
            case "connectors":
                yield {"described": _SPECS.dump_python(described(self._project), mode="json")}
            case "refit":
                yield refit(self._spark, self._formats, payload)
            case _:
                raise MainstemError("BAD_REQUEST", problem=f'no such engine request: "{kind}"')

    def _analyse(self, payload: dict[str, Any]) -> tuple[Column, ...]:
        definition = _DEFINITION.validate_python(payload["definition"])
        if definition.target is not None:
            [source] = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
            session = self._spark.newSession()
            check_transforms(session, source.columns, definition.transforms, source.name)
            return definition.columns
        if definition.query is None:
            columns = definition.columns
        else:
            columns = columns_of(self._compile(payload))
        session = self._spark.newSession()
        check_expression(session, definition, columns)
        check_rules(session, definition, columns)
        return columns

    def _inspect(self, payload: dict[str, Any]) -> Query:
        """What the plan of a Python function tells; the function is called with no rows."""
        definition = _DEFINITION.validate_python(payload["definition"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        assert definition.query is not None
        query = replace(definition.query, mentioned=())
        session = flow_session(self._spark, self._settings.shuffle_partitions)
        if flow_kind(inputs) is FlowKind.STREAM:
            # it may keep state: then its inputs have watermarks
            guessed = replace(query, aggregates=True)
            plain = replace(definition, query=guessed, deduplicate=(), within=None)
            limit = self._settings.max_records_per_batch
            rows = compile_stream(session, plain, inputs, self._connection, limit)
        else:
            rows = compile_empty(session, query, inputs)
        return inspected(definition, inputs, rows)

    def _compile(self, payload: dict[str, Any]) -> DataFrame:
        definition = _DEFINITION.validate_python(payload["definition"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        session = flow_session(self._spark, self._settings.shuffle_partitions)
        made_by = definition.made_by
        if made_by is not None:
            check_loads(self._spark, (made_by,))
            return rows_of_function(session, definition, made_by, inputs[0])
        if definition.query is not None:
            check_loads(self._spark, definition.query.functions)
        counts = definition.query is not None and count_window_of(definition.query) is not None
        if definition.query is not None and (counts or flow_kind(inputs) is not FlowKind.STREAM):
            rows = compile_empty(session, definition.query, inputs)
            of_changes = definition.kind is Kind.STREAM and flow_kind(inputs) is FlowKind.TABLE
            return as_changes(rows, definition) if of_changes else rows
        rows = compile_stream(
            session, definition, inputs, self._connection, self._settings.max_records_per_batch
        )
        check_streaming(definition, inputs, rows)
        if definition.lane is Lane.REAL_TIME:
            reasons = obstacles(definition, inputs, rows)
            if reasons:
                raise MainstemError(
                    "REALTIME_NOT_POSSIBLE",
                    location=definition.location,
                    name=definition.name,
                    reason="; ".join(reasons),
                )
        return rows

    def _explain(self, payload: dict[str, Any]) -> dict[str, Any]:
        definition = _DEFINITION.validate_python(payload["definition"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        if definition.target is not None:
            return explained_target(definition, inputs[0])
        rows = self._compile(payload)
        if definition.made_by is not None:
            return explained(definition, definition.made_by)
        kind = flow_kind(inputs)
        if definition.source is not None:
            reasons = [_WHOLE_BATCH, _CAPTURED_CHANGES]
        elif kind is not FlowKind.STREAM:
            how = _AS_THEY_ARE
            if kind is FlowKind.TABLE and definition.kind is Kind.STREAM:
                how = _EACH_CHANGE
            elif kind is FlowKind.TABLE:
                how = _refreshed(resolve(definition, columns_of(rows), inputs), inputs)
            once = _EXACTLY_ONCE if kind is FlowKind.ENRICH else _WHOLE_BATCH
            reasons = [once, how, f"cannot run in real time: {_NOT_REAL_TIME}"]
        elif definition.lane is Lane.REAL_TIME:
            reasons = ["latency = 'realtime' was asked for", promise(definition)]
        else:
            blocked = obstacles(definition, inputs, rows)
            reasons = [_EXACTLY_ONCE]
            if blocked:
                reasons += [f"cannot run in real time: {reason}" for reason in blocked]
            else:
                reasons.append("could run in real time: WITH (latency = 'realtime')")
        reasons += remembers(definition, inputs, rows)
        plan = rows._jdf.queryExecution().analyzed().toString()
        # the relation's options hold how to log in to the broker
        plan = _RELATION.sub("Kafka topic", plan)
        return {
            "lane": definition.lane.value,
            "kind": _kind(definition, inputs),
            "reasons": reasons,
            "plan": plan,
        }

    def _rows(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The rows of an INSERT as the columns have them; whoever asks makes records of them."""
        definition = _DEFINITION.validate_python(payload["definition"])
        given = payload["columns"] or [c.name for c in definition.columns]
        session = self._spark.newSession()
        names = ", ".join(f"`{name}`" for name in given)
        try:
            # the gateway's parser let literals and allowed functions through, nothing else
            rows = session.sql(f"SELECT * FROM {payload['values']} AS t({names})")  # noqa: S608
            types = {c.name.lower(): c.type for c in definition.columns}
            lower = {name.lower(): name for name in given}
            typed = rows.select(
                *(
                    F.col(f"`{lower[name]}`").cast(kind).alias(column.name)
                    if (name := column.name.lower()) in lower
                    else F.lit(None).cast(kind).alias(column.name)
                    for column in definition.columns
                    for kind in [types[column.name.lower()]]
                )
            )
            check_rows(typed, definition)
            made = typed.select(F.to_json(F.struct("*"), JSON_OPTIONS).alias("row")).collect()
        except PySparkException as error:
            code = "TYPE_MISMATCH" if is_data_error(error) else "INVALID_QUERY"
            raise MainstemError(code, problem=short(error)) from None
        return {"rows": [found.row for found in made]}

    def _apply_late(self, payload: dict[str, Any]) -> dict[str, Any]:
        definition = _DEFINITION.validate_python(payload["definition"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        session = flow_session(self._spark, self._settings.shuffle_partitions)
        parts = (session, self._connection, self._admin, self._ledger, self._formats)
        flow, now = payload["flow"], SystemClock().now()
        return apply_late(*parts, flow, definition, inputs, self._is_live, now)

    def _history(self, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        query = _QUERY.validate_python(payload["query"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        most, seconds = int(payload["max_rows"]), float(payload["timeout"])
        session = flow_session(self._spark, self._settings.shuffle_partitions)
        moments = _MOMENTS.validate_python(payload.get("moments", ()))
        if moments:
            rows, told = self._past(session, query, inputs, moments)
        else:
            read = extents(session, query, inputs, self._admin)
            rows = compile_history(session, query, inputs, self._connection, self._formats, read)
            told = _extents_told(read)
        columns = columns_of(rows)
        yield {"columns": [{"name": c.name, "type": c.type} for c in columns]}
        documents = self._collect(rows.limit(most + 1), seconds, query)
        values = [[d[f"c{i}"] for i in range(len(columns))] for d in documents[:most]]
        for start in range(0, len(values), _ROWS_PER_CHUNK):
            yield {"rows": values[start : start + _ROWS_PER_CHUNK]}
        yield {"done": True, "truncated": len(documents) > most, "read": told}

    def _past(
        self,
        session: SparkSession,
        query: Query,
        inputs: Sequence[Definition],
        moments: Sequence[Moment],
    ) -> tuple[DataFrame, list[dict[str, Any]]]:
        """The rows of a query over tables as they were, and what is to be known of each."""
        check_loads(self._spark, query.functions)
        past = Past(session, self._connection, self._formats, self._admin, SystemClock())
        by_name = {source.name.lower(): source for source in inputs}
        names = mentions(query)
        tables = [past.table(by_name[n], m) for n, m in zip(names, moments, strict=True)]
        rows = compile_mentions(session, query, [table.rows for table in tables])
        check_arguments(rows, query)
        return rows, [table.told() for table in tables]

    def _explain_row(self, payload: dict[str, Any]) -> dict[str, Any]:
        query = _QUERY.validate_python(payload["query"])
        known = [_DEFINITION.validate_python(item) for item in payload["definitions"]]
        seconds = float(payload["timeout"])
        explainer = Explainer(
            self._spark,
            self._settings,
            self._connection,
            self._formats,
            self._admin,
            {definition.name.lower(): definition for definition in known},
            seconds,
        )
        with self._within(seconds, query):
            return explainer.explain(query)

    def _extent(self, payload: dict[str, Any]) -> dict[str, Any]:
        """What a query over history would read."""
        query = _QUERY.validate_python(payload["query"])
        inputs = [_DEFINITION.validate_python(item) for item in payload["inputs"]]
        session = flow_session(self._spark, self._settings.shuffle_partitions)
        moments = _MOMENTS.validate_python(payload.get("moments", ()))
        if moments:
            return {"read": self._past(session, query, inputs, moments)[1]}
        read = extents(session, query, inputs, self._admin)
        compile_history(session, query, inputs, self._connection, self._formats, read)
        return {"read": _extents_told(read)}

    def _collect(self, rows: DataFrame, seconds: float, query: Query) -> list[dict[str, Any]]:
        """The rows as JSON documents with positional names, within a time limit."""
        numbered = rows.toDF(*(f"c{i}" for i in range(len(rows.columns))))
        json_rows = numbered.select(F.to_json(F.struct("*"), JSON_OPTIONS).alias("row"))
        with self._within(seconds, query):
            return [json.loads(row.row) for row in json_rows.collect()]

    @contextmanager
    def _within(self, seconds: float, query: Query) -> Iterator[None]:
        """Ends the calling thread's jobs after a time; QUERY_TOO_LONG."""
        context = self._spark.sparkContext
        tag = f"history-{uuid.uuid4()}"
        timed_out = threading.Event()

        def give_up() -> None:
            timed_out.set()
            context.cancelJobsWithTag(tag)

        timer = threading.Timer(seconds, give_up)
        context.addJobTag(tag)
        timer.start()
        try:
            yield
        except PySparkException as error:
            if timed_out.is_set():
                raise MainstemError("QUERY_TOO_LONG", seconds=seconds) from None
            raise query_error(error, query) from None
        finally:
            timer.cancel()
            context.removeJobTag(tag)


def _extents_told(read: Mapping[str, Extent]) -> list[dict[str, Any]]:
    return [
        {"stream": name, "records": extent.records, "of": extent.of}
        for name, extent in read.items()
    ]


def _kind(definition: Definition, inputs: Sequence[Definition]) -> str:
    if definition.source is not None:
        return "rows of captured changes"
    match flow_kind(inputs):
        case FlowKind.ENRICH:
            return "stream joined to tables"
        case FlowKind.TABLE if definition.kind is Kind.STREAM:
            return "changes of a table"
        case FlowKind.TABLE:
            return "table over tables"
        case FlowKind.STREAM:
            return "stateful" if keeps_state(definition, inputs) else "stateless"


def _refreshed(definition: Definition, inputs: Sequence[Definition]) -> str:
    """What a change of a table costs a table over tables."""
    how = affected(definition, inputs)
    if isinstance(how, str):
        return f"when a table changes, the whole query is asked again, as {how}; {_DIFFERENCES}"
    keys = ", ".join(how.keys)
    return (
        f"incremental by {keys}: when a table changes, the query is asked again for the values of "
        f"{keys} that the changed rows touch; {_DIFFERENCES}"
    )
