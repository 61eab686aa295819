"""What the commands ask of a registry beyond a `SchemaSource`: subjects, deletions and levels."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import quote

from mainstem.errors import MainstemError
from mainstem.schemas.external import ExternalRegistry, Refusals
from mainstem.schemas.model import Registered


class RegistryClient(ExternalRegistry):
    """A registry by its URL, for a person who looks after it: ours at the gateway, or another."""

    def all_versions(self, *, deleted: bool = False) -> list[Registered]:
        """All versions of all subjects; with `deleted`, those too that are not gone for good."""
        asked = f"/schemas?deleted={str(deleted).lower()}&latestOnly=false"
        return self._listed(asked)

    def newest(self) -> list[Registered]:
        """The newest version of each subject."""
        return self._listed("/schemas?latestOnly=true")

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """All versions of a subject; the answer is which."""
        path = f"/subjects/{quote(subject, safe='')}?permanent={str(permanent).lower()}"
        answer = self._ask("DELETE", path, _gone(subject))
        if not isinstance(answer, list) or not all(isinstance(item, int) for item in answer):
            raise self._strange("a list of versions")
        return answer

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """One version of a subject; the answer is which."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        refusals = _gone(subject, version)
        answer = self._ask("DELETE", f"{path}?permanent={str(permanent).lower()}", refusals)
        if not isinstance(answer, int):
            raise self._strange("a version")
        return answer

    def set_level(self, subject: str | None, level: str) -> None:
        """Set the level of a subject, or of all."""
        invalid = partial(MainstemError, "COMPATIBILITY_INVALID", level=level)
        self._ask("PUT", _config(subject), {42203: invalid}, {"compatibility": level.upper()})

    def reset_level(self, subject: str | None) -> None:
        """Back to the level of all; for all, to BACKWARD."""
        self._ask("DELETE", _config(subject), {} if subject is None else _gone(subject))

    def _listed(self, path: str) -> list[Registered]:
        answer = self._ask("GET", path, {})
        if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
            raise self._strange("a list of schemas")
        return [self._read(str(item.get("subject")), item.get("version"), item) for item in answer]


def _config(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{quote(subject, safe='')}"


def _gone(subject: str, version: int | None = None) -> Refusals:
    """What stands in the way of a deletion."""

    def refusal(code: str, **more: Any) -> partial[MainstemError]:
        return partial(MainstemError, code, subject=subject, **more)

    return {
        40401: refusal("SUBJECT_UNKNOWN"),
        40402: refusal("SCHEMA_VERSION_UNKNOWN", version=version),
        40404: refusal("SUBJECT_SOFT_DELETED"),
        40405: refusal("SUBJECT_NOT_SOFT_DELETED"),
        40406: refusal("SCHEMA_VERSION_SOFT_DELETED", version=version),
        40407: refusal("SCHEMA_VERSION_NOT_SOFT_DELETED", version=version),
        42206: refusal("REGISTRY_NOT_PERMITTED", advice="Delete what refers to it first."),
    }
