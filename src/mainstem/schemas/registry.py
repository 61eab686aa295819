"""The schema registry: its state in a compacted topic, changes one at a time through the log.

Every registry that follows the topic gives the same answers. A change is decided from the state at
an offset and written in a transaction that fails when anything was written behind that offset, or
when another registry has taken the topic's transactional id meanwhile; then it is decided anew. So
two registries never give one id to two schemas. A crash before the commit leaves nothing; behind
it, the schema is there and a client that asks again is told the same id.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from mainstem.errors import MainstemError
from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.schemas import registry_rules as rules
from mainstem.schemas.canonical import canonical
from mainstem.schemas.canonical import normalize as in_one_form
from mainstem.schemas.compatibility import Level, check
from mainstem.schemas.model import Reference, Registered, Schema
from mainstem.schemas.parse import Parsed, parse
from mainstem.schemas.protobuf_parse import ProtobufSchema, read_base64
from mainstem.schemas.registry_rules import Decided, Mode, Wanted
from mainstem.schemas.registry_state import State
from mainstem.schemas.topic_records import Kept, Value, compact

T = TypeVar("T")

SCHEMAS_TOPIC = "_schemas"
_PATIENCE_SECONDS = 20.0
_PAUSE_SECONDS = 0.05
_LOOKS = 4
_LOOK_SECONDS = 1.0
_OVERTAKEN = ("STALE_PLAN", "CONCURRENT_APPLY")


class RegistryLog(Protocol):
    """What the registry needs of a log; `StateLog` says what each promises."""

    def start(self) -> None:
        """Read everything, then follow."""
        ...

    def close(self) -> None:
        """Stop following."""
        ...

    def catch_up(self) -> int:
        """Wait until all that is there by now was announced; the offset behind it."""
        ...

    def replace(self, changes: Mapping[str, Value | None], expected_offset: int) -> int:
        """Write all changes at once, if nothing was written since the offset."""
        ...


OpenLog = Callable[[Callable[[str, Value | None], None]], RegistryLog]


def topic_log(
    connection: Connection, topic: str = SCHEMAS_TOPIC, replication_factor: int = 1
) -> OpenLog:
    """The topic of a registry; one that another registry has written is taken over as it is."""
    return lambda on_change: StateLog[Value](
        connection,
        topic,
        _read_value,
        lambda value: compact(value).encode(),
        on_change,
        replication_factor=replication_factor,
    )


class Registry:
    """Our own registry: a `SchemaSource`, and what its API needs beyond that."""

    def __init__(self, open_log: OpenLog) -> None:
        self._state = State(self._canonical)
        self._log = open_log(self._state.apply)
        self._ready = False
        self._changing = threading.Lock()
        self._looking = threading.BoundedSemaphore(_LOOKS)

    def start(self) -> None:
        """Read the topic, then follow it; the topic is made when there is none."""
        self._log.start()
        self._ready = True

    def close(self) -> None:
        """Stop following; safe to call twice."""
        self._log.close()

    @property
    def state(self) -> State:
        """All that is registered; LOG_UNREACHABLE before the topic was read."""
        if not self._ready:
            raise _unreachable()
        return self._state

    # -- reading

    def by_id(self, id: int) -> Schema:
        """The schema that an id stands for, deleted or not."""
        return self.with_id(id)[0].registered.schema

    def with_id(self, id: int) -> list[Kept]:
        """All versions that have an id; SCHEMA_UNKNOWN when there is none."""
        found = self.state.with_id(id)
        if not found:
            # another registry may have given the id a moment ago
            self._look()
            found = self.state.with_id(id)
        if not found:
            raise MainstemError("SCHEMA_UNKNOWN", what=f"with id {id}")
        return found

    def latest(self, subject: str) -> Registered:
        """The newest version of a subject that is not deleted."""
        return rules.known_version(self.state, subject, None).registered

    def version(self, subject: str, version: int) -> Registered:
        """One version of a subject that is not deleted."""
        return rules.known_version(self.state, subject, version).registered

    def versions(self, subject: str, *, fresh: bool = False) -> list[int]:
        """The versions of a subject that are not deleted."""
        if fresh:
            self._look()
        found = self.state.versions(subject)
        if not found:
            raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
        return [kept.registered.version for kept in found]

    def level(self, subject: str) -> Level:
        """The rule of a subject, be it its own or that of all."""
        return rules.level_of(self.state, subject)

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for; a version that was deleted still does."""
        found = self._state.find(reference)
        if found is None:
            raise MainstemError(
                "SCHEMA_REFERENCE_UNKNOWN",
                name=reference.name,
                problem=f'there is no version {reference.version} of "{reference.subject}"',
            )
        return found

    def lookup(
        self, subject: str, wanted: Wanted, *, normalize: bool = False, deleted: bool = False
    ) -> Kept:
        """The version of a subject that is this schema."""
        wanted = self._read(subject, wanted, normalize=normalize)
        found = rules.lookup(self.state, subject, wanted.schema, wanted.contract, deleted=deleted)
        if found is None:
            if not self.state.versions(subject, deleted=deleted):
                raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
            raise MainstemError("SCHEMA_UNKNOWN", what=f'like this under "{subject}"')
        return found

    def check(self, subject: str, schema: Schema) -> list[str]:
        """What registering the schema would break."""
        return self.breaks(subject, schema, self.state.versions(subject))

    def breaks(
        self, subject: str, schema: Schema, earlier: list[Kept], *, normalize: bool = False
    ) -> list[str]:
        """What of the subject's rule the schema breaks against earlier versions."""
        wanted = self._read(subject, Wanted(schema), normalize=normalize)
        return self._breaks(rules.level_of(self.state, subject), wanted.schema, earlier)

    # -- changing

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The schema as a version of the subject: the one that it is already, or a new one."""
        return self.register_wanted(subject, Wanted(schema), normalize=normalize)

    def register_wanted(
        self, subject: str, asked: Wanted, *, normalize: bool = False, force: bool = False
    ) -> Registered:
        """The same with a contract, or an id and version to be imported; `force`: unchecked."""
        rules.check_subject(subject)
        wanted = self._read(subject, asked, normalize=normalize)
        if rules.mode_of(self.state, subject) is Mode.READWRITE:
            known = rules.registered_already(self.state, subject, wanted)
            if known is not None:
                return known

        def decide(state: State) -> Decided[Registered]:
            decided = rules.register(state, subject, wanted)
            if decided.records and not force and rules.mode_of(state, subject) is not Mode.IMPORT:
                self._check_level(state, subject, wanted.schema)
            return decided

        return self._change(decide)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """All versions of a subject; the answer is which."""
        return self._change(lambda state: rules.delete_subject(state, subject, permanent=permanent))

    def delete_version(self, subject: str, version: int | None, *, permanent: bool = False) -> int:
        """One version of a subject, the latest without a number; the answer is which."""
        return self._change(
            lambda state: rules.delete_version(state, subject, version, permanent=permanent)
        )

    def set_config(self, subject: str | None, changes: Value) -> Value:
        """Rules of a subject, or of all; what is not named stays."""
        return self._change(lambda state: rules.set_config(state, subject, changes))

    def delete_config(self, subject: str | None) -> Value:
        """Back to the rules of all, or to the defaults; the answer is what was set."""
        return self._change(lambda state: rules.delete_config(state, subject))

    def set_mode(self, subject: str | None, mode: Mode, *, force: bool = False) -> Mode:
        """What may be done to a subject, or to all."""
        return self._change(lambda state: rules.set_mode(state, subject, mode, force=force))

    def delete_mode(self, subject: str | None) -> str:
        """Back to the mode of all, or to READWRITE; the answer is what was set."""
        return self._change(lambda state: rules.delete_mode(state, subject))

    # -- inside

    def _look(self) -> None:
        """Catch up with the log; few at a time, so that unknown ids do not take all threads."""
        if not self._looking.acquire(timeout=_LOOK_SECONDS):
            raise _unreachable()
        try:
            self._log.catch_up()
        finally:
            self._looking.release()

    def _change(self, decide: Callable[[State], Decided[T]]) -> T:
        """Decide upon the latest state and write; once more when somebody was quicker."""
        state = self.state
        deadline = time.monotonic() + _PATIENCE_SECONDS
        pause = _PAUSE_SECONDS
        busy = MainstemError("REGISTRY_BUSY", seconds=_PATIENCE_SECONDS)
        if not self._changing.acquire(timeout=_PATIENCE_SECONDS):
            raise busy
        try:
            while True:
                offset = self._log.catch_up()
                decided = decide(state)
                if not decided.records:
                    return decided.answer
                try:
                    self._log.replace(decided.records, offset)
                except MainstemError as error:
                    if error.code not in _OVERTAKEN:
                        raise
                    if time.monotonic() > deadline:
                        raise busy from None
                else:
                    return decided.answer
                # two that overtake each other do not keep in step
                time.sleep(random.uniform(0, pause))
                pause = min(2 * pause, 1.0)
        finally:
            self._changing.release()

    def _read(self, subject: str, wanted: Wanted, *, normalize: bool) -> Wanted:
        """The schema, checked by the rules of its type, as it is to be kept."""
        parsed = parse(wanted.schema, self.resolve)
        if normalize or rules.normalizes(self.state, subject) or _is_descriptor(parsed):
            return replace(wanted, schema=replace(wanted.schema, text=in_one_form(parsed)))
        return wanted

    def _check_level(self, state: State, subject: str, schema: Schema) -> None:
        level = rules.level_of(state, subject)
        found = self._breaks(level, schema, state.versions(subject))
        if found:
            raise MainstemError(
                "SCHEMA_INCOMPATIBLE", subject=subject, level=level.value, problem="; ".join(found)
            )

    def _breaks(self, level: Level, schema: Schema, earlier: list[Kept]) -> list[str]:
        versions = [kept.registered for kept in earlier]
        return [
            f"version {versions[found.against].version}, {found.direction}: {found}"
            for found in check(schema, [its.schema for its in versions], level, self.resolve)
        ]

    def _canonical(self, schema: Schema) -> Schema:
        try:
            return replace(schema, text=canonical(parse(schema, self.resolve)))
        except MainstemError:  # another registry took it: it is like itself only
            return schema


def _unreachable() -> MainstemError:
    return MainstemError("LOG_UNREACHABLE", servers="the address in [kafka]")


def _is_descriptor(parsed: Parsed) -> bool:
    """Whether a client sent the descriptor of a .proto file; it is kept as text."""
    if not isinstance(parsed, ProtobufSchema):
        return False
    return read_base64(parsed.schema.text, parsed.file.name) is not None


def _read_value(value: bytes) -> Value:
    document: Any = json.loads(value)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    return document
