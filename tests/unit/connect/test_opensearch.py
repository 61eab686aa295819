"""Rows as documents of OpenSearch: what is asked for, and what an answer means."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.serving import Quiet, serving

from mainstem.connect.connectors.opensearch import SPEC
from mainstem.connect.targets import opensearch
from mainstem.connect.targets.target import Part, Poison, Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = (Column("id", "int"), Column("name", "string"))
STREAM = Shape("Orders", COLUMNS)
TABLE = Shape("Orders", COLUMNS, ("id",), upserts=True, deletes=True)
Item = dict[str, Any]


@dataclass
class Server:
    """Notes what it is asked; `answer` says what becomes of the document at an offset."""

    url: str = ""
    answer: Callable[[int], Item] = lambda offset: {"status": 201}
    bulks: list[list[Item]] = field(default_factory=list)
    meta: dict[str, Any] | None = None


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(Quiet):
        def say(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def body(self) -> bytes:
            return self.rfile.read(int(self.headers["Content-Length"]))

        def do_GET(self) -> None:
            if made.meta is None:
                self.say(404, {})
            else:
                self.say(200, {"orders": {"mappings": {"_meta": made.meta}}})

        def do_PUT(self) -> None:
            given = json.loads(self.body())
            made.meta = given.get("_meta", made.meta or {})
            self.say(200, {})

        def do_POST(self) -> None:
            lines = [json.loads(line) for line in self.body().splitlines()]
            heads = [line for line in lines if line.keys() & {"index", "delete"}]
            made.bulks.append(lines)
            items = [
                {op: made.answer(about["version"])} for head in heads for op, about in head.items()
            ]
            self.say(200, {"items": items})

    with serving(Handler) as url:
        made.url = url
        yield made


@pytest.fixture
def take(
    server: Server, part: Callable[..., Part], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Sequence[Poison]]:
    monkeypatch.setattr(opensearch, "_PAUSE", 0.0)

    def write(rows: pa.Table, shape: Shape = TABLE, **changes: Any) -> Sequence[Poison]:
        target = opensearch.open_target(SPEC.validate({"url": server.url}), shape)
        try:
            target.open(part(**changes))
            return [*target.write(rows), *target.finish()]
        finally:
            target.close()

    return write


Take = Callable[..., Sequence[Poison]]
Batch = Callable[..., pa.Table]


def test_documents_have_the_key_for_an_id_and_the_offset_for_a_version(
    server: Server, take: Take, batch: Batch
) -> None:
    assert take(batch(1, -2)) == []
    [lines] = server.bulks
    kind = {"version_type": "external_gte"}
    assert lines == [
        {"index": {"_id": "1", "version": 1, **kind}},
        {"id": 1, "name": "n1"},
        {"delete": {"_id": "2", "version": 2, **kind}},
    ]


def test_without_a_key_the_place_is_the_id(server: Server, take: Take, batch: Batch) -> None:
    take(batch(7), STREAM)
    assert server.bulks[0][0]["index"]["_id"] == "AbCdEfGhIj-0-7"


def test_what_became_of_each_document(server: Server, take: Take, batch: Batch) -> None:
    error = {"reason": "failed to parse", "caused_by": {"reason": "not a number"}}
    answers: dict[int, list[Item]] = {
        1: [{"status": 200}],
        2: [{"status": 409}],
        3: [{"status": 404, "result": "not_found"}],
        4: [{"status": 400, "error": error}],
        5: [{"status": 429, "error": {}}, {"status": 503, "error": {}}, {"status": 201}],
    }
    server.answer = lambda offset: answers[offset].pop(0)
    poison = take(batch(1, 2, -3, 4, 5))
    assert [(p.offset, p.cause) for p in poison] == [(4, "failed to parse: not a number")]
    assert [len(lines) for lines in server.bulks] == [9, 2, 2]


@pytest.mark.parametrize(
    ("status", "code"), [(503, "CONNECTOR_UNREACHABLE"), (403, "TARGET_REFUSED")]
)
def test_a_server_that_does_not_work_is_no_poison(
    server: Server, take: Take, batch: Batch, status: int, code: str
) -> None:
    server.answer = lambda offset: {"status": status, "error": {"reason": "blocked"}}
    with pytest.raises(MainstemError) as caught:
        take(batch(1))
    assert (caught.value.code, caught.value.params["problem"]) == (code, "blocked")


def test_an_index_is_filled_from_one_topic(server: Server, take: Take, batch: Batch) -> None:
    take(batch(1), recovering=True)
    assert server.meta is not None
    assert server.meta["mainstem"]["out"]["t"] == "AbCdEfGhIj"
    take(batch(1), recovering=True)
    with pytest.raises(MainstemError) as caught:
        take(batch(1), recovering=True, topics={"t": "made anew"})
    assert caught.value.code == "TARGET_REFUSED"


def test_names_that_no_index_can_have(server: Server) -> None:
    for options, code in (
        ({"url": server.url, "index": "Orders"}, "TARGET_MISMATCH"),
        ({"url": server.url, "index": "_orders"}, "TARGET_MISMATCH"),
        ({"url": "http://127.0.0.1:1"}, "CONNECTOR_UNREACHABLE"),
    ):
        with pytest.raises(MainstemError) as caught:
            opensearch.check(SPEC.validate(options), TABLE)
        assert caught.value.code == code
