"""A log in memory, as far as the routes for records, groups and aggregates see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from mainstem.errors import MainstemError
from mainstem.log.admin import TopicInfo
from mainstem.log.delivery import Place
from mainstem.log.groups import Group, GroupMember, Lag, Part
from mainstem.log.ledger import Decide
from mainstem.log.producer import Outgoing
from mainstem.log.state_store import Kept
from mainstem.vocabulary import Record

PARTITIONS = 2


class MemoryLog:
    """Topics by name; as a writer, an admin, and what a reader reads."""

    def __init__(self, *topics: str) -> None:
        self.topics_: dict[str, list[list[Record]]] = {
            name: [[] for _ in range(PARTITIONS)] for name in topics
        }

    # -- writer

    def place(self, topic: str, records: Sequence[Outgoing]) -> list[Place]:
        places = []
        for record in records:
            name = record.topic or topic
            number = len(record.key or b"") % PARTITIONS
            if record.partition is not None:
                number = record.partition
            if name not in self.topics_ or number >= PARTITIONS:
                raise MainstemError("UNKNOWN_TOPIC", topic=name, suggestion="")
            part = self.topics_[name][number]
            place = Place(name, number, len(part))
            part.append(Record(*place, record.key, record.value, 0, record.headers))
            places.append(place)
        return places

    def write(self, topic: str, records: Sequence[Outgoing]) -> dict[int, int]:
        return {place.partition: place.offset for place in self.place(topic, records)}

    # -- admin

    def metadata_of(self, topic: str) -> Any:
        self._parts(topic)
        part = SimpleNamespace(leader=1, replicas=[1], isrs=[1])
        return SimpleNamespace(partitions=dict.fromkeys(range(PARTITIONS), part))

    def topics(self, internal: bool = False) -> list[TopicInfo]:
        return [info for name in sorted(self.topics_) if (info := self.topic(name))]

    def topic(self, name: str) -> TopicInfo | None:
        known = name in self.topics_
        return TopicInfo(name, PARTITIONS, 1, {"cleanup.policy": "delete"}) if known else None

    def topic_id(self, name: str) -> str:
        self._parts(name)
        return f"id-of-{name}"

    def cluster_id(self) -> str:
        return "one"

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return dict.fromkeys(range(len(self._parts(topic))), 0)

    def end_offsets(self, topic: str, committed: bool = True) -> dict[int, int]:
        return {n: len(part) for n, part in enumerate(self._parts(topic))}

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        return self.begin_offsets(topic)

    def all_begin_offsets(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        return {name: self.begin_offsets(name) for name in topics}

    def all_end_offsets(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        return {name: self.end_offsets(name) for name in topics}

    def groups(self) -> list[str]:
        return ["billing", "mainstem.home.1"]

    def groups_of(self, topic: str, asked: list[str]) -> list[str]:
        return list(asked)

    def delete_group(self, group: str) -> None:
        """Nothing is kept of groups."""

    def _parts(self, topic: str) -> list[list[Record]]:
        if topic not in self.topics_:
            raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
        return self.topics_[topic]


class MemoryGroups:
    """One group."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def parts(self, topic: str) -> list[Part]:
        return [Part(number, 1, [1], [1]) for number in self._log.begin_offsets(topic)]

    def one(self, name: str) -> Group:
        if name not in self._log.groups():
            raise MainstemError("GROUP_UNKNOWN", group=name, suggestion="")
        return Group(name, "stable", "range", 1, [GroupMember("m", "c", "h", [("clicks", 0)])])

    def lags(self, name: str) -> list[Lag]:
        return [Lag("clicks", 0, 0, self._log.end_offsets("clicks")[0])]


class MemoryLedger:
    """Entries in a dictionary."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.entries: dict[bytes, Kept] = {}

    def write(self, key: bytes, decide: Decide) -> list[Place] | None:
        writing = decide(lambda keys: self.look(key, keys))
        if writing is None:
            return None
        places = self._log.place("", writing.records)
        self.entries |= writing.entries(places)
        return places

    def look(self, key: bytes, keys: Sequence[bytes]) -> Mapping[bytes, Kept]:
        return {each: self.entries[each] for each in keys if each in self.entries}


class MemoryConsumer:
    """A member that has all partitions of its topics."""

    log: MemoryLog

    def __init__(self, _: Any, group: str, topics: Sequence[str], *more: Any) -> None:
        self._topics = list(topics)
        self._at: dict[tuple[str, int], int] = {}
        self._done: dict[tuple[str, int], int] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        self._topics = list(topics)
        self._at.clear()

    def poll(self, limit: int, timeout: float) -> list[Record]:
        found = []
        for topic, numbers in self.assignment().items():
            for number in numbers:
                at = self._at.get((topic, number), 0)
                some = self.log.topics_[topic][number][at : at + limit - len(found)]
                found += some
                self._at[topic, number] = at + len(some)
        return found

    def assignment(self) -> dict[str, list[int]]:
        return {topic: list(range(PARTITIONS)) for topic in self._topics}

    def positions(self) -> dict[tuple[str, int], int]:
        return dict(self._at)

    def commit(self) -> None:
        self.commit_at(self._at)

    def commit_at(self, positions: Mapping[tuple[str, int], int]) -> None:
        self._done |= positions

    def committed(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {place: self._done[place] for place in places if place in self._done}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._at[topic, partition] = offset

    def close(self) -> None:
        """Nothing to end."""


class MemoryReader:
    """Reads what is there."""

    log: MemoryLog

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at: dict[str, dict[int, int]] = {}

    def add(self, topic: str, offsets: dict[int, int]) -> None:
        self._at[topic] = dict(offsets)

    def remove(self, topic: str) -> None:
        del self._at[topic]

    def step(self, most: int, timeout: float) -> list[Record]:
        found = []
        for topic, offsets in self._at.items():
            for partition, offset in offsets.items():
                part = self.log.topics_[topic][partition]
                found += part[offset:]
                offsets[partition] = len(part)
        return found

    def positions(self) -> dict[str, dict[int, int]]:
        return self._at

    def close(self) -> None:
        """Nothing to end."""
