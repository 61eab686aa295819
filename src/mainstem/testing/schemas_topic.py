"""A schema registry without Kafka: its topic is a list, which several registries may follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mainstem.errors import MainstemError
from mainstem.schemas.registry import Registry
from mainstem.schemas.topic_records import Value

Listener = Callable[[str, Value | None], None]


class MemoryTopic:
    """The records of a topic: keys and values, in order.

    `before_write` is called once, before the next write: a crash or a quicker writer goes there.
    """

    def __init__(self, *records: tuple[str, Value | None]) -> None:
        self.records = list(records)
        self.before_write: Callable[[], object] = lambda: None

    def open_log(self, listener: Listener) -> MemoryLog:
        """A follower, for a registry to be started later."""
        return MemoryLog(self, listener)

    def registry(self) -> Registry:
        """A registry that has read the topic."""
        made = Registry(self.open_log)
        made.start()
        return made

    def spelled(self) -> list[str]:
        """The keys of all records."""
        return [key for key, _ in self.records]

    def compacted(self) -> MemoryTopic:
        """The topic as Kafka may leave it: the last record of each key, no deletions."""
        last = {key: index for index, (key, _) in enumerate(self.records)}
        return MemoryTopic(
            *(
                (key, value)
                for index, (key, value) in enumerate(self.records)
                if last[key] == index and value is not None
            )
        )


class MemoryLog:
    """One follower of a topic; a `RegistryLog`."""

    def __init__(self, topic: MemoryTopic, listener: Listener) -> None:
        self._topic = topic
        self._listener = listener
        self._position = 0

    def start(self) -> None:
        """Read everything."""
        self.catch_up()

    def close(self) -> None:
        """Nothing is held."""

    def catch_up(self) -> int:
        """Announce what is new."""
        while self._position < len(self._topic.records):
            key, value = self._topic.records[self._position]
            self._position += 1
            self._listener(key, value)
        return self._position

    def replace(self, changes: Mapping[str, Value | None], expected_offset: int) -> int:
        """Write all changes; STALE_PLAN when something was written since the offset."""
        before, self._topic.before_write = self._topic.before_write, lambda: None
        before()
        if len(self._topic.records) != expected_offset:
            actual = len(self._topic.records)
            raise MainstemError("STALE_PLAN", planned=expected_offset, actual=actual)
        self._topic.records += changes.items()
        return self.catch_up()
