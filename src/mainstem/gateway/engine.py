"""What the gateway asks of the engine through the log: analysis, rows, history, reasons."""

from __future__ import annotations

import base64
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from mainstem.connect.capture import Captured
from mainstem.connect.spec import ConnectorSpec
from mainstem.definitions.model import Definition, InsertValues, Moment, Query
from mainstem.definitions.transforms import Transform
from mainstem.errors import MainstemError
from mainstem.log.quarantine import Quarantined
from mainstem.log.requests import Caller
from mainstem.schemas.model import Schema
from mainstem.vocabulary import Column

_DEFINITION: TypeAdapter[Definition] = TypeAdapter(Definition)
_QUERY: TypeAdapter[Query] = TypeAdapter(Query)
_TRANSFORMS: TypeAdapter[tuple[Transform, ...]] = TypeAdapter(tuple[Transform, ...])
_CAPTURED: TypeAdapter[tuple[Captured, ...]] = TypeAdapter(tuple[Captured, ...])
_SPECS: TypeAdapter[dict[str, ConnectorSpec]] = TypeAdapter(dict[str, ConnectorSpec])
_MOMENTS: TypeAdapter[tuple[Moment, ...]] = TypeAdapter(tuple[Moment, ...])
_ANALYSE_SECONDS = 60.0
_ROWS_SECONDS = 60.0
_REFIT_SECONDS = 60.0
_APPLY_SECONDS = 600.0
_TRY_SECONDS = 600.0
_PATIENCE_SECONDS = 5.0
"""How much longer than a query itself its answer may take."""


@dataclass(frozen=True, slots=True)
class History:
    """The answer of a query over the log."""

    columns: list[dict[str, str]]
    rows: list[list[Any]]
    truncated: bool
    read: list[dict[str, Any]]
    """How many records of each stream were read, of how many."""


@dataclass(frozen=True, slots=True)
class Refitted:
    """A record out of quarantine as it would be written again."""

    id: int
    key: bytes | None
    value: bytes | None
    problem: str | None
    """Why the stream or table would refuse it; None when it would not."""


class Engine:
    """Requests to the engine. Every call blocks; use it from threads, not from the event loop."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        """The columns of a derived definition; errors stand at their place in the query."""
        payload = {"definition": _dump(definition), "inputs": [_dump(d) for d in inputs]}
        reply = self._caller.call("analyse", payload, _ANALYSE_SECONDS)
        return tuple(Column(c["name"], c["type"]) for c in reply["columns"])

    def inspect(self, definition: Definition, inputs: Sequence[Definition]) -> Query:
        """The query that is a Python function, with what only its plan tells."""
        payload = {"definition": _dump(definition), "inputs": [_dump(d) for d in inputs]}
        reply = self._caller.call("inspect", payload, _ANALYSE_SECONDS)
        return _QUERY.validate_python(reply["query"])

    def look(self, source: Definition) -> tuple[Captured, ...]:
        """What a source brings that runs in the engine; errors have the option that is to blame."""
        reply = self._caller.call("look", {"definition": _dump(source)}, _ANALYSE_SECONDS)
        return _CAPTURED.validate_python(reply["brings"])

    def connectors(self) -> dict[str, ConnectorSpec]:
        """The descriptions of the data sources that the project itself has, by name."""
        reply = self._caller.call("connectors", {}, _ANALYSE_SECONDS)
        return _SPECS.validate_python(reply["described"])

    def explain(self, definition: Definition, inputs: Sequence[Definition]) -> dict[str, Any]:
        """Lane, reasons, kind and Spark's plan of a flow."""
        payload = {"definition": _dump(definition), "inputs": [_dump(d) for d in inputs]}
        return self._caller.call("explain", payload, _ANALYSE_SECONDS)

    def apply_late(
        self, flow: str, definition: Definition, inputs: Sequence[Definition]
    ) -> dict[str, Any]:
        """Computes the windows that late records missed again; says how much that was."""
        payload = {
            "flow": flow,
            "definition": _dump(definition),
            "inputs": [_dump(d) for d in inputs],
        }
        return self._caller.call("apply_late", payload, _APPLY_SECONDS)

    def rows(self, definition: Definition, insert: InsertValues) -> list[str]:
        """The rows of an INSERT, typed as the columns are, each as a JSON object."""
        payload = {
            "definition": _dump(definition),
            "columns": list(insert.columns),
            "values": insert.values,
        }
        try:
            reply = self._caller.call("rows", payload, _ROWS_SECONDS)
        except MainstemError as error:
            raise error.at(insert.location) from None
        rows: list[str] = reply["rows"]
        return rows

    def refit(
        self, entries: Sequence[Quarantined], definition: Definition | None, query: Query | None
    ) -> list[Refitted]:
        """Records out of quarantine, mended by the query, and what the columns say of them.

        Records that the query leaves out are left out here, too.
        """
        payload = {
            "definition": None if definition is None else _dump(definition),
            "query": None if query is None else _QUERY.dump_python(query, mode="json"),
            "records": [_raw(entry) for entry in entries],
        }
        reply = self._caller.call("refit", payload, _REFIT_SECONDS)
        return [
            Refitted(r["id"], _decoded(r["key"]), _decoded(r["value"]), r["problem"])
            for r in reply["records"]
        ]

    def history(
        self,
        query: Query,
        inputs: Sequence[Definition],
        max_rows: int,
        timeout: float,
        moments: Sequence[Moment] = (),
    ) -> History:
        """Run a query over the log of its streams, as much of it as the query can see.

        With `moments`, over tables as they were, one for each mention.
        """
        payload = {
            "query": _QUERY.dump_python(query, mode="json"),
            "inputs": [_dump(d) for d in inputs],
            "moments": _MOMENTS.dump_python(tuple(moments), mode="json"),
            "max_rows": max_rows,
            "timeout": timeout,
        }
        answer = History([], [], truncated=False, read=[])
        for chunk in self._caller.stream("history", payload, timeout + _PATIENCE_SECONDS):
            if "columns" in chunk:
                answer = replace(answer, columns=chunk["columns"])
            answer.rows.extend(chunk.get("rows", ()))
            if "done" in chunk:
                answer = replace(answer, truncated=chunk["truncated"], read=chunk["read"])
        return answer

    def explain_row(
        self, query: Query, definitions: Sequence[Definition], timeout: float
    ) -> dict[str, Any]:
        """The events behind the row that the query finds; `definitions` lead to them."""
        payload = {
            "query": _QUERY.dump_python(query, mode="json"),
            "definitions": [_dump(d) for d in definitions],
            "timeout": timeout,
        }
        return self._caller.call("explain_row", payload, timeout + _PATIENCE_SECONDS)

    def try_schema(
        self, topic: str, schema: Schema, last: int
    ) -> Generator[dict[str, Any], None, None]:
        """Would the last records of a topic pass a schema? How far it is, then what was found."""
        references = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
        document = {"type": schema.type.value, "text": schema.text, "references": references}
        payload = {"topic": topic, "last": last, "schema": document}
        yield from self._caller.stream("try", payload, _TRY_SECONDS)

    def try_definition(
        self, definition: Definition, last: int
    ) -> Generator[dict[str, Any], None, None]:
        """Would the last records of its topic fit a definition? In the same way."""
        payload = {"definition": _dump(definition), "last": last}
        yield from self._caller.stream("try", payload, _TRY_SECONDS)

    def try_transforms(
        self, definition: Definition, transforms: Sequence[Transform], records: Sequence[str]
    ) -> dict[str, Any]:
        """What becomes of records: JSON texts with the columns of the definition."""
        payload = {
            "definition": _dump(definition),
            "transforms": _TRANSFORMS.dump_python(tuple(transforms), mode="json"),
            "records": list(records),
        }
        return self._caller.call("transform", payload, _ANALYSE_SECONDS)

    def extent(
        self, query: Query, inputs: Sequence[Definition], moments: Sequence[Moment] = ()
    ) -> list[dict[str, Any]]:
        """How many records of each input a query over history would read, of how many."""
        payload = {
            "query": _QUERY.dump_python(query, mode="json"),
            "inputs": [_dump(d) for d in inputs],
            "moments": _MOMENTS.dump_python(tuple(moments), mode="json"),
        }
        read: list[dict[str, Any]] = self._caller.call("extent", payload, _ANALYSE_SECONDS)["read"]
        return read


def _dump(definition: Definition) -> Any:
    return _DEFINITION.dump_python(definition, mode="json")


def _raw(entry: Quarantined) -> dict[str, Any]:
    origin = entry.origin
    return {
        "id": entry.id,
        "key": _encoded(origin.key),
        "value": _encoded(origin.value),
        "cause": entry.cause,
        "topic": origin.topic,
        "partition": origin.partition,
        "offset": origin.offset,
        "timestamp": origin.timestamp,
    }


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
