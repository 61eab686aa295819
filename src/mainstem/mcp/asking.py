"""Tools that ask: tables, the log, plans, and the events behind a row. None changes anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from mainstem.definitions.bounds import bounds
from mainstem.definitions.model import Explain, ExplainRow, Select
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError, did_you_mean
from mainstem.mcp.citing import log_cited, row_cited, tables_cited
from mainstem.mcp.tool import Arguments, Place, Tool

MOST_ROWS = 1_000
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="At most so many rows.")]
Sql = Annotated[str, Field(min_length=1, max_length=20_000)]


class QueryArguments(Arguments):
    """What `query` takes."""

    sql: Annotated[Sql, Field(description="One SELECT over tables, without EMIT CHANGES.")]
    parameters: Annotated[
        list[Any] | dict[str, Any] | None,
        Field(description="Values of ? as a list, or of :name as an object."),
    ] = None
    limit: Limit = 100
    wait_for: Annotated[
        str | None, Field(description="The receipt of a write that the answer is to contain.")
    ] = None


class HistoryArguments(Arguments):
    """What `history` takes."""

    sql: Annotated[
        Sql,
        Field(
            description="One SELECT over streams with conditions on _timestamp, _offset or "
            "_partition, or over tables AS OF TIMESTAMP '...' or AS OF OFFSETS '{...}'."
        ),
    ]
    limit: Limit = 100
    whole_log: Annotated[
        bool, Field(description="Read a stream from its beginning to its end, however long.")
    ] = False


class SampleArguments(Arguments):
    """What `sample_records` takes."""

    stream: Annotated[str, Field(min_length=1, max_length=200)]
    minutes: Annotated[
        float, Field(gt=0, le=10_080, description="Of the last so many minutes.")
    ] = 60
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class ExplainArguments(Arguments):
    """What `explain` takes."""

    what: Annotated[
        Sql, Field(description="The name of an object, a SELECT, or a CREATE statement.")
    ]


class ExplainRowArguments(Arguments):
    """What `explain_row` takes."""

    table: Annotated[str, Field(min_length=1, max_length=200)]
    where: Annotated[Sql, Field(description="Which row, such as page = '/home'.")]


def query(place: Place, asked: QueryArguments) -> dict[str, Any]:
    """Rows from served tables."""
    select = _select(asked.sql)
    streams = [name for name, kind in _kinds(place, select).items() if kind != "table"]
    if streams or select.moments:
        raise MainstemError(
            "WRONG_KIND",
            location=select.location,
            name=streams[0] if streams else select.query.inputs[0],
            actual="stream" if streams else "table of the past here",
            expected="table as it is now",
            advice="The tool `history` reads the log: streams, and tables AS OF a moment.",
        )
    answer = place.client.sql(
        asked.sql, asked.parameters or (), wait_for=asked.wait_for, limit=asked.limit
    )
    freshness = answer.get("freshness")
    cited = tables_cited(freshness, datetime.now(UTC)) if freshness else {}
    return {**cited, **_rows(answer)}


def history(place: Place, asked: HistoryArguments) -> dict[str, Any]:
    """Rows from the log."""
    select = _select(asked.sql)
    kinds = _kinds(place, select)
    bounded = bounds(select.query)
    whole = [n for n, kind in kinds.items() if kind == "stream" and n.lower() not in bounded]
    if whole and not asked.whole_log:
        raise MainstemError("QUERY_UNBOUNDED", location=select.location, name=whole[0])
    if not select.moments and "stream" not in kinds.values():
        raise MainstemError(
            "WRONG_KIND",
            location=select.location,
            name=next(iter(kinds), "the query"),
            actual="table",
            expected="stream",
            advice="The tool `query` reads tables; here a table has AS OF TIMESTAMP or OFFSETS.",
        )
    return _from_log(place, asked.sql, asked.limit)


def sample_records(place: Place, asked: SampleArguments) -> dict[str, Any]:
    """The newest records of a stream."""
    since = datetime.now(UTC) - timedelta(minutes=asked.minutes)
    places = "_key, _topic, _partition, _offset, _timestamp"
    bound = f"_timestamp >= TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}Z'"
    newest = f"ORDER BY _timestamp DESC LIMIT {asked.limit}"
    # the name is what somebody typed: below, the whole is read before it is sent
    sql = f"SELECT *, {places} FROM {asked.stream} WHERE {bound} {newest}"  # noqa: S608
    select = _select(sql)
    kinds = _kinds(place, select)
    for name, kind in kinds.items():
        if kind != "stream":
            raise MainstemError(
                "WRONG_KIND",
                name=name,
                actual=kind,
                expected="stream",
                advice="The tool `query` shows the rows of a table.",
            )
    if len(kinds) != 1 or not bounds(select.query):
        raise MainstemError("INVALID_ARGUMENTS", problem=f"{asked.stream!r} is not a name")
    return _from_log(place, sql, asked.limit)


def explain(place: Place, asked: ExplainArguments) -> dict[str, Any]:
    """How a query or a flow is carried out."""
    sql = f"EXPLAIN {asked.what}"
    if not isinstance(_parsed(sql), Explain):
        problem = "what: a name, a SELECT or a CREATE statement is expected"
        raise MainstemError("INVALID_ARGUMENTS", problem=problem)
    answer = place.client.sql(sql)
    return {"plan": answer.get("message"), "detail": answer.get("detail")}


def explain_row(place: Place, asked: ExplainRowArguments) -> dict[str, Any]:
    """The events behind a row."""
    sql = f"EXPLAIN ROW {asked.table} WHERE {asked.where}"
    if not isinstance(_parsed(sql), ExplainRow):
        problem = "table and where: a name and a condition are expected"
        raise MainstemError("INVALID_ARGUMENTS", problem=problem)
    answer = place.client.sql(sql)
    told = answer["detail"]
    return {**row_cited(told), "tree": answer["message"], "events": told}


def _select(sql: str) -> Select:
    """The SELECT that a text is; everything else is refused before it is sent."""
    statement = _parsed(sql)
    if not isinstance(statement, Select):
        raise MainstemError(
            "SQL_NOT_ALLOWED",
            location=statement.location,
            what="a statement that is no SELECT",
            advice="This tool only reads. Other tools explain, plan and pause.",
        )
    if statement.emit_changes:
        raise MainstemError(
            "SQL_NOT_ALLOWED",
            location=statement.location,
            what="EMIT CHANGES",
            advice="A subscription has no end; ask for the rows of now without it.",
        )
    return statement


def _parsed(sql: str) -> Any:
    # only the gateway knows the functions of the catalog
    return parse_one(sql, functions=None)


def _kinds(place: Place, select: Select) -> dict[str, str]:
    """What each object that a query names is."""
    known = {one["name"].lower(): one["kind"] for one in place.client.objects()}
    for name in select.query.inputs:
        if name.lower() not in known:
            suggestion = did_you_mean(name, known)
            raise MainstemError(
                "UNKNOWN_RELATION",
                location=select.query.location,
                name=name,
                suggestion=suggestion,
            )
    return {name: known[name.lower()] for name in select.query.inputs}


def _from_log(place: Place, sql: str, limit: int) -> dict[str, Any]:
    answer = place.client.sql(sql, limit=limit)
    return {**log_cited(answer.get("read") or (), datetime.now(UTC)), **_rows(answer)}


def _rows(answer: dict[str, Any]) -> dict[str, Any]:
    parts = ("columns", "rows", "truncated", "freshness", "read", "warnings", "hints")
    return {part: answer[part] for part in parts if answer.get(part) is not None}


ASKING = (
    Tool(
        "query",
        "Ask tables",
        "Run one read-only SELECT over tables. The answer has rows, the offsets of each table's "
        "topic that it stands for, and a sentence to cite: which table, how old, how far behind. "
        "`again` says how to have the same answer later, with the tool history.",
        QueryArguments,
        query,
    ),
    Tool(
        "history",
        "Ask the log",
        "Run one SELECT over the log of streams, or over tables as they were (AS OF). Spark reads "
        "the log, so bound what is read: WHERE _timestamp >= now() - INTERVAL 1 HOUR. The answer "
        "says how many records were read.",
        HistoryArguments,
        history,
    ),
    Tool(
        "sample_records",
        "Sample records",
        "The newest records of a stream, with key, topic, partition, offset and time of each.",
        SampleArguments,
        sample_records,
    ),
    Tool(
        "explain",
        "Explain a plan",
        "How a SELECT is answered, what a CREATE would run, or what the flow of an object does. "
        "Nothing is run or made.",
        ExplainArguments,
        explain,
    ),
    Tool(
        "explain_row",
        "Explain a row",
        "The input events behind a row of a table: topic, partition, offset, time and payload of "
        "each, down to the sources.",
        ExplainRowArguments,
        explain_row,
    ),
)
