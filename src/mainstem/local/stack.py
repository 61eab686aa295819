"""The whole local stack of a project: started in order, kept alive, stopped in order.

    with Stack(project) as stack:
        print(stack.endpoints.gateway_url)
        stack.wait()

Two stages: first broker and PostgreSQL, then engine and gateway; the parts of a stage start side
by side. The Connect worker comes when a source asks for it (`on_demand`). Addresses go to the
children in their environment (see `endpoints`). In the profile "cluster", or where the settings
name a server, that server is not started but used.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, get_args

from pydantic import SecretStr

from mainstem.config import Project
from mainstem.local.broker import Broker
from mainstem.local.class_archive import Archiving, broker_archive, class_archive, to_be_made
from mainstem.local.connect import FOLDER, SECRETS, USER, local_worker, rest_password
from mainstem.local.disk import check_disk, free_megabytes, needed_megabytes
from mainstem.local.endpoints import ConnectAddress, Endpoints
from mainstem.local.given import broker_problem, postgres_address, postgres_problem
from mainstem.local.jars import jars, spark_jars
from mainstem.local.java import find_java, home_for_spark
from mainstem.local.on_demand import OnDemand
from mainstem.local.part import Part
from mainstem.local.ports import LOOPBACK, Ports
from mainstem.local.postgres import DATABASE, OWNER, READER, Postgres
from mainstem.local.private_files import make_private_folder, writing_to
from mainstem.local.run_file import PostgresInfo, RunInfo, RunLock
from mainstem.local.services import Engine, Gateway
from mainstem.local.supervise import Event, Listener, Supervised
from mainstem.log.connection import Connection

PartName = Literal["broker", "postgres", "engine", "gateway", "connect"]
ALL_PARTS: frozenset[PartName] = frozenset(get_args(PartName))
_STAGES: tuple[tuple[PartName, ...], ...] = (("broker", "postgres"), ("engine", "gateway"))
_DISK_LOOK_EVERY = 10.0
_LOOK_SECONDS = 1.0


class Stack:
    """A context manager around the running servers of one project.

    The listener gets every event of the stack, from any thread. Leaving the context, by an
    exception too, ends all servers; so does the death of this process.
    """

    def __init__(
        self,
        project: Project,
        parts: Collection[PartName] = ALL_PARTS,
        listener: Listener = lambda event: None,
    ) -> None:
        self.project = project
        self._wanted = frozenset(parts) - _given_by_address(project)
        self._listener = listener
        self._logs = project.state_folder / "logs"
        self._lock = RunLock(project)
        self._supervised: dict[str, Supervised] = {}
        self._endpoints: Endpoints | None = None
        self._on_demand: OnDemand | None = None
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._archives: list[Path] = []

    @property
    def endpoints(self) -> Endpoints:
        """Addresses of the running stack."""
        if self._endpoints is None:
            raise RuntimeError("the stack has not been started")
        return self._endpoints

    @property
    def restarts(self) -> dict[str, int]:
        """How often each part has been restarted."""
        return {name: item.restarts for name, item in self._all().items()}

    def pid(self, part: PartName) -> int | None:
        """Process id of a part's server, while it runs."""
        found = self._all().get(part)
        return found.pid if found is not None else None

    def _all(self) -> dict[str, Supervised]:
        worker = self._on_demand.running if self._on_demand is not None else None
        return {**self._supervised, **({"connect": worker} if worker is not None else {})}

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts; when one fails, those that run are stopped and its error is raised.

        Servers that are given by address are waited for, however long that takes.
        """
        with writing_to(self.project.state_folder):
            self._start()

    def _start(self) -> None:
        folder = self.project.state_folder
        make_private_folder(folder)
        check_disk(folder)
        keep = self._lock.take(
            lambda: self._listener(
                Event("stack", "waiting", "servers of an earlier run are ending")
            )
        )
        try:
            self._logs.mkdir(mode=0o700, exist_ok=True)
            parts = self._build()
            for stage in _STAGES:
                if "engine" in stage and any(name in parts for name in stage):
                    self._wait_for_given()
                self._start_stage([parts[name] for name in stage if name in parts], keep)
            self._lock.publish(self._run_info(parts))
            self._in_background(keep)
        except BaseException:
            self.stop()
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until another thread calls `stop`; False after `timeout` seconds."""
        return self._stopping.wait(timeout)

    def stop(self) -> None:
        """Stop all parts, last stage first; harmless when nothing runs."""
        self._stopping.set()
        for stage in reversed(_STAGES):
            self._stop_stage([self._supervised[n] for n in stage if n in self._supervised])
            if self._on_demand is not None:  # it needs the broker to end in order
                self._on_demand.close()
                self._on_demand = None
        self._supervised.clear()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._lock.release()

    def _build(self) -> dict[PartName, Part]:
        settings = self.project.settings
        folder = self.project.state_folder
        ports = Ports(folder / "ports.json")
        java = find_java() if self._wanted & {"broker", "engine"} else None
        parts: dict[PartName, Part] = {}
        servers = settings.kafka.bootstrap_servers
        owner_url = reader_url = settings.postgres.url.get_secret_value()
        if "broker" in self._wanted and java is not None:
            broker_jars = jars("broker")
            self._archives.append(broker_archive(java, broker_jars))
            broker = Broker(
                folder / "kafka",
                self._logs,
                settings.kafka,
                java,
                broker_jars,
                (ports.take("broker", settings.kafka.port), ports.take("controller")),
                class_archive=self._archives[-1],
            )
            parts["broker"], servers = broker, broker.bootstrap_servers
        if "postgres" in self._wanted:
            postgres = Postgres(folder, self._logs, ports.take("postgres", settings.postgres.port))
            parts["postgres"] = postgres
            owner_url, reader_url = postgres.url(OWNER), postgres.url(READER)
        artifacts = spark_jars() if "engine" in self._wanted else None
        connect = self._connect_address(ports)
        host = settings.gateway.host
        endpoints = self._endpoints = Endpoints(
            bootstrap_servers=servers,
            postgres_url=SecretStr(owner_url),
            postgres_reader_url=SecretStr(reader_url),
            gateway_host=host,
            gateway_port=ports.take("gateway", settings.gateway.port, host),
            state_folder=folder,
            spark_jars=artifacts.jars if artifacts else (),
            bare_fs_jar=artifacts.bare_fs if artifacts else None,
            java_home=home_for_spark(java, folder) if java else None,
            class_archive=class_archive(java, artifacts) if java and artifacts else None,
            connect=connect,
        )
        if "engine" in self._wanted:
            parts["engine"] = Engine(self.project.folder, self._logs, endpoints)
        if "gateway" in self._wanted:
            parts["gateway"] = Gateway(self.project.folder, self._logs, endpoints)
        return parts

    def _connect_address(self, ports: Ports) -> ConnectAddress | None:
        settings, folder = self.project.settings.connect, self.project.state_folder / FOLDER
        if settings.url:
            return ConnectAddress(
                url=settings.url,
                user=settings.user,
                password=settings.password,
                secrets=Path(settings.secrets) if settings.secrets else folder / SECRETS,
            )
        if "connect" not in self._wanted:
            return None
        return ConnectAddress(
            url=f"http://{LOOPBACK}:{ports.take('connect', settings.port)}",
            user=USER,
            password=SecretStr(rest_password(folder)),
            secrets=folder / SECRETS,
            local=folder,
        )

    def _wait_for_given(self) -> None:
        settings, given = self.project.settings, _given_by_address(self.project)
        looks: dict[PartName, Callable[[], object]] = {}
        if "broker" in given:
            connection = Connection.from_settings(settings.kafka)
            looks["broker"] = lambda: broker_problem(connection, _LOOK_SECONDS)
        if "postgres" in given:
            address = postgres_address(settings)
            looks["postgres"] = lambda: postgres_problem(*address, _LOOK_SECONDS)
        for name, look in looks.items():
            told = False
            while not self._stopping.is_set() and (problem := look()):
                if not told:
                    told = True
                    self._listener(Event(name, "waiting", str(problem)))
                self._stopping.wait(_LOOK_SECONDS)
            if told:
                self._listener(Event(name, "ready"))

    def _start_stage(self, parts: list[Part], keep: int) -> None:
        if not parts:
            return
        stage = [Supervised(part, [keep], self._listener) for part in parts]
        self._supervised.update({item.part.name: item for item in stage})
        with ThreadPoolExecutor(len(stage)) as pool:
            starts = [pool.submit(item.start) for item in stage]
            try:
                for start in starts:
                    start.result()
            except BaseException:
                for item in stage:
                    item.give_up()  # else a Ctrl-C would wait for the slowest of them
                raise

    def _stop_stage(self, stage: list[Supervised]) -> None:
        if stage:
            with ThreadPoolExecutor(len(stage)) as pool:
                list(pool.map(Supervised.stop, stage))

    def _run_info(self, parts: dict[PartName, Part]) -> RunInfo:
        endpoints = self.endpoints
        connect = endpoints.connect
        own = parts.get("postgres")
        return RunInfo(
            pid=os.getpid(),
            bootstrap_servers=endpoints.bootstrap_servers,
            gateway_url=endpoints.gateway_url,
            postgres=PostgresInfo(
                host=LOOPBACK,
                port=own.port,
                database=DATABASE,
                reader=READER,
                passfile=str(own.passfile),
            )
            if isinstance(own, Postgres)
            else None,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            connect_url=connect.url if connect is not None and connect.local else None,
        )

    def _in_background(self, keep: int) -> None:
        connect = self.endpoints.connect
        if connect is not None and connect.local is not None:
            servers, port = self.endpoints.bootstrap_servers, connect.port
            make = partial(local_worker, self.project, servers, port)
            self._on_demand = OnDemand(connect.local, make, keep, self._listener)
            self._on_demand.start()
        self._threads = [threading.Thread(target=self._watch_disk, name="watch-disk", daemon=True)]
        archive = self.endpoints.class_archive
        # who has no engine is a test, or will soon have one
        if archive is not None and any(map(to_be_made, (archive, *self._archives))):
            folder, log = self.project.state_folder, self._logs / "class-archive.log"
            self._threads.append(Archiving(folder, log, keep, self._stopping))
        for thread in self._threads:
            thread.start()

    def _watch_disk(self) -> None:
        low = False
        while not self._stopping.wait(_DISK_LOOK_EVERY):
            free, needed = free_megabytes(self.project.state_folder), needed_megabytes()
            if (free < needed) != low:
                low = free < needed
                kind: Literal["disk_low", "disk_ok"] = "disk_low" if low else "disk_ok"
                advice = ", free some space before servers stop" if low else ""
                self._listener(Event("stack", kind, f"{free} MB are free{advice}"))


def _given_by_address(project: Project) -> frozenset[PartName]:
    """Servers that the settings name: they are used, not started."""
    settings = project.settings
    given: set[PartName] = set()
    if settings.profile == "cluster" or settings.kafka.bootstrap_servers:
        given.add("broker")
    if settings.profile == "cluster" or settings.postgres.url.get_secret_value():
        given.add("postgres")
    # the options of the log are those of librdkafka, which a Java worker does not understand
    if settings.profile == "cluster" or settings.connect.url or settings.kafka.options:
        given.add("connect")
    return frozenset(given)
