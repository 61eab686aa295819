"""Which columns a format can hold: told when a definition is read, not when the first record is."""

from __future__ import annotations

import re

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_NESTED = ("array<", "map<", "struct<")
_SHORT_NUMBERS = re.compile(r"\b(tinyint|smallint)\b")
_MAP_KEY = re.compile(r"map<(?!string,)")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")
_NOT_IN_A_KEY = re.compile(r"\b(?:float|double|map|variant)\b")
_PROTOBUF_KEY = re.compile(r"map<(?!(?:string|int|bigint|boolean),)")
_LIST_IN_LIST = re.compile(r"(?:array<|map<\w+,)(?:array|map)<")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def record_name(definition: Definition) -> str:
    """The name that a definition's own records have in their schema."""
    if definition.record is not None:
        return definition.record
    if definition.format is Format.JSON_SCHEMA:
        return definition.name  # a title may be any text
    return plain_name(definition.name)


def plain_name(name: str) -> str:
    """A name in the letters that Avro and Protobuf have."""
    plain = _NOT_IN_A_NAME.sub("_", name)
    # a message cannot be called like the package of the files that it imports
    return f"_{plain}" if plain[:1].isdigit() or plain in ("", "google") else plain


def check_format(definition: Definition) -> None:
    """NOT_SUPPORTED when the format cannot hold the definition's columns."""
    made_by = definition.made_by
    if made_by is not None and (definition.format is not Format.JSON or definition.key_format):
        what = f'the rows of the function "{made_by.name}"'
        raise _refused(definition, what, "Leave the format out: they are written as JSON.")
    _check_columns(definition)
    if definition.keys is not None:
        _check_keys(definition, definition.keys)


def _check_keys(definition: Definition, keys: Definition) -> None:
    if not keys.columns:
        advice = "Name the columns of the key with key = '...', or leave key_format out."
        raise _refused(keys, "a record without a key", advice)
    if keys.format is Format.RAW and definition.kind is Kind.TABLE and definition.derived:
        # a record without a key can neither be replaced nor deleted
        advice = "Use another one: a row of a derived table may have NULL for its key."
        raise _refused(keys, "the key of a derived table", advice)
    for column in keys.columns:
        if _NOT_IN_A_KEY.search(column.type):
            advice = "The same key would not always be the same bytes: use other columns."
            raise _refused(keys, f'column "{column.name}" ({column.type})', advice)
    _check_columns(keys)


def _check_columns(definition: Definition) -> None:
    match definition.format:
        case Format.JSON | Format.JSON_SCHEMA:
            return
        case Format.RAW:
            _check_raw(definition)
        case Format.CSV:
            _check_csv(definition)
        case Format.AVRO:
            _check_avro(definition)
        case Format.PROTOBUF:
            _check_protobuf(definition)


def check_format_of_changes(definition: Definition) -> None:
    """NOT_SUPPORTED when a stream of a table's changes is not JSON."""
    if definition.format is not Format.JSON or definition.key_format is not None:
        what = "a stream of a table's changes"
        raise _refused(definition, what, "Leave the format out: changes are written as JSON.")


def _check_raw(definition: Definition) -> None:
    if definition.kind is Kind.TABLE and not definition.of_keys:
        advice = "A row needs its key beside its value: use another format."
        raise _refused(definition, "a table", advice)
    types = [column.type for column in definition.value_columns]
    if len(types) != 1 or types[0] not in ("string", "binary"):
        what = f"a row of {', '.join(types)}"
        raise _refused(definition, what, "Give it one column, a STRING or BINARY.")


def _check_csv(definition: Definition) -> None:
    for column in definition.value_columns:
        if column.type.startswith(_NESTED) or column.type in ("binary", "variant"):
            advice = "Use another format, or make a text or single columns of it."
            raise _refused(definition, f'column "{column.name}" ({column.type})', advice)


def _check_avro(definition: Definition) -> None:
    for column in definition.value_columns:
        what = f'column "{column.name}" ({column.type})'
        if _SHORT_NUMBERS.search(column.type):
            raise _refused(definition, what, "Avro's smallest number is an INT: use that.")
        if _MAP_KEY.search(column.type):
            raise _refused(definition, what, "In Avro the keys of a map are STRING: use that.")
        if "variant" in column.type:
            raise _refused(definition, what, "Make a STRING of it with to_json.")
        _check_names(definition, column, "Avro")


def _check_protobuf(definition: Definition) -> None:
    seen: dict[str, str] = {}
    for column in definition.value_columns:
        what = f'column "{column.name}" ({column.type})'
        if _SHORT_NUMBERS.search(column.type):
            raise _refused(definition, what, "Protobuf's smallest number is an INT: use that.")
        if "timestamp_ntz" in column.type:
            raise _refused(definition, what, "Protobuf's times have a zone: use a TIMESTAMP.")
        if "variant" in column.type:
            raise _refused(definition, what, "Make a STRING of it with to_json.")
        if _PROTOBUF_KEY.search(column.type):
            advice = "In Protobuf the keys of a map are STRING, INT, BIGINT or BOOLEAN."
            raise _refused(definition, what, advice)
        if _LIST_IN_LIST.search(column.type):
            advice = "Protobuf has no lists of lists: put a STRUCT between them."
            raise _refused(definition, what, advice)
        _check_names(definition, column, "Protobuf")
        alike = column.name.replace("_", "").lower()
        if alike in seen:
            advice = "Protobuf's JSON takes them for the same name: choose another."
            raise _refused(definition, f'"{column.name}" beside "{seen[alike]}"', advice)
        seen[alike] = column.name


def _check_names(definition: Definition, column: Column, whose: str) -> None:
    for name in _names(column.name, column.type):
        if not _PLAIN_NAME.fullmatch(name):
            advice = f"{whose}'s names are made of letters, digits and _: choose another."
            raise _refused(definition, f'the name "{name}"', advice)


def _names(column: str, type_: str) -> list[str]:
    """The column's name, and those of all fields inside its type."""
    return [column, *(name.strip("`") for name in re.findall(r"[<,]([^<>,:]+|`[^`]*`):", type_))]


def _refused(definition: Definition, what: str, advice: str) -> MainstemError:
    query = definition.query
    return MainstemError(
        "NOT_SUPPORTED",
        location=definition.location if query is None else query.location,
        what=what,
        where=f"the {'key format' if definition.of_keys else 'format'} {definition.format}",
        advice=advice,
    )
