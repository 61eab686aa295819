"""Schemas out of files: type and subject by the file's name, references by an option."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import typer

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Schema, SchemaType

if TYPE_CHECKING:
    from mainstem.schemas.registry_client import RegistryClient

SUFFIXES = {
    ".avsc": SchemaType.AVRO,
    ".json": SchemaType.JSON,
    ".proto": SchemaType.PROTOBUF,
}
STDIN = "-"


def read_text(file: str) -> str:
    """The text of a file, or of stdin."""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise MainstemError("FILE_UNREADABLE", file=file, problem=problem) from None
    except UnicodeDecodeError:
        raise MainstemError("FILE_UNREADABLE", file=file, problem="it is not UTF-8") from None


def read_schema(file: str, kind: str | None = None, references: Iterable[str] = ()) -> Schema:
    """The schema in a file."""
    given = type_of(file, kind)
    return Schema(given, read_text(file), tuple(reference(text) for text in references))


def type_of(file: str, kind: str | None) -> SchemaType:
    """The type that was given, or else the one that the file's suffix stands for."""
    if kind is not None:
        try:
            return SchemaType(kind.upper())
        except ValueError:
            problem = f"{kind} is none of avro, json, protobuf"
            raise typer.BadParameter(problem, param_hint="--type") from None
    found = SUFFIXES.get(Path(file).suffix.lower())
    if found is None:
        known = ", ".join(SUFFIXES)
        problem = f"say the type of {file}: only {known} tell it"
        raise typer.BadParameter(problem, param_hint="--type")
    return found


def subject_of(file: str) -> str:
    """The subject that a file's name stands for: without its suffix, %2F for a slash."""
    if file == STDIN:
        raise typer.BadParameter("stdin has no name to tell it by", param_hint="--subject")
    return unquote(Path(file).stem)


def schema_files(folder: Path) -> list[str]:
    """The schemas in a folder, by name; none when there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(str(path) for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def reference(text: str) -> Reference:
    """`name=subject:version`."""
    place, _, version = text.rpartition(":")
    name, _, subject = place.rpartition("=")
    if not (name and subject and version.isascii() and version.isdecimal()):
        problem = f"{text} is not of the form name=subject:version"
        raise typer.BadParameter(problem, param_hint="--reference")
    return Reference(name, subject, int(version))


def no_references(reference: Reference) -> Schema:
    """What resolves the references of a file that is looked at without the registry."""
    problem = "a file has no references"
    raise MainstemError("SCHEMA_REFERENCE_UNKNOWN", name=reference.name, problem=problem)


def with_known_references(registry: RegistryClient, subject: str, schema: Schema) -> Schema:
    """With the references of the subject's newest version, when none were given."""
    if schema.references:
        return schema
    try:
        newest = registry.latest(subject).schema
    except MainstemError as error:
        if error.code != "SUBJECT_UNKNOWN":
            raise
        return schema
    if newest.type is not schema.type:
        return schema
    return Schema(schema.type, schema.text, newest.references)
