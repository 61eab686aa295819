"""Whether a registry would take a schema as the next version of a subject, and what breaks where.

The registry decides; the places and reasons are ours, so that they are the same for any registry.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.compatibility import Incompatibility, Level, check
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.model import Schema
from mainstem.schemas.parse import Parsed, parse
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.source import SchemaSource

_PROPERTY = re.compile(r"#/properties/([^/]+)")
_MEMBER = re.compile(r"[^.\[{<]+\.([^.\[{<]+)")


@dataclass(frozen=True)
class Broken:
    """One break.

    version    of the subject, that it breaks with; None: the registry does not say
    direction  BACKWARD: the new schema cannot read what that version wrote; FORWARD: the reverse
    field      the field of the record that it is about; None: all of them, or not known
    """

    version: int | None
    direction: str | None
    path: str
    kind: str
    reason: str
    field: str | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """What a registry says of a schema for a subject; `latest` is None for a new subject."""

    subject: str
    level: Level
    latest: int | None
    breaks: tuple[Broken, ...] = ()


def verdict(registry: SchemaSource, subject: str, schema: Schema) -> Verdict:
    """Whether the schema may follow; SCHEMA_MALFORMED and the like when it is none."""
    parsed = parse(schema, registry.resolve)
    level = registry.level(subject)
    try:
        versions = registry.versions(subject)
    except MainstemError as error:
        if error.code != "SUBJECT_UNKNOWN":
            raise
        return Verdict(subject, level, None)
    said = registry.check(subject, schema)
    if not said:
        return Verdict(subject, level, versions[-1])
    against = versions if level.transitive else versions[-1:]
    earlier = [registry.version(subject, version).schema for version in against]
    found = [
        _broken(item, against[item.against], parsed)
        for item in check(schema, earlier, level, registry.resolve)
    ]
    # a registry elsewhere may be stricter than we are: then its words are all there is
    found = found or [Broken(None, None, "", "", message, None) for message in said]
    return Verdict(subject, level, versions[-1], tuple(found))


def field_at(path: str, parsed: Parsed) -> str | None:
    """The field of the outermost record that a path leads into, if it does."""
    match parsed:
        case JsonSchema():
            found = _PROPERTY.match(path)
            return found[1].replace("~1", "/").replace("~0", "~") if found else None
        case AvroSchema():
            found = _MEMBER.match(path)
            return found[1] if found else None
        case ProtobufSchema():
            # a path may begin with a message that is used anywhere
            found = _MEMBER.match(path)
            first = next(iter(parsed.descriptor.message_types_by_name.values()), None)
            if found is None or first is None or not path.startswith(f"{first.name}."):
                return None
            return found[1] if found[1] in first.fields_by_name else None


def _broken(item: Incompatibility, version: int, parsed: Parsed) -> Broken:
    field = field_at(item.path, parsed)
    return Broken(version, item.direction.value, item.path, item.kind, item.reason, field)
