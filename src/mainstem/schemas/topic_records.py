"""Records of the topic `_schemas`, as Confluent's registry writes them: their keys and values.

Keys are JSON texts in a fixed spelling, for Kafka compacts by their bytes. Older registries spelled
some of them otherwise; `read_key` takes every spelling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mainstem.schemas.model import Reference, Registered, Schema, SchemaType

Value = Mapping[str, Any]
Contract = tuple[tuple[str, str], ...]
"""Names and JSON texts of what stands beside a schema and is a part of it."""
LARGEST = 2**31 - 1
"""The last id and version: clients hold them in 32 bits."""
_CONTRACT = ("metadata", "ruleSet")
_OURS = ("subject", "version", "id", "schemaType", "references", "schema", "deleted")


class KeyType(StrEnum):
    """What a record is about."""

    SCHEMA = "SCHEMA"
    CONFIG = "CONFIG"
    MODE = "MODE"
    DELETE_SUBJECT = "DELETE_SUBJECT"
    CLEAR_SUBJECT = "CLEAR_SUBJECT"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a record; without a subject it is about all of them."""

    type: KeyType
    subject: str | None = None
    version: int | None = None

    def spelled(self) -> str:
        """The text that stands in the topic."""
        document: dict[str, Any] = {"keytype": self.type.value}
        if self.subject is not None:
            document["subject"] = self.subject
        if self.version is not None:
            document["version"] = self.version
        document["magic"] = 1 if self.type is KeyType.SCHEMA else 0
        return compact(document)


@dataclass(frozen=True, slots=True)
class Kept:
    """A version as the topic holds it: what we know of it, and the members we only carry along."""

    registered: Registered
    contract: Contract = ()
    """`metadata` and `ruleSet`, which clients act on."""
    rest: Contract = ()
    """All other members."""

    def as_deleted(self) -> Kept:
        """The same, marked as deleted."""
        return replace(self, registered=replace(self.registered, deleted=True))

    def value(self) -> dict[str, Any]:
        """The value of its record."""
        its = self.registered
        document: dict[str, Any] = {"subject": its.subject, "version": its.version, "id": its.id}
        document |= {name: json.loads(text) for name, text in (*self.rest, *self.contract)}
        document |= contents(its.schema)
        document["deleted"] = its.deleted
        return document


def contents(schema: Schema) -> dict[str, Any]:
    """A schema as records and answers say it: Avro and no references go without saying."""
    document: dict[str, Any] = {}
    if schema.type is not SchemaType.AVRO:
        document["schemaType"] = schema.type.value
    if schema.references:
        document["references"] = [
            {"name": ref.name, "subject": ref.subject, "version": ref.version}
            for ref in schema.references
        ]
    document["schema"] = schema.text
    return document


def compact(document: Any) -> str:
    """JSON as Confluent's registry spells it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def read_key(text: str) -> Key:
    """The key that a text stands for; ValueError when it is none that we know."""
    document = _object(json.loads(text))
    kind = KeyType(str(document.get("keytype")))
    subject = document.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise ValueError("subject is not a text")
    if kind is KeyType.SCHEMA:
        if subject is None:
            raise ValueError("a schema without subject")
        return Key(kind, subject, _number(document, "version"))
    if subject is None and kind in (KeyType.DELETE_SUBJECT, KeyType.CLEAR_SUBJECT):
        raise ValueError("no subject")
    return Key(kind, subject)


def read_schema(key: Key, value: Value) -> Kept:
    """The version that a record holds; ValueError when it cannot be understood."""
    text = value.get("schema")
    if not isinstance(text, str):
        raise ValueError("schema is not a text")
    schema = Schema(
        SchemaType(value.get("schemaType") or SchemaType.AVRO),
        text,
        tuple(_reference(item) for item in value.get("references") or ()),
    )
    assert key.subject is not None and key.version is not None
    return Kept(
        Registered(
            key.subject,
            key.version,
            _number(value, "id", least=0),
            schema,
            bool(value.get("deleted", False)),
        ),
        contract_of(value),
        tuple(
            (name, compact(member))
            for name, member in value.items()
            if name not in _OURS and name not in _CONTRACT
        ),
    )


def contract_of(value: Value) -> Contract:
    """What of a record or a request belongs to the schema beside its text.

    ValueError for what Python's JSON can hold and others cannot: NaN, halves of surrogate pairs.
    """
    found = []
    for name in _CONTRACT:
        if value.get(name) is not None:
            text = json.dumps(value[name], ensure_ascii=False, sort_keys=True, allow_nan=False)
            text.encode()
            found.append((name, text))
    return tuple(found)


def _reference(item: Any) -> Reference:
    document = _object(item)
    name, subject = document.get("name"), document.get("subject")
    if not isinstance(name, str) or not isinstance(subject, str):
        raise ValueError("a reference without name or subject")
    return Reference(name, subject, _number(document, "version"))


def _number(document: Value, name: str, least: int = 1) -> int:
    number = document.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= LARGEST:
        raise ValueError(f"{name} is not a number from {least} to {LARGEST}")
    return number


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    return document
