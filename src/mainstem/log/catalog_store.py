"""The catalog in the log, and what plans need of the log: facts to plan with, acts to apply."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from mainstem.catalog.entry import (
    Catalog,
    CatalogRecord,
    Entry,
    record_from_json,
    record_to_json,
)
from mainstem.catalog.plan import TopicNeed
from mainstem.config import KafkaSettings
from mainstem.definitions.model import FunctionDefinition
from mainstem.definitions.options import milliseconds
from mainstem.definitions.patterns import TopicPattern
from mainstem.errors import MainstemError
from mainstem.log.admin import BROKER_DEFAULT, Admin, TopicSpec
from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.vocabulary import CATALOG_TOPIC, Offsets

_FOREVER = "forever"
_UNLIMITED = "-1"
_STREAM = "delete"
_TABLE = "compact,delete"
"""Compacted; "delete" lets a rebuild empty the topic, and rows with a retention end at that age."""


class CatalogStore:
    """The catalog topic. Safe to use from several threads after `start`."""

    def __init__(
        self,
        connection: Connection,
        *,
        topic: str = CATALOG_TOPIC,
        replication_factor: int = BROKER_DEFAULT,
    ) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._state: StateLog[CatalogRecord] = StateLog(
            connection,
            topic,
            record_from_json,
            record_to_json,
            self._changed,
            replication_factor=replication_factor,
        )

    def start(self, timeout: float = 30.0) -> None:
        """Make the topic if it is missing, read it, then follow it."""
        self._state.start(timeout)

    def close(self) -> None:
        """Stop following; safe to call twice. The catalog stays readable as it was."""
        self._state.close()

    def catalog(self) -> Catalog:
        """All objects at one revision; never half of an apply."""
        records, revision = self._state.snapshot()
        entries = {key: r for key, r in records.items() if isinstance(r, Entry)}
        functions = {
            r.name.lower(): r for r in records.values() if isinstance(r, FunctionDefinition)
        }
        return Catalog(entries, revision, functions)

    def replace(self, changes: Mapping[str, CatalogRecord | None], revision: int) -> int:
        """Write all changes at once (None removes a name) and give the new revision.

        Keys are those of `record_key`. STALE_PLAN when the catalog was changed after `revision`,
        CONCURRENT_APPLY when another writer took over; then nothing was written. When it returns,
        `catalog` has the changes and all listeners were called.
        """
        return self._state.replace(changes, revision)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change from now on, from the thread that follows the topic.

        It must return soon and must not call `replace`.
        """
        with self._lock:
            self._listeners.append(listener)

    def _changed(self, _: str, __: CatalogRecord | None) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()


class LogExecutor:
    """Does to the log what a plan says; an `Executor` of catalog/apply.py."""

    def __init__(self, admin: Admin, store: CatalogStore, settings: KafkaSettings) -> None:
        self._admin = admin
        self._store = store
        self._settings = settings

    def create_topic(self, topic: TopicNeed) -> None:
        """Make the topic; nothing happens when it exists."""
        config = {key: value for key, value in _config(topic).items() if value is not None}
        partitions = topic.partitions or self._settings.partitions
        spec = TopicSpec(topic.name, partitions, self._settings.replication_factor, config)
        self._admin.ensure_topic(spec)

    def alter_topic(self, topic: TopicNeed) -> None:
        """Give the topic this retention and compaction, and more partitions if it has fewer."""
        self._admin.alter_topic(topic.name, _config(topic))
        if topic.partitions is not None:
            self._admin.add_partitions(topic.name, topic.partitions)

    def write_catalog(self, changes: Mapping[str, CatalogRecord | None], revision: int) -> None:
        """Write all changes in one transaction, if the catalog is still at `revision`."""
        self._store.replace(changes, revision)

    def delete_topic(self, topic: str) -> None:
        """Delete the topic; nothing happens when there is none."""
        self._admin.delete_topic(topic)


class LogFactsReader:
    """Knows what is in the log; the `LogFacts` of catalog/build.py."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def records(self, topic: str) -> int | None:
        """About how many records the topic holds (markers count, too); None without the topic."""
        try:
            begins, ends = self._admin.begin_offsets(topic), self._admin.end_offsets(topic)
        except MainstemError as error:
            if error.code == "UNKNOWN_TOPIC":
                return None
            raise
        return sum(ends[partition] - begin for partition, begin in begins.items())

    def partitions(self, topic: str) -> int | None:
        """How many partitions the topic has; None when there is no such topic."""
        info = self._admin.topic(topic)
        return None if info is None else info.partitions

    def ends(self, topic: str) -> Offsets:
        """Where the partitions of the topic end for readers; empty when there is no such topic."""
        try:
            return self._admin.end_offsets(topic)
        except MainstemError as error:
            if error.code == "UNKNOWN_TOPIC":
                return {}
            raise

    def matching(self, pattern: TopicPattern) -> list[str]:
        """The topics that a pattern stands for now."""
        return self._admin.matching(pattern)


def _config(topic: TopicNeed) -> dict[str, str | None]:
    """Settings of a topic; None stands for the broker's default."""
    retention = _FOREVER if topic.retention is None and topic.compacted else topic.retention
    policy = {"cleanup.policy": _TABLE if topic.compacted else _STREAM}
    if retention is None:
        return {**policy, "retention.ms": None, "retention.bytes": None}
    milliseconds_kept = _UNLIMITED if retention == _FOREVER else str(milliseconds(retention))
    return {**policy, "retention.ms": milliseconds_kept, "retention.bytes": _UNLIMITED}
