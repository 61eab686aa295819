"""Rows to a webhook: what is posted, posted again, and given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.serving import Quiet, serving

from mainstem.connect.connectors.http import SPEC
from mainstem.connect.targets import http, rest
from mainstem.connect.targets.target import Part, Poison, Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = (Column("id", "int"), Column("name", "string"))
STREAM = Shape("s", COLUMNS)
TABLE = Shape("s", COLUMNS, ("id",), upserts=True, deletes=True)
Answer = tuple[int, dict[str, str]]


@dataclass
class Hook:
    """A receiver; `answer` says what it makes of the rows of a request."""

    url: str = ""
    answer: Callable[[list[Any]], Answer] = lambda rows: (200, {})
    taken: list[list[Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()

    class Handler(Quiet):
        def do_POST(self) -> None:
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.headers.append(dict(self.headers))
            status, more = made.answer(rows)
            if status == 200:
                made.taken.append([row["id"] for row in rows])
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(Handler) as url:
        made.url = f"{url}/hook"
        yield made


@pytest.fixture
def post(
    hook: Hook, part: Callable[..., Part], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Sequence[Poison]]:
    monkeypatch.setattr(rest, "_PAUSES", (0.0, 0.0))

    def take(*batches: pa.Table, shape: Shape = STREAM, **options: Any) -> Sequence[Poison]:
        given = {**SPEC.validate({"url": hook.url}), **options}
        target = http.open_target(given, shape)
        poison: list[Poison] = []
        try:
            target.open(part())
            for rows in batches:
                poison += target.write(rows)
            return [*poison, *target.finish()]
        finally:
            target.close()

    return take


Post = Callable[..., Sequence[Poison]]
Batch = Callable[..., pa.Table]


def test_requests_have_the_same_rows_and_keys_when_they_come_again(
    hook: Hook, post: Post, batch: Batch
) -> None:
    for _ in range(2):
        assert post(batch(1, 2), batch(3, 4, 5), batch_rows=2, authorization="Bearer x") == []
    assert hook.taken == [[1, 2], [3, 4], [5]] * 2
    keys = [headers["Idempotency-Key"] for headers in hook.headers]
    assert keys[:3] == keys[3:] == [f"out-AbCdEfGhIj-0-{o}" for o in ("1-2", "3-4", "5-5")]
    assert hook.headers[0]["Authorization"] == "Bearer x"


def test_changes_of_a_table_say_what_is_deleted(hook: Hook, post: Post, batch: Batch) -> None:
    seen: list[Any] = []

    def answer(rows: list[Any]) -> Answer:
        seen.extend(rows)
        return 200, {}

    hook.answer = answer
    post(batch(1, -2), shape=TABLE)
    assert seen == [{"id": 1, "name": "n1", "_deleted": False}, {"id": 2, "_deleted": True}]


def test_rows_that_are_refused_are_found(hook: Hook, post: Post, batch: Batch) -> None:
    hook.answer = lambda rows: (422 if any(row["id"] in (2, 5) for row in rows) else 200, {})
    poison = post(batch(1, 2, 3, 4, 5))
    assert [(p.offset, p.cause) for p in poison] == [
        (2, "HTTP 422 Unprocessable Entity"),
        (5, "HTTP 422 Unprocessable Entity"),
    ]
    assert sorted(id_ for ids in hook.taken for id_ in ids) == [1, 3, 4]


def test_a_busy_receiver_is_asked_again(hook: Hook, post: Post, batch: Batch) -> None:
    answers = iter([(503, {}), (429, {"Retry-After": "0"}), (200, {})])
    hook.answer = lambda rows: next(answers)
    assert post(batch(1)) == []
    assert hook.taken == [[1]]


@pytest.mark.parametrize(
    ("answer", "code", "wait"),
    [
        ((500, {}), "CONNECTOR_UNREACHABLE", None),
        ((429, {"Retry-After": "60"}), "CONNECTOR_UNREACHABLE", 60.0),
        ((401, {}), "TARGET_REFUSED", None),
        ((302, {"Location": "/x"}), "TARGET_REFUSED", None),
    ],
)
def test_a_receiver_that_does_not_work_is_no_poison(
    hook: Hook, post: Post, batch: Batch, answer: Answer, code: str, wait: float | None
) -> None:
    hook.answer = lambda rows: answer
    with pytest.raises(MainstemError) as caught:
        post(batch(1))
    assert caught.value.code == code
    assert caught.value.params.get("retry_after") == wait


def test_nobody_there(hook: Hook) -> None:
    http.check({"url": hook.url}, STREAM)
    for url, code in (
        ("http://127.0.0.1:1/x", "CONNECTOR_UNREACHABLE"),
        ("ftp://127.0.0.1/x", "INVALID_OPTION"),
    ):
        with pytest.raises(MainstemError) as caught:
            http.check({"url": url}, STREAM)
        assert caught.value.code == code
    assert hook.taken == []


def test_retry_after_is_a_number_or_a_date() -> None:
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert rest.retry_after("7", now) == 7.0
    assert rest.retry_after("Mon, 16 Nov 2026 12:00:30 GMT", now) == 30.0
    assert rest.retry_after("Mon, 16 Nov 2026 11:00:30 GMT", now) == 0.0
    assert rest.retry_after("soon", now) is None
