"""Exactly once over HTTP, for longer: two gateways, one of which is killed twenty times."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.gateway.processes import Gateway, made
from tests.system.gateway.two_gateways import TwoGateways

from mainstem.local.stack import Stack
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range

pytestmark = pytest.mark.kafka


@pytest.fixture
def gateways(servers: Stack, tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    one, two = (made(servers, folder) for folder in folders)
    for gateway in (one, two):
        gateway.start()
        gateway.ready()
    yield one, two
    for gateway in (one, two):
        gateway.stop(signal.SIGKILL)
        gateway.http.close()


def test_twenty_kills(gateways: tuple[Gateway, Gateway]) -> None:
    one, two = gateways
    one.sql("CREATE STREAM gw_quotes (id STRING, kind STRING) WITH (key = 'id')")
    try:
        both = TwoGateways(one, two)
        both.run(requests=1_500, workers=6, events=60, kills=20)
        connection = Connection(one.endpoints.bootstrap_servers)
        admin = Admin(connection)
        begin, end = admin.begin_offsets("gw_quotes"), admin.end_offsets("gw_quotes")
        admin.close()
        ranges = read_range(connection, "gw_quotes", begin, end)
        written = Counter(record.key for batch in ranges for record in batch)
        path = "/v1/streams/gw_quotes/aggregates/q"
        both.check(written, one.http.get(path, params={"limit": 10_000}).json())
    finally:
        one.sql("DROP STREAM gw_quotes")
