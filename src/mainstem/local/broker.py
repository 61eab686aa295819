"""The local Kafka broker: one node in KRaft mode, on loopback, with data in `.mainstem/kafka`."""

from __future__ import annotations

import base64
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path

from mainstem.config import KafkaSettings
from mainstem.errors import MainstemError
from mainstem.local.java import Java
from mainstem.local.java_log import FILE, log_options, log_settings
from mainstem.local.ports import LOOPBACK
from mainstem.local.process import Command, run_once
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection

_JVM = (
    *("-Xms48m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"),
    *("-XX:-UsePerfData", "-Djava.awt.headless=true", *log_options("broker")),
)
_LOGGERS = """\
# says that the server started and stopped, and on which address
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""
_HOUR_MS = 3_600_000


def server_properties(settings: KafkaSettings, port: int, controller_port: int) -> str:
    """The broker's settings. Paths are relative to its folder, so that no name needs escaping."""
    entries = {
        "process.roles": "broker,controller",
        "node.id": 1,
        # static voters: the controller's port may be another one after a restart
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "data",
        # a misspelt topic is an error, not a new topic
        "auto.create.topics.enable": "false",
        "num.partitions": settings.partitions,
        "message.max.bytes": settings.max_record_bytes,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "transaction.max.timeout.ms": 900_000,
        # a crashed writer's transaction is found and aborted soon
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2_000,
        "group.initial.rebalance.delay.ms": 0,
        # after a crash the broker is let in again only when its old session has expired
        "broker.session.timeout.ms": 4_000,
        "broker.heartbeat.interval.ms": 1_000,
        # tables are compacted topics: keep them close to one record a key
        "log.cleaner.backoff.ms": 5_000,
        "log.cleaner.max.compaction.lag.ms": _HOUR_MS,
        "log.segment.bytes": 268_435_456,
        # small buffers and few threads: one machine, one user
        "log.cleaner.dedupe.buffer.size": 16_777_216,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 4,
        "group.coordinator.threads": 1,
        "num.recovery.threads.per.data.dir": 2,
        # a single replica needs no second log of the metadata's whole history
        "metadata.log.segment.bytes": 67_108_864,
        "metadata.max.retention.bytes": 67_108_864,
    }
    return "".join(f"{key}={value}\n" for key, value in entries.items())


class Broker:
    """Kafka as a part of the stack."""

    name = "broker"
    start_timeout = 90.0

    def __init__(
        self,
        folder: Path,
        logs: Path,
        settings: KafkaSettings,
        java: Java,
        jars: Sequence[Path],
        ports: tuple[int, int],
        *,
        class_archive: Path | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._logs = logs
        self._settings = settings
        self._java = java
        self._classpath = ":".join(map(str, jars))
        self._port, self._controller_port = ports
        self._class_archive = class_archive
        self._java_options = java_options
        self._admin: Admin | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"{LOOPBACK}:{self._port}"

    def prepare(self) -> Command:
        """Write the settings; format the data folder when it is new."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        properties = server_properties(self._settings, self._port, self._controller_port)
        (self._folder / "server.properties").write_text(properties, "utf-8")
        (self._folder / FILE).write_text(log_settings("broker", _LOGGERS), "utf-8")
        if not (self._folder / "data" / "meta.properties").exists():
            self._format()
        return Command(
            name=self.name,
            argv=[*self._program(), *self._java_options, "kafka.Kafka", "server.properties"],
            log=self._logs / "broker.out",
            folder=self._folder,
            # glibc's per-thread arenas would double the memory outside the heap
            environment={"CLASSPATH": self._classpath, "MALLOC_ARENA_MAX": "2"},
        )

    def _program(self) -> list[str]:
        archive = self._class_archive
        shared = [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"]
        made = archive is not None and archive.exists()
        return [str(self._java.program), *_JVM, *(shared if made else ())]

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        run_once(
            [
                *(*self._program(), "kafka.tools.StorageTool", "format"),
                # an id may begin with a dash
                *(f"--cluster-id={cluster}", "--config", "server.properties"),
                "--ignore-formatted",
            ],
            name=self.name,
            log=self._logs / "broker.out",
            folder=self._folder,
            environment={"CLASSPATH": self._classpath},
        )

    def ready(self) -> bool:
        """Whether it answers a request for metadata."""
        try:
            socket.create_connection((LOOPBACK, self._port), timeout=1).close()
            if self._admin is None:
                self._admin = Admin(Connection(self.bootstrap_servers))
            self._admin.ping(timeout=5.0)
        except (OSError, MainstemError):
            return False
        return True

    def answers(self) -> bool:
        """The same: it has no state between serving and not."""
        return self.ready()

    def close(self) -> None:
        """Close the client that looked after the broker."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
