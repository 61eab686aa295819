"""Would records that are there pass another schema? Each is decoded by what it was written with.

A trial is made of plain values and asks nobody, so it runs in any process. A record that does not
begin with the id of a schema is read as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from mainstem.schemas import wire
from mainstem.schemas.avro_fit import misfit
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.codec import Codec
from mainstem.schemas.given import GivenSchemas
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.json_steps import BoundedChecks
from mainstem.schemas.json_values import Refusal, refusal_of
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Schema
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_parse import ProtobufSchema

NOT_READ = "not read"
"""The rule of records that cannot be decoded: they would pass no schema."""

Judge = Callable[[bytes], Refusal | None]


@dataclass(frozen=True, slots=True)
class Trial:
    """A schema, and all that is needed to read it and the records."""

    schema: Schema
    given: GivenSchemas

    def judge(self) -> Judge:
        """What says why a value would not pass; None for one that would."""
        refuses = _refuses(self)
        codec = Codec(KnownSchemas(self.given))

        def judged(value: bytes) -> Refusal | None:
            try:
                framed = value[:1] == bytes([wire.MAGIC])
                text = codec.natural(value) if framed else value.decode()
                document = json.loads(text, parse_float=Decimal)
            except (ValueError, OverflowError, RecursionError) as error:
                return Refusal((), str(error), NOT_READ)
            try:
                return refuses(document, len(value))
            except RecursionError as error:  # it is nested too deep, or takes too many steps
                return Refusal((), str(error), NOT_READ)

        return judged


def _refuses(trial: Trial) -> Callable[[Any, int], Refusal | None]:
    """What judges a document that came of so many bytes."""
    match parse(trial.schema, trial.given.resolve):
        case AvroSchema(root=root):
            return lambda document, _: misfit(document, root)
        case JsonSchema() as parsed:
            checks = BoundedChecks(parsed)
            return lambda document, size: refusal_of(checks.of(size), _floats(document))
        case ProtobufSchema() as parsed:
            made = parsed.message_class()
            return lambda document, _: _protobuf(_floats(document), made)


def _protobuf(document: Any, made: Any) -> Refusal | None:
    try:
        ParseDict(document, made(), ignore_unknown_fields=True)
    except (ParseError, TypeError, AttributeError) as error:
        text = str(error)
        return Refusal((), text, text.partition(":")[0])
    return None


def _floats(value: Any) -> Any:
    """With plain numbers, which is what these libraries know."""
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {key: _floats(item) for key, item in value.items()}
        case list():
            return [_floats(item) for item in value]
        case _:
            return value
