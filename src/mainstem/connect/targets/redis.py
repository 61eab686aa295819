"""Rows of a sink as keys of Redis, each record once.

A script sets and deletes some keys and moves the offset of their partition, in one step. Records
before that offset are left out: rows that come again, or late, change nothing. What a crash leaves
are whole steps; the part comes again, and goes on behind them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.target import (
    ID,
    OFFSET,
    ROW,
    Form,
    Part,
    Poison,
    Shape,
    by_partition,
    key_text,
    mismatch,
    refused,
    unreachable,
)

GUARANTEE = "exactly once: rows and offsets change in one step of Redis"
KEYED = True

_ROWS = 1000
_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
# KEYS: the offset's key, then one for each row. ARGV: the next offset, `hash` or `json`, then for
# each row its offset and its value: nothing when it is gone, names and values as a list for a hash
_SCRIPT = """
local floor = tonumber(redis.call('GET', KEYS[1]) or '0')
for i = 2, #KEYS do
  local offset, value = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
  if offset >= floor then
    if value == '' then
      redis.call('DEL', KEYS[i])
    elseif ARGV[2] == 'hash' then
      redis.call('DEL', KEYS[i])
      redis.call('HSET', KEYS[i], unpack(cjson.decode(value)))
    else
      redis.call('SET', KEYS[i], value)
    end
  end
end
if tonumber(ARGV[1]) > floor then redis.call('SET', KEYS[1], ARGV[1]) end
"""


def form(options: Mapping[str, Any]) -> Form:
    """Texts."""
    return Form.JSON


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether Redis answers, and is no cluster."""
    if not shape.upserts:
        raise mismatch("Redis", "without a key nothing tells rows apart", "Give the option key.")
    with _told():
        client = _client(options)
        try:
            if int(client.info("cluster").get("cluster_enabled", 0)):
                raise mismatch("Redis", "it is a cluster", "Use a server that is none.")
        finally:
            client.close()


def open_target(options: Mapping[str, Any], shape: Shape) -> RedisTarget:
    """The target for one task."""
    return RedisTarget(options, shape)


class RedisTarget:
    """One part of a batch: a step for each thousand rows."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._prefix = options["prefix"] or f"{shape.name}:"
        self._hash = options["value"] == "hash"
        self._part: Part | None = None
        self._client: Any = None
        self._script: Any = None

    def open(self, part: Part) -> None:
        """Connects."""
        self._part = part
        with _told():
            self._client = _client(self._options)
            self._script = self._client.register_script(_SCRIPT)

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Sets and deletes keys."""
        with _told():
            for topic, partition, mine in by_partition(rows):
                for first in range(0, mine.num_rows, _ROWS):
                    self._step(topic, partition, mine.slice(first, _ROWS))
        return []

    def finish(self) -> Sequence[Poison]:
        """Each step was for good."""
        return []

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()

    def _step(self, topic: str, partition: int, rows: pa.Table) -> None:
        assert self._part is not None
        offsets = rows[OFFSET].to_pylist()
        keys = [f"mainstem:{self._part.sink}:{self._part.topics[topic]}:{partition}"]
        given: list[Any] = [offsets[-1] + 1, "hash" if self._hash else "json"]
        for offset, id_, row in zip(
            offsets, rows[ID].to_pylist(), rows[ROW].to_pylist(), strict=True
        ):
            keys.append(self._prefix + key_text(id_))
            given += [offset, self._value(row)]
        self._script(keys=keys, args=given)

    def _value(self, row: str | None) -> str:
        if row is None or not self._hash:
            return row or ""
        pairs: list[str] = []
        for name, value in json.loads(row, parse_float=str, parse_int=str).items():
            if value is not None:
                pairs += [name, value if isinstance(value, str) else _text(value)]
        return json.dumps(pairs) if pairs else ""


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _client(options: Mapping[str, Any]) -> Any:
    """A client that tries nothing twice: the flow does."""
    try:
        import redis
    except ImportError:
        problem = "the package redis is not installed"
        raise refused("Redis", problem, "Run: pip install 'mainstem[redis]'") from None
    more = {} if options["password"] is None else {"password": options["password"]}
    return redis.Redis.from_url(
        options["url"],
        socket_timeout=_SECONDS,
        socket_connect_timeout=_CONNECT_SECONDS,
        client_name="mainstem",
        **more,
    )


@contextmanager
def _told() -> Iterator[None]:
    """The client's errors as ours."""
    try:
        import redis.exceptions as problems
    except ImportError:
        yield
        return
    try:
        yield
    except (problems.AuthenticationError, problems.AuthorizationError) as error:
        raise refused("Redis", str(error), "Correct user or password.") from None
    except (problems.ConnectionError, problems.TimeoutError) as error:
        raise unreachable("Redis", str(error)) from None
    except problems.RedisError as error:
        raise refused("Redis", str(error)) from None
    except ValueError as error:  # what from_url says of a URL
        raise refused("Redis", str(error), "Write for example redis://host:6379/0.") from None
