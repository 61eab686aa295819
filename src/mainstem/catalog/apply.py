"""Runs a plan: topics and schemas first, then the catalog in one transaction, then what is to go.

A crash before the catalog is written leaves empty topics, which the next apply takes over, and
versions in the registry, which it finds there; a crash behind it leaves topics that nobody owns,
which harm nobody. Flows, views and checkpoints follow the catalog by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mainstem.catalog.entry import CatalogRecord, Entry, record_key
from mainstem.catalog.plan import (
    ChangeInPlace,
    CreateObject,
    DropObject,
    Plan,
    Rebuild,
    TopicNeed,
    topic_need,
)
from mainstem.catalog.schemas import Schemas, check_breaks, register_schemas


class Executor(Protocol):
    """What applying a plan does to the world. Every act may be repeated without harm."""

    def create_topic(self, topic: TopicNeed) -> None:
        """Make the topic; nothing happens when it exists."""
        ...

    def alter_topic(self, topic: TopicNeed) -> None:
        """Give the topic this retention and compaction, and more partitions if it has fewer."""
        ...

    def write_catalog(self, changes: Mapping[str, CatalogRecord | None], revision: int) -> None:
        """Write all changes in one transaction; None removes a name.

        Keys are those of `record_key`. Raises STALE_PLAN when the catalog is no longer at
        `revision`, CONCURRENT_APPLY when another writer took over; then nothing was written.
        """
        ...

    def delete_topic(self, topic: str) -> None:
        """Delete the topic; nothing happens when there is none."""
        ...


def apply_plan(plan: Plan, executor: Executor, schemas: Schemas | None = None) -> None:
    """Take all steps of the plan, or none of those that the catalog would know of.

    SCHEMA_INCOMPATIBLE when the registry's rules forbid one of its schemas; then nothing was done.
    """
    check_breaks(plan)
    changes: dict[str, CatalogRecord | None] = {
        record_key(change.function): None if change.step == "drop" else change.function
        for change in plan.functions
    }
    dropped: list[Entry] = []
    for step in plan.steps:
        match step:
            case CreateObject(entry, topic):
                if topic is not None:
                    executor.create_topic(topic)
                changes[entry.name.lower()] = entry
            case ChangeInPlace(entry, before) | Rebuild(entry, before):
                if entry.owns_topic and topic_need(entry) != topic_need(before):
                    executor.alter_topic(topic_need(entry))
                changes[entry.name.lower()] = entry
            case DropObject(entry):
                changes.setdefault(entry.name.lower(), None)
                dropped.append(entry)
    if not changes:
        return
    if schemas is not None:
        register_schemas(plan, schemas)
    executor.write_catalog(changes, plan.revision)
    kept = {record.definition.topic for record in changes.values() if isinstance(record, Entry)}
    for entry in dropped:
        if entry.owns_topic and entry.definition.topic not in kept:
            executor.delete_topic(entry.definition.topic)
