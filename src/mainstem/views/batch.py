"""Records of one view into its table: set-based, and with the bad ones singled out.

`ViewWriter.write` is the fast way: all staged records in one or two statements. When PostgreSQL
refuses them, `ViewWriter.write_good` finds the ones that cannot become rows: first by asking
about all records at once, then, for what remains, by halves under savepoints. Records that break
the table's rules are taken out before the rest is written: of the others of their key the last
counts, as if they were not there.
"""

# ruff: noqa: S608 - every name and text in these statements goes through `quoted` or `literal`

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg import errors as pg

from mainstem.definitions.model import Definition, Format, OnViolation
from mainstem.definitions.rules import told
from mainstem.definitions.table_conditions import postgres_condition
from mainstem.errors import MainstemError
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.postgres_types import postgres_type
from mainstem.views.rows import (
    key_object,
    literal,
    names,
    quoted,
    record_columns,
    table,
    typed_columns,
    value_object,
)
from mainstem.views.store import Connection
from mainstem.vocabulary import Record

DATA_ERRORS = (psycopg.DataError, psycopg.IntegrityError, pg.ProgramLimitExceeded)
"""What PostgreSQL raises because of a record, not because of itself."""

_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_COPY_TAIL = struct.pack("!h", -1)
_ROW_HEAD = struct.Struct("!hii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that cannot become a row, and why."""

    record: Record
    cause: str
    rules: tuple[str, ...] = ()
    """The names of the rules that it breaks, if it is refused for that."""


class Undecoded(psycopg.DataError):
    """A record whose value does not hold what its format says."""


class IncompleteKey(psycopg.DataError):
    """A tombstone whose key does not name all key columns."""


def stage(connection: Connection, records: Sequence[Record]) -> None:
    """Copy records into the staging table, numbered in their order; PostgreSQL checks the text."""
    parts = [_COPY_HEAD]
    add = parts.append
    row, length = _ROW_HEAD.pack, _LENGTH.pack
    for n, record in enumerate(records):
        add(row(3, 4, n))
        for data in (record.key, record.value):
            if data is None:
                add(_NULL)
            else:
                add(length(len(data)))
                add(data)
    add(_COPY_TAIL)
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY pg_temp.stage (n, key, value) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.write(b"".join(parts))


def record_text(
    record: Record, definition: Definition, keys: Definition | None, codec: Codec
) -> Record:
    """The record with key and value as JSON text; `keys` is what the definition says of keys."""
    if keys is not None and record.key is not None:
        record = replace(record, key=codec.key_text(keys, record.key))
    if definition.format is not Format.JSON and record.value is not None:
        record = replace(record, value=codec.text(definition, record.value, record.key))
    return record


class ViewWriter:
    """The statements of one view."""

    def __init__(self, definition: Definition, codec: Codec) -> None:
        self.definition = definition
        self.indexed = bool(definition.indexes)
        """True when there may be indexes beside the key's."""
        self._keys = definition.keys
        self._codec = codec
        self._upsert = _upsert(definition)
        self._upsert_and_delete = _upsert_and_delete(definition)
        self._delete_with_nulls = _delete_with_nulls(definition)
        self._bad_json = _bad_json(definition)
        self._bad_shape = _bad_shape(definition)
        self._bad_columns = _bad_columns(definition)
        self._bad_keys = _bad_keys(definition)
        self._broken = _broken(definition)

    def too_long_for_index(self, error: psycopg.Error) -> bool:
        """True when a value may be too long for an index: that is no fault of the record."""
        return self.indexed and isinstance(error, pg.ProgramLimitExceeded)

    def write(self, connection: Connection, records: Sequence[Record]) -> list[Rejected]:
        """Stage the records and bring them into the table; of one key's records the last counts.

        Those that break a rule come back.
        """
        try:
            texts = [self._text(record) for record in records]
        except NotDecoded as error:
            raise Undecoded(str(error)) from None
        return _whole(self._write_texts(connection, texts), records)

    def _write_texts(self, connection: Connection, records: Sequence[Record]) -> list[Rejected]:
        """The same for records whose values are JSON."""
        stage(connection, records)
        broken = self._take_out_broken(connection, records)
        self._write_staged(connection, any(record.value is None for record in records))
        return broken

    def _take_out_broken(self, connection: Connection, records: Sequence[Record]) -> list[Rejected]:
        """Leave staged what keeps the rules."""
        if not self._broken:
            return []
        found: dict[int, list[str]] = dict(connection.execute(self._broken).fetchall())
        for n, names_ in sorted(found.items()):
            self._stop_at(records[n], names_)
        if found:
            connection.execute(_UNSTAGE, [list(found)])
        return [
            Rejected(records[n], told(self.definition, names_), tuple(names_))
            for n, names_ in sorted(found.items())
        ]

    def _stop_at(self, record: Record, broken: Sequence[str]) -> None:
        """Go no further than a record that breaks a rule which says so."""
        for rule in self.definition.rules:
            if rule.action is OnViolation.FAIL and rule.name in broken:
                raise MainstemError(
                    "RULE_STOPS_FLOW",
                    name=self.definition.name,
                    rule=rule.name,
                    condition=rule.shown,
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                )

    def _text(self, record: Record) -> Record:
        """The record with key and value as JSON text."""
        return record_text(record, self.definition, self._keys, self._codec)

    def _readable(self, record: Record) -> Record | Rejected:
        """The record in a form that can be staged; else why it cannot."""
        try:
            return _readable(self._text(record))
        except NotDecoded as error:
            return Rejected(record, str(error))

    def write_good(self, connection: Connection, records: Sequence[Record]) -> list[Rejected]:
        """Bring what can become rows into the table; the rest comes back with its causes."""
        rejected: list[Rejected] = []
        readable: list[Record] = []
        for record in records:
            made = self._readable(record)
            if isinstance(made, Rejected):
                rejected.append(made)
            else:
                readable.append(made)
        stage(connection, readable)
        bad: dict[int, str] = {}
        for statement in (self._bad_json, self._bad_shape, self._bad_columns, self._bad_keys):
            if statement:
                found: dict[int, str] = dict(connection.execute(statement).fetchall())
                connection.execute(_UNSTAGE, [list(found)])
                bad.update(found)
        rejected += [Rejected(readable[n], cause) for n, cause in sorted(bad.items())]
        good = [record for n, record in enumerate(readable) if n not in bad]
        rejected += self._write_by_halves(connection, good)
        return _whole(rejected, records)

    def _write_by_halves(self, connection: Connection, records: Sequence[Record]) -> list[Rejected]:
        if not records:
            return []
        try:
            with connection.transaction():
                connection.execute("DELETE FROM pg_temp.stage")
                return self._write_texts(connection, records)
        except DATA_ERRORS as error:
            if self.too_long_for_index(error):
                raise
            if len(records) == 1:
                return [Rejected(records[0], _cause(error))]
        middle = len(records) // 2
        return [
            *self._write_by_halves(connection, records[:middle]),
            *self._write_by_halves(connection, records[middle:]),
        ]

    def _write_staged(self, connection: Connection, tombstones: bool) -> None:
        if not tombstones:
            connection.execute(self._upsert, prepare=True)
            return
        row = connection.execute(self._upsert_and_delete, prepare=True).fetchone()
        if row and row[0]:
            if not self.definition.derived:
                raise IncompleteKey("the key of a deletion does not name all key columns")
            connection.execute(self._delete_with_nulls)


def _whole(rejected: Sequence[Rejected], records: Sequence[Record]) -> list[Rejected]:
    """The same with the records as they are in the log."""
    whole = {(record.partition, record.offset): record for record in records}
    return [replace(r, record=whole[r.record.partition, r.record.offset]) for r in rejected]


def _readable(record: Record) -> Record | Rejected:
    """The record in a form that can be staged; the key only matters where the value needs it."""
    if record.value is None and record.key is None:
        return Rejected(record, "neither key nor value")
    if not _is_text(record.value):
        return Rejected(record, "the value is not UTF-8 text")
    if not _is_text(record.key):
        if record.value is None:
            return Rejected(record, "the key is not UTF-8 text")
        return replace(record, key=None)
    return record


def _is_text(data: bytes | None) -> bool:
    if data is None:
        return True
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _cause(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error)


# -- the statements; columns of our own begin with _mainstem_, which no definition may use


_UNSTAGE = "DELETE FROM pg_temp.stage WHERE n = ANY($1::integer[])"


def _parsed(definition: Definition) -> str:
    return (
        "WITH parsed AS (SELECT s.n AS _mainstem_n, s.value IS NULL AS _mainstem_gone,"
        f" {typed_columns(definition)}"
        f" FROM pg_temp.stage s CROSS JOIN LATERAL jsonb_to_record({value_object(definition)})"
        f" AS r({record_columns(definition)}))"
    )


def _last_per_key(definition: Definition) -> str:
    key = names(definition.key)
    last = (
        f"SELECT DISTINCT ON ({key}) * FROM parsed ORDER BY {key}, _mainstem_n DESC"
        if definition.key
        else "SELECT * FROM parsed ORDER BY _mainstem_n DESC LIMIT 1"
    )
    return f"{_parsed(definition)}, last AS ({last})"


def _broken(definition: Definition) -> str:
    """The numbers of staged records that break rules of a declared table, and which."""
    if definition.derived or not definition.rules:
        return ""
    names_ = (
        f"CASE WHEN {postgres_condition(rule, definition.columns)} IS FALSE"
        f" THEN {literal(rule.name)} END"
        for rule in definition.rules
    )
    listed = f"array_remove(ARRAY[{', '.join(names_)}], NULL)"
    return (
        f"{_parsed(definition)}, judged AS (SELECT _mainstem_n AS n, {listed} AS broken"
        " FROM parsed WHERE NOT _mainstem_gone) SELECT n, broken FROM judged"
        " WHERE cardinality(broken) > 0"
    )


def _insert(definition: Definition) -> str:
    columns = [c.name for c in definition.columns]
    keys = {name.lower() for name in definition.key}
    changes = ", ".join(
        f"{quoted(c)} = EXCLUDED.{quoted(c)}" for c in columns if c.lower() not in keys
    )
    return (
        f"INSERT INTO {table(definition.name)} ({names(columns)})"
        f" SELECT {names(columns)} FROM last WHERE NOT _mainstem_gone"
        f" ON CONFLICT ({names(definition.key) or '(1)'})"
        f" DO {'UPDATE SET ' + changes if changes else 'NOTHING'}"
    )


def _upsert(definition: Definition) -> str:
    return f"{_last_per_key(definition)} {_insert(definition)}"


def _upsert_and_delete(definition: Definition) -> str:
    same = "".join(f" AND v.{quoted(k)} = l.{quoted(k)}" for k in definition.key)
    return (
        f"{_last_per_key(definition)}, written AS ({_insert(definition)}), deleted AS ("
        f"DELETE FROM {table(definition.name)} v USING last l WHERE l._mainstem_gone{same})"
        f" SELECT count(*) FROM last WHERE _mainstem_gone AND ({_some_null(definition)})"
    )


def _delete_with_nulls(definition: Definition) -> str:
    # no index serves IS NOT DISTINCT FROM, so only keys with a NULL in them come here
    same = "".join(f" AND v.{quoted(k)} IS NOT DISTINCT FROM l.{quoted(k)}" for k in definition.key)
    return (
        f"{_last_per_key(definition)} DELETE FROM {table(definition.name)} v USING last l"
        f" WHERE l._mainstem_gone AND ({_some_null(definition, 'l.')}){same}"
    )


def _some_null(definition: Definition, prefix: str = "") -> str:
    return " OR ".join(f"{prefix}{quoted(k)} IS NULL" for k in definition.key) or "false"


def _bad_json(definition: Definition) -> str:
    key_matters = "s.value IS NULL" if definition.derived else "true"
    return (
        "SELECT s.n, CASE WHEN s.value IS NULL OR pg_input_is_valid(s.value, 'jsonb')"
        " THEN 'the key is not valid JSON' ELSE 'the value is not valid JSON' END"
        " FROM pg_temp.stage s"
        " WHERE (s.value IS NOT NULL AND NOT pg_input_is_valid(s.value, 'jsonb'))"
        f" OR ({key_matters} AND s.key LIKE '{{%' AND NOT pg_input_is_valid(s.key, 'jsonb'))"
    )


def _bad_shape(definition: Definition) -> str:
    return (
        "SELECT s.n, 'the ' || CASE WHEN s.value IS NULL THEN 'key' ELSE 'value' END"
        " || ' is not a JSON object' FROM pg_temp.stage s"
        f" WHERE jsonb_typeof(CASE WHEN s.value IS NULL THEN {key_object(definition)}"
        " ELSE s.value::jsonb END) IS DISTINCT FROM 'object'"
    )


def _bad_columns(definition: Definition) -> str:
    checked = ", ".join(
        f"({literal(c.name)}, {literal(type_name)})"
        for c in definition.columns
        if (type_name := postgres_type(c.type, c.name)) not in ("text", "jsonb", "bytea")
    )
    if not checked:
        return ""
    return (
        "SELECT DISTINCT ON (s.n) s.n, 'column \"' || c.name || '\": ' || e.message"
        f" FROM pg_temp.stage s CROSS JOIN LATERAL (SELECT {value_object(definition)} AS j"
        f" OFFSET 0) o CROSS JOIN (VALUES {checked}) c(name, type)"
        " CROSS JOIN LATERAL pg_input_error_info(o.j ->> c.name, c.type) e"
        " WHERE e.message IS NOT NULL ORDER BY s.n, c.name"
    )


def _bad_keys(definition: Definition) -> str:
    if definition.derived or not definition.key:
        return ""
    missing = " OR ".join(f"(o.j ->> {literal(k)}) IS NULL" for k in definition.key)
    return (
        "SELECT s.n, 'no value for the primary key'"
        f" FROM pg_temp.stage s CROSS JOIN LATERAL (SELECT {value_object(definition)} AS j"
        f" OFFSET 0) o WHERE {missing}"
    )
