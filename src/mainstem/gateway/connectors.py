"""The connectors of sources, as people see and command them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.brought import tables_of
from mainstem.connect.capture import Capture
from mainstem.connect.captures import capture_of
from mainstem.connect.care import Care, Surroundings
from mainstem.connect.carrier import Wanted
from mainstem.connect.carriers import carrier_of, is_carried
from mainstem.connect.catalogue import spec_of
from mainstem.connect.client import ConnectClient
from mainstem.connect.keeper import Keeper
from mainstem.connect.kept_secrets import KeptSecrets
from mainstem.connect.local_worker import LocalWorker, Worker, WorkerElsewhere
from mainstem.connect.on_spark import runs_on_spark
from mainstem.connect.plugin_config import PluginCapture, between_topic
from mainstem.connect.plugins import NONE_ALLOWED, AllowedPlugins
from mainstem.connect.secrets import Secrets
from mainstem.connect.source_transforms import told_columns
from mainstem.connect.spec import Role
from mainstem.connect.targets.target import check_target
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.transforms import Transform
from mainstem.errors import MainstemError, did_you_mean
from mainstem.gateway.connector_shown import connector_shown, flow_shown, not_run
from mainstem.gateway.listeners import Listeners
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer

_HEARTBEATS_MS = "3600000"
_FOREVER = "-1"
_BY_CLASS = "connect"


@dataclass(frozen=True, slots=True)
class ConnectPlace:
    """Where Kafka Connect is."""

    url: str
    user: str
    password: str
    secrets: Path
    """Folder in which its workers find the passwords of connectors."""
    local: Path | None
    """Folder of the stack's own worker; None: a cluster elsewhere."""


def wanted_sources(catalog: Catalog) -> dict[str, Wanted]:
    """The sources and sinks that Kafka Connect carries, by name in small letters."""
    found = {entry.name.lower(): wanted for entry, wanted in _wanted_sinks(catalog)}
    for entry in catalog.of_kind(Kind.SOURCE):
        captures = entry.definition.captures
        if captures is None or not is_carried(captures.connector):
            continue
        topics = sorted(
            other.definition.topic
            for other in catalog.entries.values()
            if other.definition.source == entry.name and other.definition.query is None
        )
        found[entry.name.lower()] = Wanted(
            name=entry.name,
            identity=entry.generation,
            connector=captures.connector,
            options=dict(captures.options),
            columns=told_columns(entry.definition),
            tables=tuple(tables_of(entry.name, topics)),
            topics=tuple(topics),
            paused=entry.paused,
            location=entry.definition.location,
        )
    return found


def _wanted_sinks(catalog: Catalog) -> Iterator[tuple[Entry, Wanted]]:
    for entry in catalog.entries.values():
        target = entry.definition.target
        if target is not None and is_carried(target.connector):
            yield (
                entry,
                Wanted(
                    name=entry.name,
                    identity=entry.generation,
                    connector=target.connector,
                    options=dict(target.options),
                    topics=(between_topic(entry.flow_id),),
                    paused=entry.paused,
                    location=entry.definition.location,
                    role=Role.SINK,
                ),
            )


class LogTopics:
    """The log, as those who look after connectors need it."""

    def __init__(self, admin: Admin, replicas: int, connection: Connection) -> None:
        self._admin = admin
        self._replicas = replicas
        self._connection = connection

    def make(self, topic: str, *, forever: bool) -> None:
        """One partition: it takes a record every few seconds at most."""
        kept = _FOREVER if forever else _HEARTBEATS_MS
        config = {"cleanup.policy": "delete", "retention.ms": kept, "retention.bytes": _FOREVER}
        self._admin.ensure_topic(TopicSpec(topic, 1, self._replicas, config))

    def remove(self, topic: str) -> None:
        """Harmless when it is not there."""
        self._admin.delete_topic(topic)

    def forget(self, topic: str, before: Mapping[int, int]) -> None:
        """Harmless when they are not there."""
        self._admin.delete_records(topic, before)

    def written(self, topics: Sequence[str]) -> int:
        """The sum of their ends."""
        ends = self._admin.all_end_offsets(topics)
        return sum(sum(partitions.values()) for partitions in ends.values())

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Rare: so there is a producer for each."""
        producer = Producer(self._connection)
        try:
            producer.send(topic, [Outgoing(key, value, partition=0)])
        finally:
            producer.close()

    def read(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """Nothing, while the topic is not there."""
        end = self._admin.all_end_offsets([topic]).get(topic, {}).get(0, 0)
        if end <= start:
            return [], start
        batches = read_range(self._connection, topic, {0: start}, {0: end})
        return [record.value for batch in batches for record in batch if record.value], end


class Connectors:
    """All connectors of the project. Without Kafka Connect, sources are shown with that error."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        keeper: Keeper | None,
        listeners: Listeners,
        statuses: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
        plugins: AllowedPlugins = NONE_ALLOWED,
    ) -> None:
        """`statuses` has the latest word of each flow; `plugins` may be named by their class."""
        self._catalog = catalog
        self._keeper = keeper
        self.listeners = listeners
        """Those that run in the gateway."""
        self._statuses = statuses
        self._plugins = plugins

    def start(self) -> None:
        """Begin to keep them in step with the catalog; returns at once."""
        self.listeners.start()
        if self._keeper is not None:
            self._keeper.start()

    def close(self) -> None:
        """End; safe to call twice, and before `start`."""
        self.listeners.close()
        if self._keeper is not None:
            self._keeper.close()

    def all(self) -> list[dict[str, Any]]:
        """Every connector, those too that are being removed."""
        if self._keeper is None:
            carried = [not_run(source, _not_given()) for source in self._sources().values()]
        else:
            cares = self._keeper.cares().items()
            carried = [connector_shown(name, care) for name, care in cares]
        others = [*self.listeners.all(), *self._of_engine().values()]
        return sorted(carried + others, key=lambda one: str(one["name"]).lower())

    def capture_of(self, connector: str) -> Capture:
        """What looks into the systems of a connector; CONNECT_NOT_GIVEN if nobody carries it."""
        if self._keeper is None and is_carried(connector):
            raise _not_given()
        return PluginCapture(self._plugins) if connector == _BY_CLASS else capture_of(connector)

    def check_target(
        self,
        connector: str,
        options: Mapping[str, Any],
        read: Definition,
        transforms: Sequence[Transform],
    ) -> None:
        """Refuse a sink's target that cannot take the rows, or that nobody carries."""
        if is_carried(connector):
            if self._keeper is None:
                raise _not_given()
            self._plugins.check(options["class"])
        check_target(connector, options, read, transforms)

    def runs(self, name: str) -> bool:
        """True while there is a connector of that source, or may be: one that is being removed."""
        return self._keeper is not None and name.lower() in self._keeper.cares()

    def worker(self) -> dict[str, Any]:
        """How Kafka Connect itself is."""
        if self._keeper is None:
            return {"state": "none", "url": None, "problem": None}
        word, problem = self._keeper.worker, self._keeper.problem
        return {
            "state": word.state,
            "url": self._keeper.url,
            "problem": word.problem or (problem.message if problem is not None else None),
        }

    def one(self, name: str) -> dict[str, Any]:
        """One connector."""
        found = self.listeners.one(name) or self._of_engine().get(name.lower())
        if found is not None:
            return found
        if self._keeper is None:
            source = self._sources().get(name.lower())
            if source is None:
                raise MainstemError("CONNECTOR_UNKNOWN", name=name, suggestion="")
            return not_run(source, _not_given())
        return connector_shown(name, self._keeper.care(name))

    def restart(self, name: str, *, only_failed: bool) -> dict[str, Any]:
        """Start it and its tasks again, at once."""
        if self.listeners.one(name) is not None:
            self.listeners.restart(name)
            return self.one(name)
        self._kept(name).restart(only_failed=only_failed)
        return self.one(name)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """How far it has come, in the words of its plugin."""
        return self._kept(name).offsets()

    def reset_offsets(self, name: str) -> None:
        """Let it begin anew when it is resumed; it has to be paused."""
        self._kept(name).reset_offsets()

    def snapshot(self, name: str, tables: Sequence[str]) -> list[str]:
        """Have rows of some tables read once more, or of all but an outbox, whose events would be
        sent twice; gives which.
        """
        care = self._kept(name)
        if care.wanted is None:
            raise MainstemError("CONNECTOR_UNKNOWN", name=name, suggestion="")
        known = care.wanted.tables
        outbox = care.wanted.options.get("outbox")
        others = [one for one in known if outbox not in (one, one.partition(".")[2])]
        chosen = [_named(table, known, care.wanted.name) for table in tables] or others
        care.snapshot(chosen)
        return chosen

    def forget(self, name: str) -> None:
        """Remove a dropped source's connector, though what it left behind cannot be removed."""
        care = self._kept(name)
        if care.wanted is not None:
            raise MainstemError("CONNECTOR_WANTED", name=care.wanted.name)
        care.leave()

    def _kept(self, name: str) -> Care:
        if self.listeners.one(name) is not None:
            raise MainstemError("CONNECTOR_OF_GATEWAY", name=name)
        if name.lower() in self._of_engine():
            raise MainstemError("CONNECTOR_OF_ENGINE", name=name)
        if self._keeper is None:
            raise _not_given()
        return self._keeper.care(name)

    def _of_engine(self) -> dict[str, dict[str, Any]]:
        """The sources that run there, by name in small letters."""
        try:
            catalog = self._catalog()
        except MainstemError:
            return {}
        said = self._statuses()
        return {
            entry.name.lower(): flow_shown(catalog, entry, said.get(entry.name, {}))
            for entry in catalog.of_kind(Kind.SOURCE)
            if entry.definition.captures is not None
            and runs_on_spark(entry.definition.captures.connector)
        }

    def _sources(self) -> Mapping[str, Wanted]:
        try:
            return wanted_sources(self._catalog())
        except MainstemError:
            return {}


def _named(table: str, known: Sequence[str], source: str) -> str:
    """A captured table by its name, with schema or without."""
    found = [one for one in known if table in (one, one.partition(".")[2])]
    if len(found) != 1:
        raise MainstemError(
            "NOT_CAPTURED",
            name=source,
            table=table,
            known=", ".join(known),
            suggestion=did_you_mean(table, known),
        )
    return found[0]


def keeper_of(
    project: str,
    catalog: Callable[[], Catalog],
    at: ConnectPlace,
    topics: LogTopics,
    secrets: Secrets,
    clients: Mapping[str, str],
) -> Keeper:
    """What keeps the connectors of a project in step with its catalog."""

    def resolve(wanted: Wanted) -> dict[str, Any]:
        return spec_of(wanted.role, wanted.connector).resolve(wanted.options, secrets)

    worker: Worker = WorkerElsewhere() if at.local is None else LocalWorker(at.local)
    surroundings = Surroundings(
        ConnectClient(at.url, at.user, at.password, mask=secrets.mask),
        KeptSecrets(at.secrets),
        carrier_of,
        resolve,
        secrets.mask,
        topics,
        clients,
    )
    return Keeper(project, lambda: wanted_sources(catalog()), surroundings, worker)


def _not_given() -> MainstemError:
    reason = "the log's settings are not those of a local worker"
    return MainstemError("CONNECT_NOT_GIVEN", reason=reason)
