"""What the topic `_schemas` says, in memory: subjects, versions, ids, levels and modes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.topic_records import (
    LARGEST,
    Contract,
    Kept,
    Key,
    KeyType,
    Value,
    read_key,
    read_schema,
)

T = TypeVar("T")

_logger = logging.getLogger(__name__)
CONTEXT = ":."
"""How a subject in a context of Confluent's begins, `:.name:subject`; contexts are not served."""
HIGHEST_ID = "highestId"
"""Member of the NOOP record: ids up to this one were given once. Other registries ignore it."""

Identity = tuple[Schema, Contract]
"""What makes two versions the same schema, whatever their subjects."""


class State:
    """Applies records in the order of the topic and answers; safe from several threads.

    A record that cannot be understood is told in the log, left alone in the topic, and changes
    nothing here, except that its id is never given to another schema.
    """

    def __init__(self, canonical: Callable[[Schema], Schema]) -> None:
        self._canonical = canonical
        self._lock = threading.RLock()
        self._subjects: dict[str, dict[int, Kept]] = {}
        self._ids: dict[int, dict[tuple[str, int], Kept]] = {}
        self._config: dict[str | None, Value] = {}
        self._mode: dict[str | None, str] = {}
        self._spellings: dict[Key, set[str]] = {}
        self._highest = 0
        self._exact: dict[Identity, list[int]] = {}
        self._alike: dict[Identity, list[int]] = {}
        self._unread: dict[SchemaType, list[tuple[Identity, int]]] = {}
        self._reading = threading.Lock()

    # -- what the topic says

    def apply(self, text: str, value: Value | None) -> None:
        """One record: its key and value, None for one that deletes the key."""
        with self._lock:
            try:
                key = read_key(text)
                if key.subject is not None and key.subject.startswith(CONTEXT):
                    raise ValueError("it is in another context")
                spellings = self._spellings.setdefault(key, set())
                if value is None:
                    spellings.discard(text)
                else:
                    spellings.add(text)
                self._take(key, value)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                _logger.error("record of the registry left alone: %s: %r", text[:200], error)
                id = 0 if value is None else value.get("id")
                if isinstance(id, int) and id <= LARGEST:
                    self._highest = max(self._highest, id)

    def _take(self, key: Key, value: Value | None) -> None:
        match key.type:
            case KeyType.SCHEMA:
                assert key.subject is not None and key.version is not None
                if value is None:
                    self._remove(key.subject, key.version)
                else:
                    self._put(read_schema(key, value))
            case KeyType.CONFIG:
                _set(self._config, key.subject, value)
            case KeyType.MODE:
                _set(self._mode, key.subject, None if value is None else str(value["mode"]))
            case KeyType.DELETE_SUBJECT if value is not None:
                for kept in self._all(key.subject):
                    if kept.registered.version <= value["version"]:
                        self._put(kept.as_deleted())
            case KeyType.CLEAR_SUBJECT if value is not None:
                for kept in self._all(key.subject):
                    if kept.registered.deleted:
                        self._remove(kept.registered.subject, kept.registered.version)
            case KeyType.NOOP if value is not None and isinstance(value.get(HIGHEST_ID), int):
                self._highest = max(self._highest, value[HIGHEST_ID])

    def _put(self, kept: Kept) -> None:
        its = kept.registered
        place = (its.subject, its.version)
        same = self._ids.setdefault(its.id, {})
        for other_place, other in same.items():
            if other_place != place and other.registered.schema != its.schema:
                raise ValueError(f"id {its.id} is that of another schema already")
        old = self._subjects.get(its.subject, {}).get(its.version)
        if old is not None and (old.registered.id, old.registered.schema) != (its.id, its.schema):
            self._remove(*place)
        self._subjects.setdefault(its.subject, {})[its.version] = kept
        self._ids.setdefault(its.id, {})[place] = kept
        self._highest = max(self._highest, its.id)
        identity = (its.schema, kept.contract)
        ids = self._exact.setdefault(identity, [])
        if its.id not in ids:
            ids.append(its.id)
            self._unread.setdefault(its.schema.type, []).append((identity, its.id))

    def _remove(self, subject: str, version: int) -> None:
        kept = self._subjects.get(subject, {}).pop(version, None)
        if kept is None:
            return
        if not self._subjects[subject]:
            del self._subjects[subject]
        id = kept.registered.id
        del self._ids[id][subject, version]
        if not self._ids[id]:
            del self._ids[id]

    # -- answers

    def version(self, subject: str, version: int | None, *, deleted: bool = False) -> Kept | None:
        """A version of a subject, the latest without a number; deleted ones when asked for."""
        with self._lock:
            if version is None:
                return max(
                    self.versions(subject, deleted=deleted),
                    key=lambda kept: kept.registered.version,
                    default=None,
                )
            kept = self._subjects.get(subject, {}).get(version)
            return None if kept is None or (kept.registered.deleted and not deleted) else kept

    def versions(self, subject: str, *, deleted: bool = False) -> list[Kept]:
        """All versions of a subject, the oldest first."""
        with self._lock:
            return [k for k in self._all(subject) if deleted or not k.registered.deleted]

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Subjects with a version, by name."""
        with self._lock:
            return sorted(
                name
                for name, versions in self._subjects.items()
                if name.startswith(prefix)
                and (deleted or any(not kept.registered.deleted for kept in versions.values()))
            )

    def with_id(self, id: int) -> list[Kept]:
        """All versions that have an id, deleted ones, too, by subject and version."""
        with self._lock:
            return [kept for _, kept in sorted(self._ids.get(id, {}).items())]

    def ids_of(self, schema: Schema, contract: Contract) -> list[int]:
        """The ids of a schema that was registered before, under whatever subjects.

        There is one, unless a schema was imported under several.
        """
        with self._lock:
            known = self._used(self._exact.get((schema, contract), []))
        if known:
            return known
        # the same in another spelling: texts are read when somebody first asks for one of those
        with self._reading:
            with self._lock:
                unread = self._unread.pop(schema.type, [])
            for (its_schema, its_contract), id in unread:
                alike = self._alike.setdefault((self._canonical(its_schema), its_contract), [])
                alike.append(id)
            # it may take long, and is nothing that other questions should wait for
            canonical = self._canonical(schema)
            with self._lock:
                return self._used(self._alike.get((canonical, contract), []))

    def _used(self, ids: list[int]) -> list[int]:
        return [id for id in ids if id in self._ids]

    def highest_id(self) -> int:
        """The largest id that was ever given."""
        with self._lock:
            return self._highest

    def referenced_by(self, subject: str, version: int, *, deleted: bool = False) -> list[Kept]:
        """The versions that refer to this one."""
        with self._lock:
            return [
                kept
                for kept in self._everything()
                if (deleted or not kept.registered.deleted)
                and any(
                    (ref.subject, ref.version) == (subject, version)
                    for ref in kept.registered.schema.references
                )
            ]

    def find(self, reference: Reference) -> Schema | None:
        """What a reference stands for; a deleted version still does."""
        kept = self.version(reference.subject, reference.version, deleted=True)
        return None if kept is None else kept.registered.schema

    def config(self, subject: str | None) -> Mapping[str, Any] | None:
        """What was set for a subject, or for all."""
        with self._lock:
            return self._config.get(subject)

    def mode(self, subject: str | None) -> str | None:
        """The mode that was set for a subject, or for all."""
        with self._lock:
            return self._mode.get(subject)

    def write(self, key: Key, value: Value | None) -> dict[str, Value | None]:
        """Records that set a key: its own, and the deletion of what older registries called it."""
        own = key.spelled()
        with self._lock:
            others = {text: None for text in self._spellings.get(key, ()) if text != own}
        return {**others, own: value}

    def _all(self, subject: str | None) -> list[Kept]:
        versions = self._subjects.get(subject, {}) if subject is not None else {}
        return [versions[number] for number in sorted(versions)]

    def _everything(self) -> Iterator[Kept]:
        for versions in self._subjects.values():
            yield from versions.values()


def _set(among: dict[str | None, T], subject: str | None, value: T | None) -> None:
    if value is None:
        among.pop(subject, None)
    else:
        among[subject] = value
