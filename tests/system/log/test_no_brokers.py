"""A broker that slept, as on a laptop, says for a moment that its cluster has no brokers."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka

_METADATA = 3
_WITH_IDS = 10
"""From this version of the answer on, topics have ids."""
_NO_LEADER = 5


class Drowsy:
    """A broker as its clients see it; while asleep it answers that there are no brokers."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        host, _, port = servers.rpartition(":")
        self._broker = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self._port}"
        self.asleep = False
        self.answers = 0
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
                self._sockets += [client, broker]
                threading.Thread(target=self._ask, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._answer, args=(broker, client), daemon=True).start()
        except OSError:
            return  # closed

    def _ask(self, client: socket.socket, broker: socket.socket) -> None:
        for frame in _frames(client):
            kind, version, number = struct.unpack_from(">hhi", frame)
            if kind == _METADATA and self.asleep:
                self.answers += 1
                _send(client, _no_brokers(version, number, self.topic))
            else:
                _send(broker, frame)

    def _answer(self, broker: socket.socket, client: socket.socket) -> None:
        own, other = struct.pack(">i", self._port), struct.pack(">i", self._broker[1])
        for frame in _frames(broker):
            _send(client, frame.replace(other, own))  # so that all connections lead here


def _frames(sender: socket.socket) -> Iterator[bytes]:
    try:
        with sender.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                yield stream.read(*struct.unpack(">i", size))
    except (OSError, ValueError):
        return  # closed


def _send(receiver: socket.socket, frame: bytes) -> None:
    try:
        receiver.sendall(struct.pack(">i", len(frame)) + frame)
    except OSError:
        return  # closed


def _no_brokers(version: int, number: int, topic: str) -> bytes:
    """An answer with a topic, which has no leader, and no brokers."""
    assert version >= _WITH_IDS, version
    none, no_tags, no_cluster, no_controller = b"\1", b"\0", b"\0", struct.pack(">i", -1)
    name = bytes([len(topic) + 1]) + topic.encode()
    partition = struct.pack(">hiii", _NO_LEADER, 0, -1, -1) + none * 3 + no_tags
    described = struct.pack(">h", 0) + name + bytes(16) + b"\0" + b"\2" + partition
    topics = b"\2" + described + struct.pack(">i", 0) + no_tags
    rights = struct.pack(">i", 0) if version <= 10 else b""
    error = struct.pack(">h", 0) if version >= 13 else b""
    header = struct.pack(">i", number) + no_tags
    no_wait = struct.pack(">i", 0)
    return header + no_wait + none + no_cluster + no_controller + topics + rights + error + no_tags


@pytest.fixture
def drowsy(connection: Connection, topic) -> Iterator[Drowsy]:
    drowsy = Drowsy(connection.servers, topic("t"))
    yield drowsy
    drowsy.close()


def sleep(drowsy: Drowsy, longest: float) -> None:
    """Sleeps until its client has given up to ask, or for some time."""
    drowsy.asleep = True
    deadline = time.monotonic() + longest
    answers = -1
    while (answers < drowsy.answers or not answers) and time.monotonic() < deadline:
        answers = drowsy.answers
        time.sleep(1.5)
    assert answers
    drowsy.asleep = False


# clients ask soon after the broker fell asleep
OFTEN = {"topic.metadata.refresh.interval.ms": "100"}


def test_a_reader_finds_the_broker_again(connection, drowsy):
    reader = Reader(Connection(drowsy.address, OFTEN), {drowsy.topic: {0: 0}})
    with closing(Producer(connection)) as producer, closing(reader):
        producer.send(drowsy.topic, [Outgoing(None, b"x")])
        [before] = eventually(lambda: reader.poll(timeout=1.0))
        sleep(drowsy, 20)
        producer.send(drowsy.topic, [Outgoing(None, b"y")])
        [behind] = eventually(lambda: reader.poll(timeout=1.0))
        assert [before.value, behind.value] == [b"x", b"y"]


def test_a_producer_finds_the_broker_again(drowsy):
    record = Outgoing(None, b"x")
    with closing(Producer(Connection(drowsy.address, OFTEN))) as producer:
        assert producer.send(drowsy.topic, [record]) == {0: 0}
        sleep(drowsy, 3)
        assert producer.send(drowsy.topic, [record]) == {0: 1}
