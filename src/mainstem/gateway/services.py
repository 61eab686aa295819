"""Everything that a request may need, put together once per process, and its life.

The log or PostgreSQL may be away, at the start as well as later. `start` returns at once; a thread
waits for the log, reads the catalog and lets the views begin. Until then requests that need the
catalog are told that the log does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from starlette.requests import Request

from mainstem.catalog.entry import Catalog
from mainstem.config import Settings
from mainstem.connect.listening.running import Log
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.plugins import FOLDER as PLUGINS
from mainstem.connect.plugins import AllowedPlugins
from mainstem.connect.secrets import Secrets
from mainstem.definitions.model import Kind
from mainstem.errors import MainstemError
from mainstem.gateway.aggregates import Aggregates
from mainstem.gateway.backfills import Backfills
from mainstem.gateway.changes import Changes
from mainstem.gateway.connectors import Connectors, ConnectPlace, LogTopics, keeper_of
from mainstem.gateway.contracts import hidden
from mainstem.gateway.engine import Engine
from mainstem.gateway.listeners import Listeners
from mainstem.gateway.members import Members
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.pulled import Pulled
from mainstem.gateway.quarantine import Quarantine
from mainstem.gateway.quarantine_follower import QuarantineFollower
from mainstem.gateway.receipts import Once
from mainstem.gateway.replay import Replay
from mainstem.gateway.schema_follower import SchemaFollower
from mainstem.gateway.source_follower import SourceFollower
from mainstem.gateway.sql import Statements
from mainstem.gateway.status import flow_statuses, rule_statuses
from mainstem.gateway.taken_in import TakenIn
from mainstem.gateway.writer import Writer
from mainstem.log.admin import Admin
from mainstem.log.catalog_store import CatalogStore, LogExecutor, LogFactsReader
from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.log.groups import Groups
from mainstem.log.ledger import Ledger
from mainstem.log.requests import Caller
from mainstem.log.status_log import status_log
from mainstem.schemas.codec import Codec
from mainstem.schemas.defined import DefinedSchemas
from mainstem.schemas.external import ExternalRegistry
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.registry import Registry, topic_log
from mainstem.schemas.source import SchemaSource
from mainstem.views.materialise import Materialiser
from mainstem.views.pull import Pull
from mainstem.views.push import LogAndViews, Push
from mainstem.views.readers import Readers
from mainstem.vocabulary import SystemClock

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0
_HEALTH_SECONDS = 2.0
_THREADS = 40


@dataclass(frozen=True, slots=True)
class GatewaySetup:
    """Where the gateway finds the others."""

    settings: Settings
    connection: Connection
    postgres_url: str
    postgres_reader_url: str
    project: Path = Path()
    """Folder of the project, which secrets in files are relative to."""
    connect: ConnectPlace | None = None
    """None: there is no Kafka Connect."""
    name: str = ""
    """Of this gateway among others of the same log."""
    state: Path = Path(".mainstem")
    """Folder for copies of what the log holds."""


class _Part(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


class Services:
    """The parts of the gateway. Made outside the event loop, opened and closed inside it."""

    def __init__(self, setup: GatewaySetup) -> None:
        settings = setup.settings
        self.settings = settings
        self.project = setup.project
        self.connection = setup.connection
        self.admin = Admin(setup.connection)
        self.writer = Writer(setup.connection, setup.name)
        self.ledger = Ledger(
            setup.connection, self.admin, setup.state, settings.kafka.replication_factor
        )
        self.groups = Groups(self.admin)
        self.members = Members(setup.connection, self.admin)
        self.once = Once(self.writer, self.ledger, SystemClock())
        self._caller = Caller(setup.connection)
        self.engine = Engine(self._caller)
        self._store = CatalogStore(setup.connection)
        self._statuses: StateLog[dict[str, Any]] = status_log(setup.connection)
        self._catalog: Catalog | None = None
        self._quarantined = QuarantineFollower(
            setup.connection, self.admin, settings.kafka.replication_factor
        )
        self.quarantine = Quarantine(
            setup.connection, self.admin, self._quarantined, lambda: hidden(self.catalog())
        )
        self.replay = Replay(
            setup.connection,
            self.admin,
            self.engine,
            self.quarantine,
            self._quarantined,
            self.catalog,
        )
        schemas, replicas = settings.schemas, settings.kafka.replication_factor
        self.registry: Registry | None = None
        """Our own; None when the project uses another."""
        self._elsewhere: ExternalRegistry | None = None
        source: SchemaSource
        if schemas.registry:
            source = self._elsewhere = ExternalRegistry.from_settings(schemas)
        else:
            source = self.registry = Registry(topic_log(setup.connection, schemas.topic, replicas))
        self.schema_source = source
        self.schemas = KnownSchemas(source)
        self.codec = Codec(self.schemas)
        self.aggregates = Aggregates(
            setup.connection, self.admin, self.ledger, self.codec, SystemClock()
        )
        self.materialiser = Materialiser(
            setup.connection,
            self.admin,
            setup.postgres_url,
            setup.postgres_reader_url,
            self.codec,
        )
        query = settings.query
        self.readers = Readers(setup.postgres_reader_url, query.timeout_seconds)
        self.pull = Pull(self.readers, query.max_rows, self.materialiser.ends_of)
        self.taken_in = TakenIn(
            self.catalog, self.admin, self.pull.positions, query.timeout_seconds
        )
        self.push = Push(
            LogAndViews(setup.connection, self.admin, self.readers, self.codec),
            lambda name: self.catalog().get(name),
        )
        secrets = Secrets(setup.project, os.environ)
        keeper = None
        if setup.connect is not None:
            topics = LogTopics(self.admin, replicas, setup.connection)
            keeper = keeper_of(
                settings.name,
                self.catalog,
                setup.connect,
                topics,
                secrets,
                setup.connection.java_options(),
            )
        listeners = Listeners(self.catalog, Log(setup.connection, self.writer), secrets)
        elsewhere = setup.connect is None or setup.connect.local is None
        plugins = AllowedPlugins(
            None if elsewhere else setup.project / PLUGINS, settings.connect.classes
        )
        self.connectors = Connectors(self.catalog, keeper, listeners, self.statuses, plugins)
        executor = LogExecutor(self.admin, self._store, settings.kafka)
        planned = PlannedConnectors(
            secrets,
            self.connectors.capture_of,
            self.connectors.check_target,
            self.connectors.runs,
            self.engine.look,
        )
        self.backfills = Backfills(
            self.catalog,
            executor,
            self.admin,
            lambda: flow_statuses(self),
            planned.check_rebuild,
        )
        self.changes = Changes(
            self._store,
            executor,
            self.engine,
            LogFactsReader(self.admin),
            DefinedSchemas(source),
            planned,
            target=f"{settings.name} ({setup.connection.servers})",
        )
        self._schema_follower = SchemaFollower(self.catalog, source, self.changes.follow)
        self._source_follower = SourceFollower(self.catalog, self.statuses, self.changes.grow)
        self.metrics = Metrics(
            lambda: flow_statuses(self),
            self.materialiser.progress,
            lambda: self.quarantine.status()["objects"],
            lambda: rule_statuses(self),
            self.connectors.all,
        )
        self.statements = Statements(
            catalog=self.catalog,
            changes=self.changes,
            backfills=self.backfills,
            engine=self.engine,
            writer=self.writer,
            codec=self.codec,
            admin=self.admin,
            pulled=Pulled(self.catalog, self.pull, self.taken_in),
            statuses=lambda: flow_statuses(self),
            connectors=self.connectors.all,
            broken=self.broken,
            index_states=self.materialiser.index_states,
            max_rows=query.max_rows,
            timeout_seconds=query.timeout_seconds,
            read_only=settings.gateway.read_only,
        )
        self._stop = threading.Event()
        self._starter = threading.Thread(target=self._begin, name="gateway-start", daemon=True)

    # -- life

    async def open(self) -> None:
        """Begin; nothing that is away is waited for."""
        # requests to the engine and the log wait in these threads, some of them for long
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="work")
        )
        await self.readers.open()
        self._starter.start()

    async def close(self) -> None:
        """End: subscriptions first, then the views, then what they stand on."""
        self.push.stop()
        self.members.stop()
        self.push.close()
        self._stop.set()
        await asyncio.to_thread(self._close_blocking)
        await self.readers.close()

    def _close_blocking(self) -> None:
        if self._starter.is_alive():
            self._starter.join()
        self.members.close()
        self._schema_follower.close()
        self._source_follower.close()
        self.connectors.close()
        self.materialiser.stop()
        for part in (self._quarantined, self._caller, self._statuses, self._store, self.writer):
            part.close()
        self.ledger.close()
        for registry in (self.registry, self._elsewhere):
            if registry is not None:
                registry.close()
        self.admin.close()

    def _begin(self) -> None:
        told = False
        while not self._stop.is_set():
            try:
                self.admin.ping(_HEALTH_SECONDS)
                break
            except MainstemError as error:
                if not told:
                    _LOG.warning("waiting for the log: %s", error.message)
                    told = True
                self._stop.wait(_RETRY_SECONDS)
        if told and not self._stop.is_set():
            _LOG.info("the log answers")
        parts: list[_Part] = [self._caller, self._statuses, self._store, self._quarantined]
        if self.registry is not None:
            parts.append(self.registry)
        for part in parts:
            self._start(part)
        if self._stop.is_set():
            return
        self._store.on_change(self._refresh)
        self._refresh()
        self.materialiser.start()
        self._schema_follower.start()
        self._source_follower.start()
        self.connectors.start()
        _LOG.info("catalog read at revision %d", self.catalog().revision)

    def _start(self, part: _Part) -> None:
        while not self._stop.is_set():
            try:
                part.start()
            except MainstemError as error:
                _LOG.warning("waiting for the log: %s", error.message)
                self._stop.wait(_RETRY_SECONDS)
            else:
                return

    def _refresh(self) -> None:
        self._catalog = self._store.catalog()
        self.connectors.listeners.wake()
        self.materialiser.reconcile(self._catalog)

    # -- what is known now

    def catalog(self) -> Catalog:
        """The catalog as last read; LOG_UNREACHABLE before it was read for the first time."""
        catalog = self._catalog
        if catalog is None:
            raise MainstemError("LOG_UNREACHABLE", servers=self.connection.servers)
        return catalog

    def statuses(self) -> dict[str, dict[str, Any]]:
        """The status topic: the latest word of each flow, and of the engine."""
        return self._statuses.items()

    def broken(self, name: str) -> Mapping[str, int]:
        """By rule, how many records or rows have broken it.

        Those of a declared table are counted by its view. A derived one that is computed anew has
        all its rows judged anew: what an earlier flow has counted is not added.
        """
        entry = self.catalog().get(name)
        if entry is not None and entry.definition.kind is Kind.TABLE and entry.definition.derived:
            return self.quarantine.broken(name, entry.flow_id)
        return self.materialiser.broken(name) or self.quarantine.broken(name)

    async def health(self) -> dict[str, dict[str, Any]]:
        """What the gateway needs, and whether it is there."""
        log, postgres = await asyncio.gather(
            _check(asyncio.to_thread(self.admin.ping, _HEALTH_SECONDS)),
            _check(asyncio.wait_for(self.readers.ping(), _HEALTH_SECONDS)),
        )
        ready = self._catalog is not None
        return {
            "log": log,
            "postgres": postgres,
            "catalog": {"ok": ready, "problem": None if ready else "not read yet"},
        }


async def _check(asking: Any) -> dict[str, Any]:
    try:
        await asking
    except MainstemError as error:
        return {"ok": False, "problem": error.message}
    except TimeoutError:
        return {"ok": False, "problem": f"no answer within {_HEALTH_SECONDS:g} s"}
    return {"ok": True, "problem": None}


def services(request: Request) -> Services:
    """The services of the application that a request came to."""
    found: Services = request.app.state.services
    return found
