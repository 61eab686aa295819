"""Spark's column types: read from a definition, written in Spark's own short form."""

from __future__ import annotations

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import T
from mainstem.errors import did_you_mean

_SIMPLE = {
    "TINYINT": "tinyint",
    "BYTE": "tinyint",
    "SMALLINT": "smallint",
    "SHORT": "smallint",
    "INT": "int",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "LONG": "bigint",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "STRING": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
}
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_NESTED = ("ARRAY", "MAP", "STRUCT")
_ELSEWHERE = {
    "BOOL": "BOOLEAN",
    "CHAR": "STRING",
    "CHARACTER": "STRING",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "INT2": "SMALLINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "JSON": "STRING",
    "JSONB": "STRING",
    "NUMBER": "DECIMAL",
    "SERIAL": "BIGINT",
    "TEXT": "STRING",
    "UUID": "STRING",
    "VARCHAR": "STRING",
    "BYTEA": "BINARY",
    "BYTES": "BINARY",
}
"""Types of other systems, and what to use for them."""


def read_type(cursor: Cursor, column: str) -> str:
    """The type at the cursor, in Spark's short form such as `array<struct<a:int>>`."""
    token = cursor.take_word(f'the type of column "{column}"')
    word = token.upper
    if word in _SIMPLE:
        return _SIMPLE[word]
    if word in _DECIMAL:
        return _decimal(cursor)
    if word == "ARRAY":
        cursor.expect("<")
        inner = read_type(cursor, column)
        cursor.expect(">")
        return f"array<{inner}>"
    if word == "MAP":
        cursor.expect("<")
        key = read_type(cursor, column)
        cursor.expect(",")
        value = read_type(cursor, column)
        cursor.expect(">")
        return f"map<{key},{value}>"
    if word == "STRUCT":
        return _struct(cursor, column)
    known = _ELSEWHERE.get(word)
    choices = (*_SIMPLE, *_DECIMAL, *_NESTED)
    suggestion = f' Did you mean "{known}"?' if known else did_you_mean(word, choices)
    raise cursor.source.error(
        "UNKNOWN_TYPE", token.start, type=token.text, column=column, suggestion=suggestion
    )


def _decimal(cursor: Cursor) -> str:
    precision, scale = 10, 0
    if cursor.accept("("):
        place = cursor.current.start
        precision = cursor.take_number()
        if cursor.accept(","):
            scale = cursor.take_number()
        cursor.expect(")")
        if not (1 <= precision <= 38 and scale <= precision):
            raise cursor.source.syntax(
                "a decimal has 1 to 38 digits, and no more of them behind the point", place
            )
    return f"decimal({precision},{scale})"


def _struct(cursor: Cursor, column: str) -> str:
    cursor.expect("<")
    fields = []
    seen = set()
    while True:
        token = cursor.take_name("a field")
        if token.name.lower() in seen:
            raise cursor.source.error(
                "DUPLICATE_COLUMN", token.start, column=token.name, name=column
            )
        seen.add(token.name.lower())
        cursor.accept(":")
        plain = token.kind is T.WORD
        fields.append(f"{token.name if plain else token.text}:{read_type(cursor, column)}")
        if not cursor.accept(","):
            break
    cursor.expect(">")
    return f"struct<{','.join(fields)}>"


def struct_fields(type_: str) -> dict[str, tuple[str, str]]:
    """Fields of a struct's short form: lower-case name -> (name, type); none for other types."""
    if not type_.startswith("struct<"):
        return {}
    fields: dict[str, tuple[str, str]] = {}
    for part in type_parts(type_[len("struct<") : -1]):
        name, _, field_type = part.partition(":")
        name = name.strip("`")
        fields[name.lower()] = (name, field_type)
    return fields


def type_parts(inner: str) -> list[str]:
    """The pieces between the commas of a short form that are not inside brackets."""
    depth, begin, found = 0, 0, []
    for at, character in enumerate(inner + ","):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            found.append(inner[begin:at])
            begin = at + 1
    return found
