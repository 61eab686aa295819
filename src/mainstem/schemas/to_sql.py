"""A CREATE STREAM over the topic whose records have a schema."""

from __future__ import annotations

import re

from mainstem.definitions.model import SubjectStrategy
from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_read import NotReadable, check_bounded
from mainstem.schemas.model import SchemaType
from mainstem.schemas.parse import Parsed
from mainstem.schemas.record_names import check_named
from mainstem.schemas.sql_names import sql_name, sql_text
from mainstem.schemas.to_columns import to_columns

FORMATS = {
    SchemaType.AVRO: "avro",
    SchemaType.JSON: "json_schema",
    SchemaType.PROTOBUF: "protobuf",
}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]+")
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def to_sql(
    parsed: Parsed,
    topic: str,
    record: str | None = None,
    strategy: SubjectStrategy = SubjectStrategy.TOPIC_NAME,
) -> str:
    """The statement; what of the schema it leaves out is in comments above it.

    With `record` the stream has the records of that name, and is called after it.
    """
    check_named(parsed, record)
    if isinstance(parsed, AvroSchema):
        try:
            check_bounded(parsed.root)
        except NotReadable as error:
            raise MainstemError(
                "SCHEMA_NOT_DERIVED", where="the schema", problem=str(error)
            ) from None
    found = to_columns(parsed, record)
    if not found.columns:
        where, problem = found.left_out[0] if found.left_out else ("the schema", "it has no fields")
        raise MainstemError("SCHEMA_NOT_DERIVED", where=where, problem=problem)
    name = _name(topic if record is None else _NEW_WORD.sub("_", record.rpartition(".")[2]))
    options = [f"format = '{FORMATS[parsed.schema.type]}'"]
    if name != topic:
        options.insert(0, f"topic = {sql_text(topic)}")
    if record is not None:
        options.append(f"record = {sql_text(record)}")
    if strategy is not SubjectStrategy.TOPIC_NAME:
        options.append(f"subject_strategy = '{strategy}'")
    lines = [f"-- left out: {_one_line(path)}: {_one_line(why)}" for path, why in found.left_out]
    lines.append(f"CREATE STREAM {sql_name(name)} (")
    lines.append(",\n".join(f"  {sql_name(column)} {type}" for column, type in found.columns))
    lines.append(f") WITH ({', '.join(options)});")
    return "\n".join(lines)


def _name(text: str) -> str:
    name = _NOT_IN_A_NAME.sub("_", text).strip("_").lower() or "records"
    return f"_{name}" if name[0].isdigit() else name


def _one_line(text: str) -> str:
    """A comment ends with its line, so that a name must not end it."""
    return text if text.isprintable() else repr(text)
