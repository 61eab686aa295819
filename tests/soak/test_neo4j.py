"""Rows into a graph, on a real Neo4j: by the target alone, and through a running flow.

Neo4j takes half a minute to start on a small machine, so this is no part of `make test`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import neo4j
import pyarrow as pa
import pytest

from mainstem.connect.connectors.neo4j import SPEC
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.connect.targets import neo4j as target_module
from mainstem.connect.targets.target import (
    GONE,
    ID,
    OFFSET,
    PARTITION,
    TOPIC,
    Part,
    Poison,
    Shape,
    check_target,
)
from mainstem.errors import MainstemError
from mainstem.local.jars import provide
from mainstem.local.jars_lock import parse_lock
from mainstem.local.process import Child, Command
from mainstem.testing.driver import Driver, Event
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Column

LOCK = Path(__file__).with_name("neo4j.lock")
JAVA = shutil.which("java")
pytestmark = pytest.mark.skipif(JAVA is None, reason="Java is not installed")
OPENED = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.nio", "java.io", "sun.nio.ch")]
COLUMNS = (Column("id", "int"), Column("buyer", "string"), Column("total", "decimal(9,2)"))
TABLE = Shape("orders", COLUMNS, ("id",), upserts=True, deletes=True)
CYPHER = (
    "MERGE (c:Customer {name: row.buyer}) MERGE (o:Order {id: row.id})"
    " SET o.total = toFloat(row.total) MERGE (c)-[:PLACED]->(o)"
)
DELETE = "MATCH (o:Order {id: row.id}) DETACH DELETE o"


class Server:
    """A Neo4j without a password."""

    def __init__(self, port: int) -> None:
        self.url = f"bolt://127.0.0.1:{port}"
        self._driver = neo4j.GraphDatabase.driver(self.url)

    def answers(self) -> bool:
        try:
            self._driver.verify_connectivity()
        except neo4j.exceptions.ServiceUnavailable:
            return False
        return True

    def run(self, statement: str) -> list[dict[str, Any]]:
        with self._driver.session() as session:
            return session.run(statement).data()

    def graph(self) -> list[tuple[str, int, float]]:
        found = self.run(
            "MATCH (c:Customer)-[:PLACED]->(o:Order) RETURN c.name AS name, o.id AS id,"
            " o.total AS total ORDER BY id"
        )
        return [(row["name"], row["id"], row["total"]) for row in found]

    def options(self, **changes: Any) -> dict[str, Any]:
        return {**SPEC.validate({"url": self.url, "cypher": CYPHER, "delete": DELETE}), **changes}

    def take(self, rows: pa.Table, shape: Shape = TABLE, **changes: Any) -> list[Poison]:
        target = target_module.open_target(self.options(**changes), shape)
        try:
            target.open(Part("out", "out.1", "all", 0, "e", "r", True, {"t": "one"}))
            return [*target.write(rows), *target.finish()]
        finally:
            target.close()

    def close(self) -> None:
        self._driver.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("neo4j")
    jars = provide(parse_lock(LOCK.read_text())["neo4j"], "Neo4j jars")
    port = free_port()
    settings = {
        "server.bolt.listen_address": f"127.0.0.1:{port}",
        "server.http.enabled": "false",
        "dbms.security.auth_enabled": "false",
        "server.memory.pagecache.size": "16m",
        "dbms.usage_report.enabled": "false",
    }
    (folder / "conf").mkdir()
    written = "".join(f"{name}={value}\n" for name, value in settings.items())
    (folder / "conf" / "neo4j.conf").write_text(written)
    command = Command(
        "neo4j",
        [
            str(JAVA),
            "-Xmx400m",
            "-XX:TieredStopAtLevel=1",
            *OPENED,
            *("-cp", os.pathsep.join(map(str, jars)), "org.neo4j.server.CommunityEntryPoint"),
            *(f"--home-dir={folder}", f"--config-dir={folder / 'conf'}"),
        ],
        log=folder / "log",
        folder=folder,
        stop="KILL",
    )
    child = Child.start(command)
    server = Server(port)

    def answers() -> bool:
        assert child.alive, (folder / "log").read_text()[-2000:]
        return server.answers()

    try:
        eventually(answers, 240, what="Neo4j answers")
        yield server
    finally:
        server.close()
        child.stop()


@pytest.fixture
def server(running: Server) -> Server:
    running.run("MATCH (n) DETACH DELETE n")
    return running


def batch(*rows: tuple[int, int, str | None]) -> pa.Table:
    """Rows of offset, id and buyer; without a buyer the row is gone."""
    return pa.table(
        {
            "id": pa.array([id_ for _, id_, _ in rows], pa.int32()),
            "buyer": pa.array([buyer for *_, buyer in rows], pa.string()),
            "total": pa.array([Decimal(id_) for _, id_, _ in rows], pa.decimal128(9, 2)),
            TOPIC: ["t"] * len(rows),
            PARTITION: [0] * len(rows),
            OFFSET: [offset for offset, *_ in rows],
            GONE: [buyer is None for *_, buyer in rows],
            ID: [f'{{"id":{id_}}}' for _, id_, _ in rows],
        }
    )


def test_nodes_and_relations_come_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "_ROWS", 2)
    first = batch((0, 1, "ann"), (1, 2, "bob"), (2, 1, "ann"), (3, 3, "cyd"), (4, 3, None))
    for _ in range(2):
        assert server.take(first) == []
        assert server.graph() == [("ann", 1, 1.0), ("bob", 2, 2.0)]
    server.take(batch((5, 2, None)))
    server.take(first)
    assert server.graph() == [("ann", 1, 1.0)]
    [noted] = server.run("MATCH (p:MainstemPosition) RETURN p.next AS next, p.sink AS sink")
    assert noted == {"next": 6, "sink": "out"}


def test_a_value_is_never_part_of_the_statement(server: Server) -> None:
    server.take(batch((0, 1, "x'}) DETACH DELETE c //")))
    assert server.graph() == [("x'}) DETACH DELETE c //", 1, 1.0)]


def test_a_row_that_neo4j_does_not_take_is_put_aside(server: Server) -> None:
    strict = "CREATE (o:Order {id: row.id, part: 10 / (row.id - 2)})"
    rows = batch((0, 1, "ann"), (1, 2, "bob"), (2, 3, "cyd"))
    for _ in range(2):
        [poison] = server.take(rows, cypher=strict)
        assert poison.offset == 1
        assert "by zero" in poison.cause
    assert [row["id"] for row in server.run("MATCH (o:Order) RETURN o.id AS id ORDER BY id")] == [
        1, 3
    ]  # fmt: skip


def test_what_keeps_it_from_writing_is_told_before(server: Server) -> None:
    def code(shape: Shape = TABLE, **changes: Any) -> tuple[str, str | None]:
        with pytest.raises(MainstemError) as caught:
            target_module.check(server.options(**changes), shape)
        return caught.value.code, caught.value.params.get("option")

    target_module.check(server.options(), TABLE)
    assert code(cypher="MERGE (c:Customer {id: row.id") == ("INVALID_OPTION", "cypher")
    assert code(cypher="MERGE (c {id: nothing.id})") == ("INVALID_OPTION", "cypher")
    assert code(delete=None) == ("TARGET_MISMATCH", None)
    assert code(replace(TABLE, deletes=False)) == ("INVALID_OPTION", "delete")
    assert code(url="bolt://127.0.0.1:1") == ("CONNECTOR_UNREACHABLE", None)
    assert code(database="other") == ("TARGET_REFUSED", None)
    assert server.graph() == []


@pytest.mark.spark
def test_rows_of_a_flow_reach_the_graph(server: Server, driver: Driver, tmp_path: Path) -> None:
    def no_sources(connector: str) -> Any:
        raise AssertionError(connector)

    secrets = Secrets(tmp_path, os.environ)
    driver.connectors = PlannedConnectors(secrets, no_sources, check_target)
    driver.apply("CREATE TABLE t (id INT PRIMARY KEY, buyer STRING, total DECIMAL(9,2));")
    driver.apply(
        f"CREATE SINK graph FROM t WITH (connector = 'neo4j', url = '{server.url}',"
        f" cypher = '{CYPHER}', delete = '{DELETE}');"
    )
    driver.send([Event("t", {"id": i, "buyer": "ann", "total": i}) for i in range(1, 4)])
    driver.run()
    driver.send([Event("t", key="1"), Event("t", {"id": 2, "buyer": "bob", "total": 5})])
    entry = driver.entry("graph")
    driver._keep([replace(entry, generation=entry.generation + 1)])
    driver.run()
    assert server.graph() == [("ann", 2, 5.0), ("bob", 2, 5.0), ("ann", 3, 3.0)]
