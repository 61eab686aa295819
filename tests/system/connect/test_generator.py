"""The generator on a real log: each record once, whoever makes it and whoever dies."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mainstem.connect.brought import definitions_of
from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening import generator as module
from mainstem.connect.listening.generator import Generator
from mainstem.connect.listening.last_number import next_number
from mainstem.connect.listening.running import Log, Task
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.testing.waiting import eventually


class Load:
    """A source of made-up records, and its topic."""

    def __init__(self, connection: Connection, admin: Admin) -> None:
        self.connection = connection
        self.admin = admin
        self.name = f"load-{uuid.uuid4().hex[:8]}"
        self.topic = f"{self.name}_events"
        admin.ensure_topic(TopicSpec(self.topic, 3, 1))

    def generator(self, **options: str) -> Generator:
        written = {"columns": "id BIGINT AS sequence(), key STRING", "key": "key", **options}
        listed = ", ".join(f"{name} = '{value}'" for name, value in written.items())
        statement = parse_one(
            f"CREATE SOURCE `{self.name}` WITH (connector = 'generator', {listed})"
        )
        assert isinstance(statement, Create)
        spec = spec_of(Role.SOURCE, "generator")
        resolved = spec.resolve(written, Secrets(Path(), {}))
        captured = capture_of("generator").look(self.name, resolved)
        [stream] = definitions_of(statement.definition, captured)
        log = Log(self.connection, cast(Any, None))
        return Generator(Task(self.name, f"{self.name}.1", stream, resolved), log)

    def ids(self) -> list[int]:
        begin, end = self.admin.begin_offsets(self.topic), self.admin.end_offsets(self.topic)
        batches = read_range(self.connection, self.topic, begin, end)
        return sorted(json.loads(r.value or b"")["id"] for batch in batches for r in batch)


@pytest.fixture
def load(connection: Connection) -> Iterator[Load]:
    admin = Admin(connection)
    made = Load(connection, admin)
    yield made
    admin.delete_topic(made.topic)
    admin.close()


def test_what_a_crash_left_unfinished_is_made_again(load: Load) -> None:
    first = load.generator(count="100", rate="100000")
    first.start()
    eventually(lambda: first.told.state == module.FINISHED)
    # a run that died inside of a transaction
    dead = TransactionalProducer(load.connection, first._id)
    with pytest.raises(ZeroDivisionError), dead.transaction() as transaction:
        transaction.send(load.topic, [Outgoing(None, b'{"id":101}', headers=(("n", b"100"),))])
        transaction.flush()
        raise ZeroDivisionError
    assert next_number(load.connection, load.topic) == 100
    again = load.generator(count="250", rate="100000")
    again.start()
    eventually(lambda: again.told.state == module.FINISHED)
    assert load.ids() == list(range(1, 251))
    assert again.told.records == 150


def test_of_two_gateways_one_makes_records(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STAND_BY_SECONDS", 0.5)
    first, second = load.generator(rate="200"), load.generator(rate="200")
    first.start()
    eventually(lambda: first.told.records > 20)
    second.start()
    eventually(lambda: second.told.records > 20)
    eventually(lambda: first.told.error is not None)
    assert first.told.error is not None and first.told.error.code == "GENERATOR_ELSEWHERE"
    second.stop()
    before = first.told.records
    eventually(lambda: first.told.records > before + 20)
    assert first.told.error is None
    first.stop()
    ids = load.ids()
    assert ids == list(range(1, len(ids) + 1))


def test_numbers_are_not_used_again_when_the_records_are_gone(load: Load) -> None:
    first = load.generator(count="50", rate="100000")
    first.start()
    eventually(lambda: first.told.state == module.FINISHED)
    load.admin.truncate(load.topic)
    assert next_number(load.connection, load.topic) >= 50
