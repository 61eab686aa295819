"""CREATE statements: STREAM and TABLE, declared or derived with AS SELECT; SOURCE and SINK."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mainstem.definitions.connections import read_sink, read_source
from mainstem.definitions.cursor import Cursor
from mainstem.definitions.event_time import TIME_TYPES, read_event_time
from mainstem.definitions.flow import check_query, table_key
from mainstem.definitions.formats import check_format
from mainstem.definitions.keywords import words
from mainstem.definitions.lexer import Source, Token
from mainstem.definitions.model import Create, Definition, Format, Kind, Rule
from mainstem.definitions.names import check_column_name, check_object_name
from mainstem.definitions.options import Option, read_options, settings
from mainstem.definitions.patterns import BadPatternError, TopicPattern, parse_pattern
from mainstem.definitions.query import read_query
from mainstem.definitions.rules import at_rule, read_column_rule, read_rule
from mainstem.definitions.table_conditions import check_table_rules
from mainstem.definitions.types import read_type
from mainstem.errors import did_you_mean
from mainstem.vocabulary import Column

_OTHER_OBJECTS = words(
    "FUNCTION TEMPORARY TEMP VIEW DATABASE SCHEMA EXTERNAL GLOBAL MATERIALIZED CATALOG"
)


@dataclass(slots=True)
class _Body:
    """What stands in brackets behind the name; a key column comes with its place."""

    columns: list[Column] = field(default_factory=list)
    untyped: list[Token] = field(default_factory=list)
    """Columns with rules only, as those of a query have."""
    key: list[tuple[str, int]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    pii: list[str] = field(default_factory=list)


def read_create(cursor: Cursor) -> Create:
    """The CREATE statement at the cursor, up to its end."""
    source = cursor.source
    begin = cursor.take().start
    or_replace = cursor.accept("OR", "REPLACE")
    for word, read in (("SOURCE", read_source), ("SINK", read_sink)):
        if cursor.accept(word):
            if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
            return Create(read(cursor, begin), or_replace, if_not_exists)
    kind = read_kind(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name, name_at = cursor.take_path(f"the name of the {kind}")
    check_object_name(source, name, name_at)
    pattern = _read_pattern(cursor, kind) if cursor.accept("FROM", "TOPICS") else None
    if pattern is not None and not cursor.at("("):
        raise cursor.unexpected("columns in brackets")
    body = _Body([Column(part, "string") for part in (pattern.places if pattern else ())])
    if cursor.at("("):
        _read_body(cursor, body, name, kind)
    options = read_options(cursor) if cursor.accept("WITH") else {}
    derived = cursor.accept("AS")
    if not derived:
        cursor.finish()
        if body.untyped:
            token = body.untyped[0]
            raise source.syntax(f'the type of "{token.name}" is missing', token.start)
        if not body.columns and not _follows(kind, options):
            raise cursor.unexpected("columns in brackets or AS SELECT")
    elif pattern is not None:
        raise source.error(
            "NOT_SUPPORTED",
            name_at,
            what="FROM TOPICS",
            where="AS SELECT",
            advice="Declare the wildcard stream with its columns; make another AS SELECT of it.",
        )
    elif body.columns:
        raise source.error(
            "NOT_SUPPORTED",
            name_at,
            what="a list of columns",
            where="AS SELECT",
            advice="The columns come from the query; in the brackets may stand rules, such as "
            "CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW.",
        )
    fields = settings(source, options, kind, derived, wildcard=pattern is not None)
    fields |= read_event_time(source, options, fields.pop("event_time", None))
    key = _key(source, name, body, options, fields.pop("key", ()))
    common: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "topic": pattern.text if pattern else fields.pop("topic", name),
        "location": source.location(begin),
        "text": source.text[begin : cursor.tokens[-1].end],
        **fields,
    }
    if body.rules or body.pii:
        common |= {"rules": tuple(body.rules), "pii": tuple(body.pii)}
    if derived:
        definition = _derived(cursor, common, tuple(column for column, _ in key))
    else:
        definition = _declared(source, common, tuple(body.columns), key, options, name_at)
    return Create(definition, or_replace, if_not_exists)


def _follows(kind: Kind, options: dict[str, Option]) -> bool:
    """True when the columns may be left out: those of the registry are taken."""
    said = options.get("format")
    known = [form.value for form in Format if form.registered]
    return kind is Kind.STREAM and said is not None and said.value.lower() in known


def read_kind(cursor: Cursor) -> Kind:
    """STREAM or TABLE at the cursor; others are read before."""
    for kind in (Kind.STREAM, Kind.TABLE):
        if cursor.accept(kind.upper()):
            return kind
    if cursor.current.upper in _OTHER_OBJECTS:
        raise cursor.source.error(
            "SQL_NOT_ALLOWED",
            cursor.current.start,
            what=f"{cursor.current.upper} behind CREATE or DROP",
            advice="Streams, tables, sources and sinks can be made and dropped.",
        )
    raise cursor.unexpected("STREAM, TABLE, SOURCE or SINK")


def _read_pattern(cursor: Cursor, kind: Kind) -> TopicPattern:
    """The pattern behind FROM TOPICS."""
    source, token = cursor.source, cursor.current
    if kind is Kind.TABLE:
        raise source.error(
            "NOT_SUPPORTED",
            cursor.tokens[cursor.index - 2].start,
            what="FROM TOPICS",
            where="a table",
            advice="Make a stream of the topics, and a table AS SELECT ... GROUP BY of that.",
        )
    text = cursor.take_string("a pattern in quotes, such as '*.chat'")
    try:
        pattern = parse_pattern(text)
    except BadPatternError as error:
        # a text with escapes has no simple place for each of its characters
        inside = token.start + 1 + error.at if token.text[1:-1] == text else token.start
        raise source.error(
            "BAD_TOPIC_PATTERN",
            inside,
            pattern=text,
            problem=error.problem,
            advice=error.advice,
        ) from None
    for part in pattern.places:
        check_column_name(source, part, token.start + 1 + text.index(f"{{{part}}}"))
    return pattern


def _read_body(cursor: Cursor, body: _Body, name: str, kind: Kind) -> None:
    """`(column type [rule ...] [PII] [PRIMARY KEY], ..., [rule], [PRIMARY KEY (column, ...)])`.

    Before AS SELECT, a column has rules only.
    """
    source = cursor.source
    cursor.expect("(")
    while True:
        key_at = cursor.current.start
        if cursor.accept("PRIMARY", "KEY"):
            _check_key(source, body, kind, key_at)
            cursor.expect("(")
            while True:
                token = cursor.take_name("a column")
                body.key.append((token.name, token.start))
                if not cursor.accept(","):
                    break
            cursor.expect(")")
        elif at_rule(cursor):
            read_rule(cursor, body.rules)
        else:
            _read_column(cursor, body, name, kind)
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _read_column(cursor: Cursor, body: _Body, name: str, kind: Kind) -> None:
    source = cursor.source
    token = cursor.take_name("a column")
    column = token.name
    check_column_name(source, column, token.start)
    if read_column_rule(cursor, body.rules, token):
        body.untyped.append(token)
        while read_column_rule(cursor, body.rules, token):
            pass
        return
    if any(column.lower() == known.name.lower() for known in body.columns):
        raise source.error("DUPLICATE_COLUMN", token.start, column=column, name=name)
    body.columns.append(Column(column, read_type(cursor, column)))
    while True:
        place = cursor.current.start
        if cursor.at("DEFAULT") or cursor.at("GENERATED"):
            raise source.error(
                "NOT_SUPPORTED",
                place,
                what=f"{cursor.current.upper} ...",
                where="a column",
                advice="Leave it out; compute the value in a stream made from this one.",
            )
        if cursor.accept("PRIMARY", "KEY"):
            _check_key(source, body, kind, place)
            body.key.append((column, token.start))
        elif cursor.accept("PII"):
            if column in body.pii:
                raise source.syntax("PII stands twice", place)
            body.pii.append(column)
        elif not read_column_rule(cursor, body.rules, token):
            return


def _check_key(source: Source, body: _Body, kind: Kind, place: int) -> None:
    if kind is Kind.STREAM:
        raise source.error(
            "NOT_SUPPORTED",
            place,
            what="PRIMARY KEY",
            where="a stream",
            advice="Use WITH (key = '...') to say which columns a record is keyed by.",
        )
    if body.key:
        raise source.syntax("PRIMARY KEY stands twice", place)


def _key(
    source: Source,
    name: str,
    body: _Body,
    options: dict[str, Option],
    listed: tuple[str, ...],
) -> list[tuple[str, int]]:
    """The key columns and their places, from PRIMARY KEY or from the option."""
    if listed and body.key:
        raise source.syntax("PRIMARY KEY and the option key are given", options["key"].name_at)
    key = body.key or [(column, options["key"].value_at) for column in listed]
    seen = set()
    for column, place in key:
        if column.lower() in seen:
            raise source.error("DUPLICATE_COLUMN", place, column=column, name=name)
        seen.add(column.lower())
    return key


def _derived(cursor: Cursor, common: dict[str, Any], key: tuple[str, ...]) -> Definition:
    if not (cursor.at("SELECT") or cursor.at("WITH") or cursor.at("(")):
        raise cursor.unexpected("SELECT")
    tokens = cursor.rest
    emit = [token.upper for token in tokens[-2:]]
    if emit in (["EMIT", "FINAL"], ["EMIT", "CHANGES"]):
        common["final"] = emit == ["EMIT", "FINAL"]
        tokens = tokens[:-2]
    query, parsed = read_query(cursor.source, tokens, definition=True)
    check_query(parsed)
    if common["kind"] is Kind.TABLE:
        key = table_key(parsed, query, common["name"], key) or ()
    return Definition(**common, key=key, query=query)


def _declared(
    source: Source,
    common: dict[str, Any],
    columns: tuple[Column, ...],
    key: list[tuple[str, int]],
    options: dict[str, Option],
    name_at: int,
) -> Definition:
    if not columns:  # key and event time are looked for when the registry has told the columns
        return Definition(**common, key=tuple(column for column, _ in key), follows=True)
    known = {column.name.lower(): column for column in columns}
    names = [column.name for column in columns]
    if common["kind"] is Kind.TABLE and not key:
        raise source.error(
            "MISSING_PRIMARY_KEY",
            name_at,
            name=common["name"],
            advice="Write PRIMARY KEY behind a column, or PRIMARY KEY (a, b) behind all of them.",
        )
    for column, place in key:
        if column.lower() not in known:
            raise source.error(
                "KEY_NOT_A_COLUMN",
                place,
                column=column,
                name=common["name"],
                known=", ".join(names),
                suggestion=did_you_mean(column, names),
            )
    event_time = common.get("event_time")
    if event_time is not None and "time" not in common:
        column_of_time = known.get(event_time.lower())
        if column_of_time is None or column_of_time.type not in TIME_TYPES:
            raise source.error(
                "INVALID_OPTION",
                options["event_time"].value_at,
                option="event_time",
                value=event_time,
                problem="it is not a TIMESTAMP column"
                + (did_you_mean(event_time, names) if column_of_time is None else ""),
                advice=f"Name one of the columns that is a TIMESTAMP: {', '.join(names)}.",
            )
        common["event_time"] = column_of_time.name
    definition = Definition(
        **common, columns=columns, key=tuple(known[column.lower()].name for column, _ in key)
    )
    check_format(definition)
    if definition.kind is Kind.TABLE:
        check_table_rules(definition)
    return definition
