"""The local Kafka Connect worker: on loopback, with a password, with known plugins alone.

Closed on purpose: no class but those of the locked jars and of the project's own plugins, no
connector that changes the worker's clients, no way to refer to a file outside of the folder of
secrets, no request without the password.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx2

from mainstem.config import Project, Settings
from mainstem.connect.plugins import FOLDER as PROJECT_PLUGINS
from mainstem.connect.plugins import OF_PROJECT, plugin_jars
from mainstem.connect.properties import properties_text
from mainstem.errors import MainstemError
from mainstem.local.jars import jars
from mainstem.local.jars_lock import PLUGINS
from mainstem.local.java import Java, find_java
from mainstem.local.java_log import FILE, log_options, log_settings
from mainstem.local.ports import LOOPBACK
from mainstem.local.private_files import write_private
from mainstem.local.process import Command

FOLDER = "connect"
"""Of the state folder: all of the worker's files."""
USER = "mainstem"
SECRETS = "secrets"
_USERS = "users.properties"
_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
_UNSPEAKABLE = ":,}"
"""In a reference to a secret, or in a list of folders, these end the path."""
_JVM = (
    *("-Xms32m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"),
    *("-XX:-UsePerfData", "-Djava.awt.headless=true", *log_options("connect")),
    "-Djava.security.auth.login.config=login.conf",
    # a client that a plugin makes takes its settings from nowhere else
    f"-Dorg.apache.kafka.automatic.config.providers={_PROVIDER}",
)
_LOGGERS = """\
logger.worker.name = org.apache.kafka.connect.runtime.distributed.DistributedHerder
logger.worker.level = info
# snapshots, slots and positions; passwords are masked by Debezium itself
logger.debezium.name = io.debezium
logger.debezium.level = info
logger.threads.name = io.debezium.util.Threads
logger.threads.level = warn
logger.connections.name = io.debezium.jdbc.JdbcConnection
logger.connections.level = warn
logger.settings.name = io.debezium.config.CommonConnectorConfig
logger.settings.level = warn
# complains of a converter of Debezium's that nobody uses, and that wants a newer Connect
logger.plugins.name = org.apache.kafka.connect.runtime.isolation.PluginScanner
logger.plugins.level = off
# says all settings of each client, each time
logger.configs.name = org.apache.kafka.common.config.AbstractConfig
logger.configs.level = error
"""
_LOGIN = f"""\
KafkaConnect {{
  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
  file="{_USERS}";
}};
"""


def worker_properties(
    settings: Settings, servers: str, port: int, folder: Path, *, foreign: bool = False
) -> str:
    """The worker's settings. Paths are relative to its folder where Connect allows it.

    `foreign`: with plugins that may not say themselves what they are.
    """
    replicas = settings.kafka.replication_factor
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    entries = {
        "bootstrap.servers": servers,
        "group.id": "_mainstem.connect",
        "listeners": f"http://{LOOPBACK}:{port}",
        # the level of its log is nobody's business from outside
        "admin.listeners": "",
        "rest.extension.classes": (
            "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
        ),
        "plugin.path": "plugins",
        # looking into every class of every jar for plugins takes seconds
        "plugin.discovery": "hybrid_warn" if foreign else "service_load",
        "connector.client.config.override.policy": "None",
        "config.providers": "file",
        "config.providers.file.class": _PROVIDER,
        "config.providers.file.param.allowed.paths": folder / SECRETS,
        "exactly.once.source.support": "enabled",
        "key.converter": json_converter,
        "value.converter": json_converter,
        # who drops a source drops its topics: a record that comes late must not bring one back
        "topic.creation.enable": "false",
        "config.storage.topic": "_mainstem.connect.configs",
        "config.storage.replication.factor": replicas,
        "offset.storage.topic": "_mainstem.connect.offsets",
        "offset.storage.replication.factor": replicas,
        "offset.storage.partitions": 4,
        "status.storage.topic": "_mainstem.connect.status",
        "status.storage.replication.factor": replicas,
        "status.storage.partitions": 1,
        # one worker: nothing is gained by waiting for one that left to come back
        "scheduled.rebalance.max.delay.ms": 0,
        # after a crash its successor waits until the old session is over
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 2_000,
        # a record carries its schema, most of which is the same text each time
        "producer.compression.type": "zstd",
        # rows for sinks are written in transactions
        "consumer.isolation.level": "read_committed",
        "producer.linger.ms": 5,
        "producer.batch.size": 131_072,
        "producer.max.request.size": settings.kafka.max_record_bytes,
    }
    return properties_text(entries)


def local_worker(
    project: Project,
    servers: str,
    port: int,
    plugins: Sequence[str],
    give_up: threading.Event,
) -> Connect:
    """A worker with these plugins; fetches the jars that are missing, which may take long."""
    own = [*jars("broker", give_up=give_up), *jars("connect", give_up=give_up)]
    laid_out: dict[str, Sequence[Path]] = {
        name: jars(name, give_up=give_up) for name in PLUGINS if name in plugins
    }
    if foreign := OF_PROJECT in plugins:
        found = plugin_jars(project.folder / PROJECT_PLUGINS)
        laid_out |= {f"{OF_PROJECT}-{name}": files for name, files in found.items()}
    return Connect(
        project.state_folder / FOLDER,
        project.state_folder / "logs",
        project.settings,
        find_java(),
        servers,
        port,
        own,
        laid_out,
        foreign=foreign,
    )


class Connect:
    """Kafka Connect as a part of the stack."""

    name = "connect"
    start_timeout = 120.0

    def __init__(
        self,
        folder: Path,
        logs: Path,
        settings: Settings,
        java: Java,
        servers: str,
        port: int,
        own: Sequence[Path],
        plugins: Mapping[str, Sequence[Path]],
        *,
        foreign: bool = False,
    ) -> None:
        """`own` are the worker's jars; `plugins` those of each plugin by its name, `foreign` when
        some are not ours.
        """
        self._folder = folder
        self._logs = logs
        self._settings = settings
        self._java = java
        self._servers = servers
        self._port = port
        self._classpath = ":".join(map(str, own))
        self._plugins = plugins
        self._foreign = foreign
        self._client = httpx2.Client(
            base_url=f"http://{LOOPBACK}:{port}",
            auth=(USER, rest_password(folder)),
            timeout=5.0,
            trust_env=False,
        )

    def prepare(self) -> Command:
        """Write the settings and lay out the plugins."""
        folder = make_worker_folder(self._folder)
        properties = worker_properties(
            self._settings, self._servers, self._port, folder, foreign=self._foreign
        )
        write_private(folder / "worker.properties", properties)
        (folder / FILE).write_text(log_settings("connect", _LOGGERS), "utf-8")
        (folder / "login.conf").write_text(_LOGIN, "utf-8")
        self._lay_out_plugins()
        return Command(
            name=self.name,
            argv=[
                *(str(self._java.program), *_JVM, f"-Xmx{self._settings.connect.memory}"),
                *("org.apache.kafka.connect.cli.ConnectDistributed", "worker.properties"),
            ],
            log=self._logs / "connect.out",
            folder=folder,
            # glibc's per-thread arenas would double the memory outside the heap
            environment={"CLASSPATH": self._classpath, "MALLOC_ARENA_MAX": "2"},
        )

    def _lay_out_plugins(self) -> None:
        """One folder for each plugin, with links into the cache, and nothing else."""
        root = self._folder / "plugins"
        shutil.rmtree(root, ignore_errors=True)
        for name, files in self._plugins.items():
            place = root / name
            place.mkdir(mode=0o700, parents=True)
            for jar in files:
                (place / jar.name).symlink_to(jar.resolve())

    def ready(self) -> bool:
        """Whether it has read its topics and takes requests."""
        return self._status("/health") == httpx2.codes.OK

    def answers(self) -> bool:
        """Whether it lives; while the broker is away it does, though it can do nothing."""
        return self._status("/") is not None

    def _status(self, path: str) -> int | None:
        try:
            return self._client.get(path).status_code
        except httpx2.TransportError:
            return None

    def close(self) -> None:
        """Close the client that looked after the worker."""
        self._client.close()


def make_worker_folder(folder: Path) -> Path:
    """The worker's folder, the owner's alone, and the folder of secrets in it; both absolute."""
    folder = folder.resolve()
    if any(sign in str(folder) for sign in _UNSPEAKABLE):
        raise MainstemError(
            "PROCESS_FAILED",
            process=Connect.name,
            problem=f"the path of the project must have none of {' '.join(_UNSPEAKABLE)} in it",
            log=str(folder),
        )
    for made in (folder, folder / SECRETS):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        made.chmod(0o700)
    return folder


def rest_password(folder: Path) -> str:
    """The password that the worker asks for; made at the first call."""
    file = folder / _USERS
    try:
        kept = file.read_text("utf-8")
    except FileNotFoundError:
        kept = f"{USER}: {secrets.token_hex(24)}\n"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, kept)
    return kept.partition(":")[2].strip()
