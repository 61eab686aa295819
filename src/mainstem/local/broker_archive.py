"""Makes the archive of the broker's classes: a broker of its own does a little of all, and ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mainstem.config import KafkaSettings
from mainstem.errors import MainstemError
from mainstem.local.broker import Broker
from mainstem.local.java import Java
from mainstem.local.ports import Ports
from mainstem.local.process import Child
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, TransactionalProducer

_TOPIC = "t"
_WRITING_SECONDS = 120.0
"""Java writes the archive when it is asked to end."""
_ENDED_BY_TERM = 143


def write_broker_archive(java: Java, jars: Sequence[Path], part: Path, folder: Path) -> bool:
    """Run a broker in the folder; True when Java has written the classes to `part` at its end."""
    ports = Ports(folder / "ports.json")
    broker = Broker(
        folder / "kafka",
        folder / "logs",
        KafkaSettings(),
        java,
        jars,
        (ports.take("broker"), ports.take("controller")),
        java_options=(f"-XX:ArchiveClassesAtExit={part}", "-Xlog:cds*=off"),
    )
    child = Child.start(replace(broker.prepare(), grace=_WRITING_SECONDS))
    try:
        deadline = time.monotonic() + broker.start_timeout
        while not broker.ready():
            if not child.alive or time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        _use(Connection(broker.bootstrap_servers))
    except MainstemError:
        return False
    finally:
        broker.close()
        child.stop()
    return child.exit_code() == _ENDED_BY_TERM and part.exists()


def _use(connection: Connection) -> None:
    """What every stack does: a topic, a transaction with a group's offsets, and reading."""
    admin = Admin(connection)
    admin.ensure_topic(TopicSpec(_TOPIC, 1, 1, {"cleanup.policy": "compact"}))
    producer = TransactionalProducer(connection, "mainstem.classes")
    with producer.transaction() as transaction:
        transaction.send(_TOPIC, [Outgoing(b"k", b"v")])
        transaction.offsets("mainstem.classes", {_TOPIC: {0: 0}})
    producer.close()
    for _ in read_range(connection, _TOPIC, {0: 0}, {0: 1}):
        pass
    admin.delete_topic(_TOPIC)
    admin.close()
