"""Lines without an end: where parts end, and what is told of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.unit.gateway.world import Stub

from mainstem.errors import MainstemError
from mainstem.gateway.ndjson import PART_RECORDS, parts

HEADERS = {"content-type": "application/x-ndjson"}


def taken(chunks: list[bytes], longest: int = 10_000, *, prompt: bool = False) -> list[bytes]:
    async def all_parts() -> list[bytes]:
        left = [*chunks, None]

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            chunk = left.pop(0)
            more = bool(left)
            return {"type": "http.request", "body": chunk or b"", "more_body": more}

        return [part async for part in parts(receive, longest, prompt=prompt)]

    return asyncio.run(all_parts())


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3_000), st.integers(1, 50_000))
def test_parts_depend_on_the_lines_alone(numbers: list[int], size: int) -> None:
    whole = b"".join(b"%d\n" % n for n in numbers)
    cut = [whole[at : at + size] for at in range(0, len(whole), size)]
    found = taken(cut)
    assert found == taken([whole])
    assert b"".join(found) == whole
    assert all(part.count(b"\n") == PART_RECORDS for part in found[:-1])


def test_a_last_line_needs_no_end_and_empty_ones_are_nothing() -> None:
    assert taken([b"1\n\n \r\n", b"2"]) == [b"1\n2\n"]
    assert taken([b"", b"\n"]) == []


def test_lines_that_are_too_long() -> None:
    for chunks in ([b"x" * 11 + b"\n"], [b"x" * 8, b"x" * 8]):
        with pytest.raises(MainstemError) as refused:
            taken(chunks, longest=10)
        assert refused.value.code == "LINE_TOO_LONG"


def lines(*users: str) -> bytes:
    return b"".join(json.dumps({"value": {"user": user}}).encode() + b"\n" for user in users)


def test_forty_megabytes_are_written_and_told_of(client: TestClient, stub: Stub) -> None:
    body = lines(*(("u" * 10_000,) * 4_000))
    assert len(body) > 40_000_000
    answer = client.post("/v1/streams/clicks/records", content=body, headers=HEADERS)
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert told[-1]["done"] and told[-1]["written"] == len(stub.writer.written) == 4_000
    assert sum(one["written"] for one in told[:-1]) == 4_000


def test_what_is_wrong_later_is_a_line(client: TestClient, stub: Stub) -> None:
    body = lines(*(("ann",) * PART_RECORDS)) + b'{"value": {"usr": "bob"}}\n'
    answer = client.post("/v1/streams/clicks/records", content=body, headers=HEADERS)
    *_, last = [json.loads(line) for line in answer.text.splitlines()]
    odd = client.post(
        "/v1/streams/clicks/records", content=b'{"value":\r{"user": "ann"}}\r\n', headers=HEADERS
    )
    assert json.loads(odd.text.splitlines()[-1])["written"] == 1
    del stub.writer.written[-1]
    assert last["error"]["title"] == "INVALID_RECORD" and last["written"] == PART_RECORDS
    assert f"record {PART_RECORDS} " in last["error"]["detail"]
    assert len(stub.writer.written) == PART_RECORDS
    for wrong in (b"", b"[]\n", b"{\n"):
        first = client.post("/v1/streams/clicks/records", content=wrong, headers=HEADERS)
        assert first.status_code in (400, 422), first.text


def test_other_routes_do_not_take_bodies_of_any_length(client: TestClient) -> None:
    body = b" " * (33 * 1024 * 1024)
    answer = client.post("/v1/transactions", content=body, headers=HEADERS)
    assert answer.status_code in (400, 413)
