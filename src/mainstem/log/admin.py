"""Topics, offsets and consumer groups: what an administrator asks of Kafka."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from mainstem.definitions.model import Definition
from mainstem.definitions.patterns import TopicPattern
from mainstem.errors import MainstemError, did_you_mean
from mainstem.log.connection import Connection
from mainstem.log.errors import kafka_error, translate, unreachable
from mainstem.vocabulary import Offsets

T = TypeVar("T")

BROKER_DEFAULT = -1
"""As a replication factor: what the cluster is set to."""
_POLL_SECONDS = 0.02
_GROUP_CLIENTS = 64
_ANSWERED_SECONDS = 1.0
"""A cluster that has answered a moment ago is taken to be there."""
_LEADERLESS = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to be made; `config` are the settings that differ from the broker's."""

    name: str
    partitions: int = 1
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as it is; `config` are all settings in effect."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class Admin:
    """Administration of one cluster. Safe to use from several threads.

    Every call answers within `timeout` seconds or raises LOG_UNREACHABLE.
    """

    def __init__(self, connection: Connection, timeout: float = 15.0) -> None:
        self._connection = connection
        self._timeout = timeout
        self._client = AdminClient(connection.client())
        self._groups: OrderedDict[str, Consumer] = OrderedDict()
        self._groups_lock = threading.Lock()
        self._answered_at = float("-inf")

    def close(self) -> None:
        """End the client and its threads; safe to call twice, no other call may follow."""
        with self._groups_lock:
            while self._groups:
                self._groups.popitem()[1].close()
        self.__dict__.pop("_client", None)  # librdkafka closes a client when it is freed

    # -- the cluster

    def ping(self, timeout: float = 5.0) -> None:
        """Return when a broker answers; LOG_UNREACHABLE when none does in time."""
        self._metadata(timeout=timeout)

    def cluster_id(self) -> str:
        """Kafka's own name of the cluster."""
        return str(self._metadata().cluster_id)

    # -- topics

    def topics(self, internal: bool = False) -> list[TopicInfo]:
        """All topics by name; those that begin with `_` only when `internal`."""
        metadata = self._metadata()
        names = sorted(n for n in metadata.topics if internal or not n.startswith("_"))
        configs = self._configs(names)
        return [_info(metadata.topics[name], configs[name]) for name in names if name in configs]

    def topics_of(self, definition: Definition) -> list[str]:
        """The topics whose records a stream or table has, by name: of a wildcard, those there are.

        A topic of its own is named whether it is there or not.
        """
        pattern = definition.pattern
        return [definition.topic] if pattern is None else self.matching(pattern)

    def matching(self, pattern: TopicPattern) -> list[str]:
        """The topics that a pattern stands for now, by name."""
        return sorted(filter(pattern.matches, self._metadata().topics))

    def topic(self, name: str) -> TopicInfo | None:
        """The topic of that name, or None."""
        found = self._metadata().topics.get(name)
        if found is None:
            return None
        config = self._configs([name]).get(name)
        return None if config is None else _info(found, config)

    def topic_id(self, name: str) -> str:
        """What tells a topic from another one that had its name before; fit to name files by.

        Written as Kafka's own tools write it: librdkafka's text may have slashes in it.
        """
        wanted = TopicCollection([name])
        futures = self._client.describe_topics(wanted, request_timeout=self._timeout)
        found = str(self._result(futures[name], "to describe", name).topic_id)
        return found.replace("+", "-").replace("/", "_")

    def ensure_topic(self, spec: TopicSpec) -> bool:
        """Make the topic and wait until it can be written to; False when it was there before.

        An existing topic is left as it is, whatever its settings.
        """
        return spec.name in self.ensure_topics([spec])

    def ensure_topics(self, specs: Iterable[TopicSpec]) -> set[str]:
        """Make these topics, as `ensure_topic` does; the names of those that were not there."""
        wanted = {spec.name: spec for spec in specs}
        topics = [
            NewTopic(s.name, s.partitions, s.replication_factor, config=dict(s.config))
            for s in wanted.values()
        ]
        if not topics:
            return set()
        made = set()
        futures = self._client.create_topics(topics, request_timeout=self._timeout)
        for name, future in futures.items():
            try:
                self._wait(future)
                made.add(name)
            except KafkaException as error:
                if kafka_error(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise self.translated(error, f'the topic "{name}"', name) from None
        self._until(lambda: all(self._has_leaders(n, wanted[n].partitions) for n in made))
        return made

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Set these settings of the topic (None: back to the default) and leave the others.

        Returns when the broker answers with the new ones: it takes them over a moment later.
        """
        entries = [
            ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
            if value is None
            else ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        futures = self._client.incremental_alter_configs([resource], request_timeout=self._timeout)
        self._result(futures[resource], f'new settings for topic "{name}"', name)
        wanted = {key: value for key, value in config.items() if value is not None}
        self._until(lambda: wanted.items() <= self._configs([name]).get(name, wanted).items())

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let the topic have this many partitions; nothing happens when it has as many or more."""
        info = self.topic(name)
        if info is None:
            raise self._unknown_topic(name)
        if info.partitions >= partitions:
            return
        more = NewPartitions(name, partitions)
        future = self._client.create_partitions([more], request_timeout=self._timeout)[name]
        self._result(future, f'more partitions of topic "{name}"', name)
        self._until(lambda: self._has_leaders(name, partitions))

    def delete_topic(self, name: str) -> None:
        """Delete the topic and wait until it is gone; nothing happens when there is none."""
        self.delete_topics([name])

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete these topics, as `delete_topic` does."""
        wanted = sorted(set(names))
        if not wanted:
            return
        gone = set()
        futures = self._client.delete_topics(wanted, request_timeout=self._timeout)
        for name, future in futures.items():
            try:
                self._wait(future)
                gone.add(name)
            except KafkaException as error:
                if kafka_error(error).code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self.translated(error, f'to delete topic "{name}"', name) from None
        if gone:
            self._until(lambda: gone.isdisjoint(self._metadata().topics))

    def truncate(self, topic: str) -> None:
        """Delete all records; offsets go on where they were.

        Kafka deletes records only from a topic whose clean-up policy includes `delete`. A topic
        that is only compacted gets both policies, with unlimited retention, for this moment.
        """
        info = self.topic(topic)
        if info is None:
            raise self._unknown_topic(topic)
        before = {key: info.config[key] for key in _RETENTION if key in info.config}
        compacted_only = "delete" not in before["cleanup.policy"]
        if compacted_only:
            self.alter_topic(topic, _KEEP_ALL)
        try:
            self.delete_records(topic, dict.fromkeys(range(info.partitions), _TO_THE_END))
        finally:
            if compacted_only:
                self.alter_topic(topic, before)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of these partitions that are before an offset."""
        places = [TopicPartition(topic, p, offset) for p, offset in before.items()]
        futures = self._client.delete_records(places, request_timeout=self._timeout)
        for future in futures.values():
            self._result(future, f'to delete records of topic "{topic}"', topic)

    def record_limit(self, topic: str) -> int | None:
        """Most bytes that a record of the topic may have, or None when that is not known."""
        info = self.topic(topic)
        limit = None if info is None else info.config.get("max.message.bytes")
        return None if limit is None else int(limit)

    # -- offsets

    def begin_offsets(self, topic: str) -> dict[int, int]:
        """The first offset of each partition."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, topic: str, committed: bool = True) -> dict[int, int]:
        """The offset behind the last record of each partition.

        With `committed`, behind the last one that no open transaction holds back.
        """
        return self._offsets(topic, OffsetSpec.latest(), committed)  # type: ignore[no-untyped-call]

    def all_begin_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The first offsets by topic; a topic that is not there is left out."""
        return self._offsets_of_all(topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def all_end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offsets behind the last records by topic; a topic that is not there is left out."""
        return self._offsets_of_all(topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """The first offset of each partition with that time or a later one; else its end."""
        ends = self.end_offsets(topic)  # first: a record that comes meanwhile is not jumped over
        found = self._offsets(topic, OffsetSpec.for_timestamp(timestamp_ms))
        return {p: offset if offset >= 0 else ends[p] for p, offset in found.items()}

    def all_offsets_at(
        self, timestamp_ms: int, ends: Mapping[str, Offsets]
    ) -> dict[str, dict[int, int]]:
        """The first offsets with that time or a later one, by topic; where there is none, the end.

        `ends` are those of all topics that are asked about, taken before.
        """
        found = self._offsets_of_all(ends, OffsetSpec.for_timestamp(timestamp_ms))
        return {
            topic: {p: at if at >= 0 else ends[topic].get(p, 0) for p, at in offsets.items()}
            for topic, offsets in found.items()
        }

    def metadata_of(self, topic: str) -> Any:
        """What confluent_kafka says of a topic; UNKNOWN_TOPIC when there is none."""
        found = self._metadata().topics.get(topic)
        if found is None:
            raise self._unknown_topic(topic)
        return found

    # -- groups

    def groups(self) -> list[str]:
        """Names of all consumer groups."""
        future = self._client.list_consumer_groups(request_timeout=self._timeout)
        result = self._result(future, "the list of groups")
        if not result.valid and result.errors:
            raise self.translated(result.errors[0], "the list of groups")
        return sorted(group.group_id for group in result.valid)

    def groups_of(self, topic: str, asked: Iterable[str]) -> list[str]:
        """Those of the groups that have committed an offset of the topic."""
        return [group for group in asked if self.group_offsets(group, topic)]

    def described_group(self, group: str) -> Any:
        """What confluent_kafka says of a group; raises its errors."""
        futures = self._client.describe_consumer_groups([group], request_timeout=self._timeout)
        return self._wait(futures[group])

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """What the group has committed of a topic, by partition; empty for an unknown group."""
        asked = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        return self._committed(group, asked).get(topic, {})

    def group_positions(self, group: str) -> dict[str, dict[int, int]]:
        """What the group has committed of all topics that are there."""
        topics = self._metadata().topics
        asked = [TopicPartition(t, p) for t, found in topics.items() for p in found.partitions]
        return self._committed(group, asked)

    def _committed(self, group: str, asked: list[TopicPartition]) -> dict[str, dict[int, int]]:
        act = f'the offsets of group "{group}"'
        try:
            found = self._group_client(group).committed(asked, self._timeout)
        except KafkaException as error:
            raise self.translated(error, act) from None
        committed: dict[str, dict[int, int]] = {}
        for position in found:
            if position.error is not None:
                raise self.translated(position.error, act, position.topic)
            if position.offset >= 0:
                committed.setdefault(position.topic, {})[position.partition] = position.offset
        return committed

    def commit_offsets(self, group: str, offsets: Mapping[str, Offsets]) -> None:
        """Commit for a group without members: the group makes its position known to all tools."""
        positions = [
            TopicPartition(topic, partition, offset)
            for topic, by_partition in offsets.items()
            for partition, offset in by_partition.items()
        ]
        if not positions:
            return
        act = f'offsets of group "{group}"'
        # a commit has no time limit of its own; many flows commit at the same time
        if time.monotonic() - self._answered_at > _ANSWERED_SECONDS:
            self._metadata()
        try:
            result = self._group_client(group).commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            raise self.translated(error, act) from None
        for position in result or ():
            if position.error is not None:
                raise self.translated(position.error, act, position.topic)

    def delete_group(self, group: str) -> None:
        """Forget the group's offsets; nothing happens when there is no such group."""
        futures = self._client.delete_consumer_groups([group], request_timeout=self._timeout)
        try:
            self._wait(futures[group])
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise self.translated(error, f'to delete group "{group}"') from None

    # -- inside

    def _group_client(self, group: str) -> Consumer:
        """A client of the group that never joins it.

        librdkafka's own calls for offsets of groups end the process when a broker that has just
        started is no coordinator yet: they use a group that only a consumer has.
        """
        with self._groups_lock:
            if group not in self._groups:
                settings = {"group.id": group, "isolation.level": "read_uncommitted"}
                self._groups[group] = Consumer(self._connection.client(**settings))
                if len(self._groups) > _GROUP_CLIENTS:
                    self._groups.popitem(last=False)[1].close()
            self._groups.move_to_end(group)
            return self._groups[group]

    def _partitions(self, topic: str) -> list[int]:
        return sorted(self.metadata_of(topic).partitions)

    def _metadata(self, timeout: float | None = None) -> Any:
        client = self._client
        try:
            metadata = client.list_topics(timeout=timeout or self._timeout)
        except KafkaException as error:
            self._begin_anew()
            raise self.translated(error, "to list its topics") from None
        finally:
            client.poll(0)  # hands librdkafka's log lines over
        if not metadata.brokers:  # a broker that its controller has shut out: it slept, say
            self._begin_anew()
            raise unreachable(self._connection.servers)
        self._answered_at = time.monotonic()
        return metadata

    def _begin_anew(self) -> None:
        """Use new clients: one that saw no broker for a moment may never find one again.

        (confluentinc/librdkafka#5301)
        """
        with self._groups_lock:
            self._client = AdminClient(self._connection.client())
            self._groups.clear()

    def _configs(self, names: list[str]) -> dict[str, dict[str, str]]:
        """Settings of these topics; one that is deleted meanwhile is left out."""
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        futures = self._client.describe_configs(resources, request_timeout=self._timeout)
        configs = {}
        for resource, future in futures.items():
            try:
                entries = self._wait(future)
            except KafkaException as error:
                if kafka_error(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self.translated(error, "the settings of topics") from None
            configs[resource.name] = {
                key: entry.value for key, entry in entries.items() if entry.value is not None
            }
        return configs

    def _offsets(self, topic: str, spec: OffsetSpec, committed: bool = True) -> dict[int, int]:
        asked = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        return self._list_offsets(asked, spec, committed).get(topic, {})

    def _offsets_of_all(self, topics: Iterable[str], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        wanted = set(topics)
        deadline = time.monotonic() + self._timeout
        while True:
            there = self._metadata().topics
            asked = [
                TopicPartition(topic, partition)
                for topic in sorted(wanted & there.keys())
                for partition in sorted(there[topic].partitions)
            ]
            try:
                return self._list_offsets(asked, spec) if asked else {}
            except MainstemError as error:
                # one of them was deleted between the two questions
                if error.code != "UNKNOWN_TOPIC" or time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_SECONDS)

    def _list_offsets(
        self, asked: list[TopicPartition], spec: OffsetSpec, committed: bool = True
    ) -> dict[str, dict[int, int]]:
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        topic = asked[0].topic if asked else ""
        act = f'the offsets of topic "{topic}"'
        deadline = time.monotonic() + self._timeout
        while True:
            futures = self._client.list_offsets(
                dict.fromkeys(asked, spec),
                isolation_level=isolation,
                request_timeout=self._timeout,
            )
            try:
                found: dict[str, dict[int, int]] = {}
                for place in sorted(futures, key=lambda p: (p.topic, p.partition)):
                    offset = self._wait(futures[place]).offset
                    found.setdefault(place.topic, {})[place.partition] = offset
                return found
            except KafkaException as error:
                # a topic that was made a moment ago, or whose broker has just come back
                leaderless = kafka_error(error).code() in _LEADERLESS
                if not leaderless or time.monotonic() > deadline:
                    raise self.translated(error, act, topic) from None
            time.sleep(_POLL_SECONDS)

    def _has_leaders(self, name: str, partitions: int) -> bool:
        found = self._metadata().topics.get(name)
        return (
            found is not None
            and len(found.partitions) >= partitions
            and all(partition.leader >= 0 for partition in found.partitions.values())
        )

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        while not condition():
            if time.monotonic() > deadline:
                raise unreachable(self._connection.servers)
            time.sleep(_POLL_SECONDS)

    def _wait(self, future: Future[T]) -> T:
        try:
            return future.result(self._timeout + 1)
        except TimeoutError:
            raise unreachable(self._connection.servers) from None
        finally:
            self._client.poll(0)

    def _result(self, future: Future[T], act: str, topic: str | None = None) -> T:
        try:
            return self._wait(future)
        except KafkaException as error:
            raise self.translated(error, act, topic) from None

    def translated(
        self, error: KafkaException | KafkaError, act: str, topic: str | None = None
    ) -> MainstemError:
        """An error of Kafka in our words."""
        return translate(error, act, servers=self._connection.servers, topic=topic)

    def _unknown_topic(self, topic: str) -> MainstemError:
        known = [n for n in self._metadata().topics if not n.startswith("_")]
        return MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion=did_you_mean(topic, known))


_TO_THE_END = -1
_RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes")
_KEEP_ALL = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}


def _info(metadata: Any, config: Mapping[str, str]) -> TopicInfo:
    replicas = [len(partition.replicas) for partition in metadata.partitions.values()]
    return TopicInfo(metadata.topic, len(replicas), min(replicas, default=0), config)
