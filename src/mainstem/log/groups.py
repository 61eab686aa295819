"""Consumer groups and partitions as they are now: members, what they have, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.admin import Admin
from mainstem.log.errors import kafka_error

_DEAD = "DEAD"


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a topic."""

    number: int
    leader: int
    replicas: Sequence[int]
    in_sync: Sequence[int]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group, as the broker knows it."""

    id: str
    client: str
    host: str
    partitions: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its state in Kafka's words, small letters, and its members."""

    name: str
    state: str
    assignor: str
    coordinator: int
    members: Sequence[GroupMember]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is in a partition."""

    topic: str
    partition: int
    committed: int
    end: int

    @property
    def lag(self) -> int:
        """Offsets that are left: of transactions' markers, too."""
        return max(0, self.end - self.committed)


class Groups:
    """Asks the cluster. Safe to use from several threads."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def parts(self, topic: str) -> list[Part]:
        """The partitions of a topic; UNKNOWN_TOPIC when there is none."""
        return [
            Part(number, found.leader, list(found.replicas), list(found.isrs))
            for number, found in sorted(self._admin.metadata_of(topic).partitions.items())
        ]

    def one(self, name: str) -> Group:
        """A group; GROUP_UNKNOWN when there is none."""
        act = f'to describe group "{name}"'
        try:
            found: Any = self._admin.described_group(name)
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise self._admin.translated(error, act) from None
            raise self._unknown(name) from None
        if found.state.name == _DEAD:
            raise self._unknown(name)
        return Group(
            name,
            found.state.name.lower(),
            found.partition_assignor or "",
            found.coordinator.id if found.coordinator is not None else -1,
            [
                GroupMember(
                    member.member_id,
                    member.client_id,
                    member.host,
                    [(p.topic, p.partition) for p in member.assignment.topic_partitions],
                )
                for member in found.members
            ],
        )

    def lags(self, name: str) -> list[Lag]:
        """How far a group is in all that it has committed, by topic and partition."""
        committed: Mapping[str, Mapping[int, int]] = self._admin.group_positions(name)
        ends = self._admin.all_end_offsets(committed)
        return [
            Lag(topic, partition, offset, ends.get(topic, {}).get(partition, offset))
            for topic, offsets in sorted(committed.items())
            for partition, offset in sorted(offsets.items())
        ]

    def _unknown(self, name: str) -> MainstemError:
        suggestion = did_you_mean(name, self._admin.groups())
        return MainstemError("GROUP_UNKNOWN", group=name, suggestion=suggestion)
