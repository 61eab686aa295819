"""SQL text -> statements. The head of a statement is read here, its query by `query`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mainstem.definitions.as_of import moments_of, take_moments
from mainstem.definitions.create import read_create, read_kind
from mainstem.definitions.cursor import Cursor
from mainstem.definitions.dialect import parse_query
from mainstem.definitions.guard import guard_values
from mainstem.definitions.indexes import at_index, read_create_index, read_drop_index
from mainstem.definitions.keywords import STATEMENT_WORDS, near_keyword, words
from mainstem.definitions.lexer import NO_FUNCTIONS, Source, T, Token
from mainstem.definitions.model import (
    ApplyLate,
    Create,
    CreateIndex,
    Describe,
    DescribeConnector,
    Drop,
    DropIndex,
    Explain,
    ExplainRow,
    FunctionDefinition,
    InsertValues,
    Kind,
    Listing,
    Pause,
    Resume,
    Select,
    Show,
    StartBackfill,
    Statement,
)
from mainstem.definitions.query import parameters, read_query
from mainstem.errors import did_you_mean

_SPARK_STATEMENTS = words(
    """
    SET RESET ADD CACHE UNCACHE CLEAR USE ANALYZE ALTER TRUNCATE LOAD MERGE UPDATE DELETE REFRESH
    MSCK LIST DFS GRANT REVOKE COMMIT ROLLBACK CALL EXECUTE EXPORT IMPORT FROM VALUES TABLE MAP
    REDUCE DECLARE BEGIN REPLACE COMMENT COPY VACUUM UNLOCK LOCK
    """
)
"""Statements of Spark and others that are known, and refused."""


def parse(
    text: str,
    file: str = "<sql>",
    functions: Mapping[str, FunctionDefinition] | None = NO_FUNCTIONS,
) -> list[Statement]:
    """All statements of a text, in order; `functions` as for `Source`."""
    source = Source(text, file, functions)
    return [_statement(Cursor(source, tokens)) for tokens in source.statements()]


def parse_one(
    text: str,
    file: str = "<sql>",
    functions: Mapping[str, FunctionDefinition] | None = NO_FUNCTIONS,
) -> Statement:
    """The one statement of a text; `functions` as for `Source`."""
    source = Source(text, file, functions)
    statements = source.statements()
    if len(statements) != 1:
        place = statements[1][0].start if statements else 0
        raise source.error("ONE_STATEMENT_EXPECTED", place, count=len(statements))
    return _statement(Cursor(source, statements[0]))


def _statement(cursor: Cursor) -> Statement:
    first = cursor.current
    read = _READERS.get(first.upper)
    if read is not None:
        return read(cursor)
    source = cursor.source
    if first.upper in _SPARK_STATEMENTS:
        raise source.error(
            "SQL_NOT_ALLOWED",
            first.start,
            what=f"the statement {first.upper}",
            advice=f"Statements begin with {', '.join(STATEMENT_WORDS)}.",
        )
    near = near_keyword(first) and did_you_mean(first.text, STATEMENT_WORDS)
    raise source.syntax(f'a statement cannot begin with "{first.text}"', first.start, near)


def _select(cursor: Cursor) -> Select:
    place = cursor.source.location(cursor.current.start)
    tokens = cursor.rest
    last = [token.upper for token in tokens[-2:]]
    if last == ["EMIT", "FINAL"]:
        raise cursor.source.error(
            "NOT_SUPPORTED",
            tokens[-2].start,
            what="EMIT FINAL",
            where="queries",
            advice="Use EMIT CHANGES, which sends every change.",
        )
    emit_changes = last == ["EMIT", "CHANGES"]
    if emit_changes:
        tokens = tokens[:-2]
    source, tokens, clauses = take_moments(cursor.source, tokens)
    query, parsed = read_query(source, tokens, definition=False)
    moments = moments_of(parsed, clauses)
    if moments and emit_changes:
        raise source.error(
            "NOT_SUPPORTED",
            clauses[0].start,
            what="AS OF",
            where="EMIT CHANGES",
            advice="Leave one of the two out: a moment that has passed does not change.",
        )
    return Select(query, place, emit_changes, parameters(parsed), moments)


def _insert(cursor: Cursor) -> InsertValues:
    place = cursor.source.location(cursor.take().start)
    cursor.expect("INTO")
    cursor.accept("TABLE")
    name, _ = cursor.take_path("the name of a stream or a table")
    columns: list[Token] = []
    if cursor.accept("("):
        while True:
            token = cursor.take_name("a column")
            if token.name.lower() in (c.name.lower() for c in columns):
                raise cursor.source.error(
                    "DUPLICATE_COLUMN", token.start, column=token.name, name=name
                )
            columns.append(token)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    if cursor.at("SELECT") or cursor.at("WITH"):
        raise cursor.source.error(
            "NOT_SUPPORTED",
            cursor.current.start,
            what="INSERT ... SELECT",
            where="INSERT",
            advice="Give rows with VALUES, or make a stream with CREATE STREAM ... AS SELECT.",
        )
    if not cursor.at("VALUES"):
        raise cursor.unexpected("VALUES")
    if cursor.peek(1).kind is T.END:
        cursor.take()
        raise cursor.unexpected("a row in brackets")
    parsed = parse_query(cursor.source, cursor.rest)
    guard_values(parsed)
    return InsertValues(name, tuple(c.name for c in columns), parsed.text, place)


def _create(cursor: Cursor) -> Create | CreateIndex:
    return read_create_index(cursor) if at_index(cursor) else read_create(cursor)


def _drop(cursor: Cursor) -> Drop | DropIndex:
    if at_index(cursor):
        return read_drop_index(cursor)
    place = cursor.source.location(cursor.take().start)
    sink = cursor.accept("SINK")
    kind = Kind.STREAM if sink else Kind.SOURCE if cursor.accept("SOURCE") else read_kind(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    name, _ = cursor.take_path(f"the name of a {'sink' if sink else kind}")
    cascade = cursor.accept("CASCADE")
    cursor.finish()
    return Drop(name, place, kind, if_exists, cascade, sink)


def _pause(cursor: Cursor) -> Pause:
    place = cursor.source.location(cursor.take().start)
    return Pause(_only_name(cursor), place)


def _resume(cursor: Cursor) -> Resume:
    place = cursor.source.location(cursor.take().start)
    return Resume(_only_name(cursor), place)


def _apply(cursor: Cursor) -> ApplyLate:
    place = cursor.source.location(cursor.take().start)
    cursor.expect("LATE")
    return ApplyLate(_only_name(cursor), place)


def _backfill(cursor: Cursor) -> StartBackfill:
    place = cursor.source.location(cursor.take().start)
    name, _ = cursor.take_path("the name of a table")
    since = rate = None
    if cursor.accept("FROM") and not cursor.accept("BEGINNING"):
        since = cursor.take_string("BEGINNING or a time in quotes")
    if cursor.accept("RATE"):
        number = cursor.current
        rate = cursor.take_number()
        if rate == 0:
            raise cursor.source.syntax("a rate of 0 would never end", number.start)
    cursor.finish()
    return StartBackfill(name, place, since, rate)


def _describe(cursor: Cursor) -> Describe | DescribeConnector:
    place = cursor.source.location(cursor.take().start)
    if cursor.at("CONNECTOR") and cursor.peek(1).kind is T.STRING:
        cursor.take()
        connector = cursor.take_string("the name of a connector in quotes")
        cursor.finish()
        return DescribeConnector(connector, place)
    return Describe(_only_name(cursor), place)


def _only_name(cursor: Cursor) -> str:
    """A name; what it is may be said before it, for no two objects share one."""
    if cursor.peek(1).kind in (T.WORD, T.QUOTED):
        any(cursor.accept(kind) for kind in ("STREAM", "TABLE", "SOURCE", "SINK"))
    name, _ = cursor.take_path("the name of a stream or a table")
    cursor.finish()
    return name


def _show(cursor: Cursor) -> Show:
    place = cursor.source.location(cursor.take().start)
    for what in Listing:
        if cursor.accept(what.upper()):
            cursor.finish()
            return Show(what, place)
    listings = [what.upper() for what in Listing]
    error = cursor.unexpected(", ".join(listings))
    error.params["suggestion"] = did_you_mean(cursor.current.text or "?", listings)
    raise error


def _explain(cursor: Cursor) -> Explain | ExplainRow:
    word = cursor.take()
    place = cursor.source.location(word.start)
    if cursor.at("ROW") and cursor.peek(1).kind in (T.WORD, T.QUOTED):
        return _explain_row(cursor, word)
    match cursor.current.upper:
        case "SELECT" | "WITH" | "(":
            return Explain(_select(cursor), place)
        case "CREATE":
            return Explain(read_create(cursor), place)
        case _:
            return Explain(_only_name(cursor), place)


def _explain_row(cursor: Cursor, first: Token) -> ExplainRow:
    """EXPLAIN ROW name WHERE ..., read as SELECT * FROM name WHERE ..."""
    row = cursor.take()
    begin = cursor.index
    cursor.take_path("the name of a table")
    if not cursor.at("WHERE"):
        raise cursor.unexpected("WHERE")
    source = cursor.source.reworded([(first.start, row.end, "SELECT*FROM")])
    head = (
        Token(T.WORD, "SELECT", first.start, first.start + 6),
        Token(T.SYMBOL, "*", first.start + 6, first.start + 7),
        Token(T.WORD, "FROM", first.start + 7, first.start + 11),
    )
    query, parsed = read_query(source, (*head, *cursor.tokens[begin:]), definition=False)
    plain = {"expressions", "from_", "where"}
    more = {part for part, value in parsed.tree.args.items() if value} - plain
    if more or len(query.inputs) != 1 or parameters(parsed):
        raise source.error(
            "NOT_SUPPORTED",
            first.start,
            what="more than the name of a table and a condition",
            where="EXPLAIN ROW",
            advice="EXPLAIN ROW visits WHERE page = '/home'",
        )
    return ExplainRow(query, source.location(first.start))


_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": _create,
    "INSERT": _insert,
    "DROP": _drop,
    "PAUSE": _pause,
    "RESUME": _resume,
    "APPLY": _apply,
    "BACKFILL": _backfill,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
    "SELECT": _select,
    "WITH": _select,
    "(": _select,
}
