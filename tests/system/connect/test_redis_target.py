"""The target of Redis sinks by itself, on a real server."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.connectors.redis import SPEC
from mainstem.connect.targets import redis as target_module
from mainstem.connect.targets.target import GONE, ID, OFFSET, PARTITION, ROW, TOPIC, Part, Shape
from mainstem.errors import MainstemError
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Column

redis = pytest.importorskip("redis", reason="the package redis is not installed")
PROGRAM = shutil.which("redis-server")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="redis-server is not installed")

SHAPE = Shape("orders", (Column("id", "int"), Column("n", "decimal(5,2)")), ("id",), True, True)


@dataclass
class Server:
    url: str
    client: Any

    def take(self, rows: pa.Table, topic_id: str = "one", **options: Any) -> None:
        target = target_module.open_target({**SPEC.validate({"url": self.url}), **options}, SHAPE)
        try:
            target.open(Part("out", "out.1", "all", 0, "e", "r", True, {"t": topic_id}))
            assert target.write(rows) == []
            assert target.finish() == []
        finally:
            target.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder: Path = tmp_path_factory.mktemp("redis")
    assert PROGRAM is not None
    place = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command = [PROGRAM, *place, "--save", "", "--requirepass", "secret"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port, password="secret", decode_responses=True)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False

    try:
        eventually(answers, what="Redis answers")
        yield Server(f"redis://127.0.0.1:{port}/0", client)
    finally:
        client.close()
        process.terminate()
        process.wait(120)


@pytest.fixture
def server(running: Server) -> Server:
    running.client.flushall()
    return running


def batch(*rows: tuple[int, int, float | None]) -> pa.Table:
    """Rows of offset, id and number; without a number the row is gone."""
    return pa.table(
        {
            ROW: pa.array(
                [None if n is None else f'{{"id":{id_},"n":{n:.2f}}}' for _, id_, n in rows],
                pa.string(),
            ),
            ID: [f'{{"id":{id_}}}' for _, id_, _ in rows],
            TOPIC: ["t"] * len(rows),
            PARTITION: [0] * len(rows),
            OFFSET: [offset for offset, _, _ in rows],
            GONE: [n is None for _, _, n in rows],
        }
    )


def rows_in(server: Server, prefix: str = "orders:") -> dict[str, Any]:
    keys = server.client.keys(f"{prefix}*")
    return {key.removeprefix(prefix): json.loads(server.client.get(key)) for key in keys}


def test_the_last_row_of_a_key_is_there_whatever_comes_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "_ROWS", 2)  # several steps
    given = {"password": "secret"}
    first = batch((0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 1, 4), (4, 2, None))
    for _ in range(2):
        server.take(first, **given)
        assert rows_in(server) == {"1": {"id": 1, "n": 4.0}, "3": {"id": 3, "n": 3.0}}
    server.take(batch((5, 2, 5)), **given)
    server.take(first, **given)
    assert rows_in(server)["2"] == {"id": 2, "n": 5.0}
    server.take(batch((0, 2, 6)), topic_id="made anew", **given)
    assert rows_in(server)["2"] == {"id": 2, "n": 6.0}


def test_a_hash_has_the_columns_of_the_row(server: Server) -> None:
    given = {"password": "secret", "value": "hash", "prefix": "h:"}
    server.take(batch((0, 1, 1.5), (1, 2, 2)), **given)
    server.take(batch((2, 2, None)), **given)
    assert server.client.hgetall("h:1") == {"id": "1", "n": "1.50"}
    assert not server.client.exists("h:2")


def test_what_keeps_it_from_writing_is_told_before(server: Server) -> None:
    options = {**SPEC.validate({"url": server.url}), "password": "secret"}
    target_module.check(options, SHAPE)
    for changes, shape, code in (
        ({"password": "wrong"}, SHAPE, "TARGET_REFUSED"),
        ({"url": "redis://127.0.0.1:1/0"}, SHAPE, "CONNECTOR_UNREACHABLE"),
        ({}, Shape("s", SHAPE.columns), "TARGET_MISMATCH"),
    ):
        with pytest.raises(MainstemError) as caught:
            target_module.check({**options, **changes}, shape)
        assert caught.value.code == code
    assert server.client.keys() == []
