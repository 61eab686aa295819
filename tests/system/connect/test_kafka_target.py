"""The target of Kafka sinks by itself: each record once, in one transaction with its token."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.connectors.kafka import SPEC
from mainstem.connect.targets import kafka
from mainstem.connect.targets.target import (
    GONE,
    ID,
    OFFSET,
    PARTITION,
    ROW,
    TIME,
    TOPIC,
    Part,
    Poison,
    Shape,
)
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.vocabulary import Column, Record

pytestmark = pytest.mark.kafka

STREAM = Shape("s", (Column("id", "int"),), ("id",), upserts=True)
TABLE = Shape("s", STREAM.columns, ("id",), upserts=True, deletes=True)


class Cluster:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.admin = Admin(connection)
        self.topic = f"out-{uuid.uuid4().hex[:8]}"
        self.epoch = uuid.uuid4().hex
        given = {"servers": connection.servers, "topic": self.topic, "partitions": "2"}
        self.options = SPEC.validate(given)

    def take(
        self, rows: pa.Table, shape: Shape = STREAM, finish: bool = True, **changes: Any
    ) -> Sequence[Poison]:
        given = {"batch": 0, "epoch": self.epoch, "recovering": True, **changes}
        part = Part("out", "out.1", "all", run="r", topics={"t": "id"}, **given)
        target = kafka.open_target(self.options, shape)
        poison: list[Poison] = []
        try:
            target.open(part)
            poison += target.write(rows)
            if finish:
                poison += target.finish()
        finally:
            target.close()
        return poison

    def records(self) -> list[Record]:
        begin, end = (
            self.admin.begin_offsets(self.topic),
            self.admin.end_offsets(self.topic, committed=False),
        )
        batches = read_range(self.connection, self.topic, begin, end)
        return sorted((r for batch in batches for r in batch), key=lambda r: r.timestamp)


@pytest.fixture
def cluster(connection: Connection) -> Iterator[Cluster]:
    made = Cluster(connection)
    yield made
    made.admin.delete_topic(made.topic)
    made.admin.close()


def batch(*ids: int, size: int = 0) -> pa.Table:
    """Rows with these ids at these offsets; a negative one is a deletion."""
    row = '{{"id":{},"text":"{}"}}'
    return pa.table(
        {
            ROW: pa.array([None if i < 0 else row.format(i, "x" * size) for i in ids], pa.string()),
            ID: [f'{{"id":{abs(i)}}}' for i in ids],
            TOPIC: ["t"] * len(ids),
            PARTITION: [0] * len(ids),
            OFFSET: [abs(i) for i in ids],
            TIME: pa.array([abs(i) * 1_000_000 for i in ids], pa.timestamp("us", "UTC")),
            GONE: [i < 0 for i in ids],
        }
    )


def test_a_part_that_comes_again_is_known_by_its_token(cluster: Cluster) -> None:
    cluster.take(batch(1, 2), finish=False)
    for _ in range(2):
        assert cluster.take(batch(1, 2)) == []
    cluster.take(batch(3), batch=1, recovering=False)
    cluster.take(batch(3), batch=1)
    seen = [(record.key, record.timestamp) for record in cluster.records()]
    assert seen == [(b"1", 1000), (b"2", 2000), (b"3", 3000)]


def test_a_table_has_tombstones_and_its_own_keys(cluster: Cluster) -> None:
    cluster.take(batch(1, -2), TABLE)
    kept, gone = cluster.records()
    assert (kept.key, gone.key, gone.value) == (b'{"id":1}', b'{"id":2}', None)
    info = cluster.admin.topic(cluster.topic)
    assert info is not None
    assert (info.partitions, info.config["cleanup.policy"]) == (2, "compact")


def test_a_row_that_is_too_large_is_told_each_time(cluster: Cluster) -> None:
    rows = pa.concat_tables([batch(1), batch(2, size=3_000_000), batch(3)])
    for _ in range(2):
        [poison] = cluster.take(rows)
        assert poison.offset == 2
    assert [record.key for record in cluster.records()] == [b"1", b"3"]


def test_a_cluster_that_does_not_answer_is_told(cluster: Cluster) -> None:
    kafka.check(cluster.options, STREAM)
    with pytest.raises(MainstemError) as caught:
        kafka.check({**cluster.options, "servers": "127.0.0.1:1"}, STREAM)
    assert caught.value.code == "CONNECTOR_UNREACHABLE"
