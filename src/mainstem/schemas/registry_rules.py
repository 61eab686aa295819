"""Which changes of the registry are allowed, and the records that make them.

Everything here is decided from the state alone and writes nothing: the registry writes the records
if the topic is still what it was, and asks again if not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from mainstem.errors import MainstemError
from mainstem.schemas.compatibility import Level
from mainstem.schemas.model import Registered, Schema
from mainstem.schemas.registry_state import CONTEXT, HIGHEST_ID, State
from mainstem.schemas.topic_records import LARGEST, Contract, Kept, Key, KeyType, Value

T = TypeVar("T")

_DEFAULT_CONTEXT = ":.:"
_RESERVED = ("__GLOBAL", "__EMPTY")
_GLOBAL_LOCK = "READONLY_OVERRIDE"
"""A mode of Confluent's: read-only for all subjects, whatever is set for them."""


class Mode(StrEnum):
    """What may be done to a subject, or to all."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    IMPORT = "IMPORT"
    """Schemas come with id and version from another registry; compatibility is not checked."""


@dataclass(frozen=True)
class Wanted:
    """A schema to be registered."""

    schema: Schema
    contract: Contract = ()
    id: int | None = None
    version: int | None = None


@dataclass(frozen=True)
class Decided(Generic[T]):
    """The answer to a change, and the records that make it; none: it is so already."""

    answer: T
    records: dict[str, Value | None]


# -- what applies to a subject


def plain_subject(name: str) -> str:
    """The name of a subject without the default context, which goes without saying."""
    return name.removeprefix(_DEFAULT_CONTEXT)


def check_subject(name: str) -> None:
    """Raise when a name cannot be that of a subject."""
    if not name or name in _RESERVED:
        problem = "it is reserved" if name else "it is empty"
    elif name.startswith(CONTEXT):
        problem = "contexts are not served"
    elif any(unicodedata.category(character) == "Cc" for character in name):
        problem = "it has control characters"
    else:
        return
    raise MainstemError("SUBJECT_INVALID", subject=name, problem=problem)


def level_of(state: State, subject: str) -> Level:
    """The rule of a subject: its own, else the global one, else BACKWARD."""
    for scope in (subject, None):
        said = (state.config(scope) or {}).get("compatibilityLevel")
        if said is not None:
            try:
                return Level(said)
            except ValueError:
                raise MainstemError("COMPATIBILITY_INVALID", level=said) from None
    return Level.BACKWARD


def normalizes(state: State, subject: str) -> bool:
    """Whether schemas of a subject are normalized even when a request does not say so."""
    for scope in (subject, None):
        said = (state.config(scope) or {}).get("normalize")
        if said is not None:
            return said is True
    return False


def mode_of(state: State, subject: str | None) -> Mode:
    """What may be done to a subject; a mode that we do not have permits reading."""
    everywhere = state.mode(None)
    said = everywhere
    if subject is not None and everywhere != _GLOBAL_LOCK:
        said = state.mode(subject) or everywhere
    try:
        return Mode(said or Mode.READWRITE)
    except ValueError:
        return Mode.READONLY


# -- changes


def registered_already(state: State, subject: str, wanted: Wanted) -> Registered | None:
    """The version of the subject that is this schema, if there is one and it is not deleted."""
    if wanted.id is not None or wanted.version is not None:
        return None
    found = lookup(state, subject, wanted.schema, wanted.contract)
    return None if found is None else found.registered


def lookup(
    state: State, subject: str, schema: Schema, contract: Contract, *, deleted: bool = False
) -> Kept | None:
    """The latest version of the subject that is this schema."""
    ids = state.ids_of(schema, contract)
    same = [k for k in state.versions(subject, deleted=deleted) if k.registered.id in ids]
    return same[-1] if same else None


def register(state: State, subject: str, wanted: Wanted) -> Decided[Registered]:
    """A schema under a subject; whether it may follow the earlier ones was checked before."""
    mode = mode_of(state, subject)
    check_writable(state, subject)
    if wanted.id is None and mode is Mode.IMPORT:
        raise _not_permitted(
            f'the subject "{subject}" takes imports only, with an id',
            "Give id and version, or set its mode to READWRITE.",
        )
    if wanted.id is not None and mode is not Mode.IMPORT:
        raise _not_permitted(
            f'the subject "{subject}" does not take schemas with an id of their own',
            "Set its mode to IMPORT first.",
        )
    ids = state.ids_of(wanted.schema, wanted.contract)
    before = state.versions(subject, deleted=True)
    for its in (kept.registered for kept in reversed(before)):
        if wanted.version not in (None, its.version):
            continue
        if not its.deleted and its.id in ids and wanted.id in (None, its.id):
            return Decided(its, {})
        if its.version == wanted.version:
            raise _not_permitted(
                f"version {its.version} is that of another schema, or deleted",
                "Import each schema with a version of its own.",
            )
    following = before[-1].registered.version + 1 if before else 1
    if wanted.version not in (None, following) and mode is not Mode.IMPORT:
        raise _not_permitted(
            f"the next version is {following}, not {wanted.version}",
            "Leave the version out, or set the mode of the subject to IMPORT.",
        )
    id = wanted.id if wanted.id is not None else ids[0] if ids else _new_id(state)
    same = state.with_id(id)
    if same and id not in ids:
        raise _not_permitted(
            f"id {id} is that of another schema", "Import each schema with an id of its own."
        )
    # an id stands for one text, whoever spells it otherwise
    schema = same[0].registered.schema if same else wanted.schema
    new = Registered(subject, wanted.version or following, id, schema)
    records: dict[str, Value | None] = {}
    for kept in before:
        # the version that was deleted comes back as this one
        its = kept.registered
        if (
            its.deleted
            and its.id == id
            and its.version < new.version
            and not _referrers(state, its)
        ):
            records |= state.write(_key(its), None)
    records |= state.write(_key(new), Kept(new, wanted.contract).value())
    return Decided(new, records)


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decided[list[int]]:
    """All versions of a subject: marked as deleted, or once they are, gone for good."""
    if not state.versions(subject, deleted=True):
        raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
    alive = state.versions(subject)
    if not permanent and not alive:
        raise MainstemError("SUBJECT_SOFT_DELETED", subject=subject)
    check_writable(state, subject)
    concerned = [k.registered for k in state.versions(subject, deleted=permanent)]
    for its in concerned:
        _check_unreferenced(state, its, deleted=permanent, but={subject})
    numbers = [its.version for its in concerned]
    if not permanent:
        value = {"subject": subject, "version": numbers[-1]}
        return Decided(numbers, state.write(Key(KeyType.DELETE_SUBJECT, subject), value))
    if alive:
        raise MainstemError("SUBJECT_NOT_SOFT_DELETED", subject=subject)
    return Decided(numbers, _erased(state, reversed(concerned)) | _settings_gone(state, subject))


def delete_version(
    state: State, subject: str, version: int | None, *, permanent: bool
) -> Decided[int]:
    """One version of a subject, the latest without a number."""
    kept = known_version(state, subject, version, deleted=permanent or version is not None)
    its = kept.registered
    if its.deleted and not permanent:
        raise MainstemError("SCHEMA_VERSION_SOFT_DELETED", subject=subject, version=its.version)
    check_writable(state, subject)
    _check_unreferenced(state, its, deleted=permanent)
    if not permanent:
        return Decided(its.version, state.write(_key(its), kept.as_deleted().value()))
    if not its.deleted:
        raise MainstemError("SCHEMA_VERSION_NOT_SOFT_DELETED", subject=subject, version=its.version)
    records = _erased(state, [its])
    if len(state.versions(subject, deleted=True)) == 1:
        records |= _settings_gone(state, subject)
    return Decided(its.version, records)


def set_config(state: State, subject: str | None, changes: Value) -> Decided[Value]:
    """Rules of a subject, or of all; what is not named stays."""
    check_writable(state, subject)
    value = {**(state.config(subject) or {}), **changes}
    if value == (state.config(subject) or {}):
        return Decided(value, {})
    return Decided(value, state.write(Key(KeyType.CONFIG, subject), value))


def delete_config(state: State, subject: str | None) -> Decided[Value]:
    """Back to the rules that apply to all, or for all to the defaults; the answer is the old."""
    check_writable(state, subject)
    old = state.config(subject)
    if old is None:
        if subject is not None:
            raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
        return Decided({"compatibilityLevel": Level.BACKWARD.value}, {})
    return Decided(old, state.write(Key(KeyType.CONFIG, subject), None))


def set_mode(state: State, subject: str | None, mode: Mode, *, force: bool) -> Decided[Mode]:
    """IMPORT needs that there is nothing yet, unless forced; what was deleted goes for good."""
    records: dict[str, Value | None] = {}
    if mode is Mode.IMPORT and mode_of(state, subject) is not Mode.IMPORT and not force:
        names = state.subjects(deleted=True) if subject is None else [subject]
        if any(state.versions(name) for name in names):
            raise _not_permitted("there are schemas already", "Add force=true to import into them.")
        gone = [k.registered for name in names for k in state.versions(name, deleted=True)]
        for its in gone:
            _check_unreferenced(state, its, deleted=True, but=names)
        records = _erased(state, reversed(gone))
    records |= state.write(Key(KeyType.MODE, subject), {"mode": mode.value})
    return Decided(mode, records)


def delete_mode(state: State, subject: str | None) -> Decided[str]:
    """Back to the mode that applies to all, or for all to READWRITE; the answer is the old."""
    old = state.mode(subject)
    if old is None:
        if subject is not None:
            raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
        return Decided(Mode.READWRITE.value, {})
    return Decided(old, state.write(Key(KeyType.MODE, subject), None))


# -- inside


def known_version(
    state: State, subject: str, version: int | None, *, deleted: bool = False
) -> Kept:
    """A version, the latest without a number; an error says what of it is unknown."""
    kept = state.version(subject, version, deleted=deleted)
    if kept is not None:
        return kept
    if not state.versions(subject, deleted=deleted):
        raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
    raise MainstemError("SCHEMA_VERSION_UNKNOWN", subject=subject, version=version)


def check_writable(state: State, subject: str | None) -> None:
    """Raise when the mode permits reading only."""
    if mode_of(state, subject) is Mode.READONLY:
        what = "the registry" if subject is None else f'the subject "{subject}"'
        raise _not_permitted(f"{what} is read-only", "Set its mode to READWRITE first.")


def _new_id(state: State) -> int:
    highest = state.highest_id()
    if highest == LARGEST:
        raise _not_permitted(
            f"the largest id, {LARGEST}, was given already", "Import the schema with a smaller one."
        )
    return highest + 1


def _erased(state: State, versions: Iterable[Registered]) -> dict[str, Value | None]:
    """Records that remove versions for good, and see to it that their ids are not given again."""
    records: dict[str, Value | None] = {}
    highest = state.highest_id()
    forgets = False
    for its in versions:
        records |= state.write(_key(its), None)
        forgets = forgets or its.id == highest
    if forgets:
        records |= state.write(Key(KeyType.NOOP), {HIGHEST_ID: highest})
    return records


def _settings_gone(state: State, subject: str) -> dict[str, Value | None]:
    records: dict[str, Value | None] = {}
    if state.mode(subject) is not None:
        records |= state.write(Key(KeyType.MODE, subject), None)
    if state.config(subject) is not None:
        records |= state.write(Key(KeyType.CONFIG, subject), None)
    return records


def _check_unreferenced(
    state: State, its: Registered, *, deleted: bool, but: Container[str] = ()
) -> None:
    for other in state.referenced_by(its.subject, its.version, deleted=deleted):
        if other.registered.subject not in but:
            raise MainstemError(
                "SCHEMA_REFERENCED",
                subject=its.subject,
                version=its.version,
                by=f'version {other.registered.version} of "{other.registered.subject}"',
            )


def _referrers(state: State, its: Registered) -> list[Kept]:
    return state.referenced_by(its.subject, its.version, deleted=True)


def _key(its: Registered) -> Key:
    return Key(KeyType.SCHEMA, its.subject, its.version)


def _not_permitted(problem: str, advice: str) -> MainstemError:
    return MainstemError("REGISTRY_NOT_PERMITTED", problem=problem, advice=advice)
