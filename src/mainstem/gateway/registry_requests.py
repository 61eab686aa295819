"""What requests to the schema registry say: bodies, subjects and versions out of paths."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.registry import Registry
from mainstem.schemas.registry_rules import Wanted, plain_subject
from mainstem.schemas.text import malformed
from mainstem.schemas.topic_records import LARGEST, contract_of

_LATEST = ("latest", "-1")


class RegistryReference(BaseModel):
    """Another registered schema, by the name that the text uses for it."""

    name: str
    subject: str
    version: int = Field(ge=1, le=LARGEST)


class RegistrySchema(BaseModel):
    """A schema; members that are not known are left alone, as newer clients send more."""

    model_config = ConfigDict(populate_by_name=True)

    text: str = Field("", alias="schema", description="The text of the schema.")
    schema_type: str | None = Field(
        None, alias="schemaType", description="AVRO (also when it is missing), JSON or PROTOBUF."
    )
    references: list[RegistryReference] | None = None
    metadata: dict[str, Any] | None = Field(None, description="Kept and given back as it is.")
    rule_set: dict[str, Any] | None = Field(
        None, alias="ruleSet", description="Rules that clients act on; kept as they are."
    )
    id: int | None = Field(None, le=LARGEST, description="Only to import; the mode must be IMPORT.")
    version: int | None = Field(None, le=LARGEST, description="Goes with `id`.")

    def wanted(self) -> Wanted:
        """What the request asks to be registered, looked up or checked."""
        try:
            kind = SchemaType(self.schema_type or SchemaType.AVRO)
        except ValueError:
            raise MainstemError(
                "SCHEMA_MALFORMED",
                type=self.schema_type,
                where="schemaType",
                problem="there is no such type",
            ) from None
        if not self.text:
            raise malformed(kind, "its beginning", "it is empty")
        references = (
            Reference(ref.name, plain_subject(ref.subject), ref.version)
            for ref in self.references or ()
        )
        try:
            contract = contract_of({"metadata": self.metadata, "ruleSet": self.rule_set})
        except (ValueError, RecursionError):
            problem = "metadata or ruleSet cannot be written as JSON"
            raise MainstemError("BAD_REQUEST", problem=problem) from None
        return Wanted(
            Schema(kind, self.text, tuple(references)),
            contract,
            # clients say "none" by numbers that are none
            self.id if self.id is not None and self.id >= 0 else None,
            self.version if self.version is not None and self.version > 0 else None,
        )


# the small ones are async, so that they need no thread


async def registry(request: Request) -> Registry:
    """The registry of this gateway; REGISTRY_ELSEWHERE when the project uses another one."""
    services = request.app.state.services
    found: Registry | None = services.registry
    if found is None:
        raise MainstemError("REGISTRY_ELSEWHERE", url=services.settings.schemas.registry)
    return found


async def _subject(
    subject: Annotated[
        str,
        Path(
            description="Any characters, percent-encoded, a slash, too.", examples=["clicks-value"]
        ),
    ],
) -> str:
    try:
        return plain_subject(unquote_to_bytes(subject.encode("latin-1")).decode())
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
        raise MainstemError("SUBJECT_INVALID", subject=subject, problem=problem) from None


async def _version(
    version: Annotated[
        str, Path(description="A number from 1 on, or `latest`.", examples=["1", "latest"])
    ],
) -> int | None:
    if version in _LATEST:
        return None
    if version.isascii() and version.isdecimal() and 1 <= int(version[:11]) <= LARGEST:
        return int(version)
    raise MainstemError("SCHEMA_VERSION_INVALID", version=version)


At = Annotated[Registry, Depends(registry)]
Subject = Annotated[str, Depends(_subject)]
Version = Annotated[int | None, Depends(_version)]
Id = Annotated[int, Path(ge=0, le=LARGEST, description="The id of a schema.", examples=[1])]
Normalize = Annotated[bool, Query(description="Bring the schema into one form first.")]
Deleted = Annotated[bool, Query(description="Also what was deleted, though not for good.")]
Permanent = Annotated[bool, Query(description="For good; it must be deleted already.")]
DefaultToGlobal = Annotated[
    bool, Query(alias="defaultToGlobal", description="Where nothing is set: what applies.")
]
Offset = Annotated[int, Query(ge=0, le=LARGEST, description="Leave out the first so many.")]
Limit = Annotated[int, Query(le=LARGEST, description="At most so many; all when negative.")]
Format = Annotated[
    str,
    Query(description="`resolved` (Avro, references put in) or `serialized` (Protobuf, base64)."),
]
Prefix = Annotated[str, Query(alias="subjectPrefix", description="How subjects begin.")]
ALL = ":*:"
"""The prefix that stands for all subjects of all contexts."""


def starts_with(prefix: str) -> str:
    """The beginning of subjects that a prefix asks for."""
    return "" if prefix == ALL else plain_subject(prefix)


def cut(items: list[Any], offset: int, limit: int) -> list[Any]:
    """One page of a list."""
    return items[offset:] if limit < 0 else items[offset : offset + limit]
