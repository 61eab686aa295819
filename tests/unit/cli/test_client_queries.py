"""Answers in types, look-ups by key, the events behind a row: by both clients."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pydantic import BaseModel

import mainstem
from mainstem.client import Answer, Client
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway

COLUMNS = {
    "n": "bigint",
    "amount": "decimal(18,2)",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "share": "double",
    "raw": "binary",
    "tags": "array<date>",
    "by_id": "map<int,decimal(5,1)>",
    "who": "struct<name:string,born:date>",
    "any": "variant",
}
ROW = [
    7, "12345678901234.50", "2026-01-01T10:00:00.5Z", "2026-01-01T10:00:00", "2026-01-31", 0.5,
    "AP8=", ["2026-01-01", None], {"3": 1.5}, {"name": "Ada", "born": "1815-12-10"}, {"x": [1]},
]  # fmt: skip
ANSWER = {
    "kind": "rows",
    "columns": [{"name": name, "type": type_} for name, type_ in COLUMNS.items()],
    "rows": [ROW, [None] * len(ROW)],
    "truncated": True,
    "freshness": {"as_of": "2026-01-01T10:00:01Z", "tables": {}},
}
TYPED = (
    7,
    Decimal("12345678901234.50"),
    datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC),
    datetime(2026, 1, 1, 10),  # noqa: DTZ001 - the column has no zone
    date(2026, 1, 31),
    0.5,
    b"\0\xff",
    [date(2026, 1, 1), None],
    {3: Decimal("1.5")},
    {"name": "Ada", "born": date(1815, 12, 10)},
    {"x": [1]},
)
VISITS = {
    "name": "visits",
    "key": ["page", "day"],
    "columns": [
        {"name": "page", "type": "string"},
        {"name": "day", "type": "date"},
        {"name": "n", "type": "bigint"},
    ],
}


class Visit(BaseModel):
    page: str
    day: date
    n: int


def refused(call: Any, *arguments: Any, **named: Any) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        call(*arguments, **named)
    return caught.value


def test_rows_have_the_types_of_their_columns(gateway: Gateway) -> None:
    gateway.answer("POST", "/v1/sql", ANSWER)
    found = Client(gateway.url).query("SELECT * FROM t WHERE n = :n", {"n": 7}, wait_for="t:0=1")
    assert found.rows == [TYPED, (None,) * len(TYPED)]
    assert found.dicts()[0] == dict(zip(COLUMNS, TYPED, strict=True))
    assert list(found) == found.dicts()
    assert (len(found), found.truncated) == (2, True)
    assert gateway.requests[0].json() == {
        "sql": "SELECT * FROM t WHERE n = :n", "parameters": {"n": 7}, "wait_for": "t:0=1",
    }  # fmt: skip


def test_both_clients_give_the_same(gateway: Gateway) -> None:
    gateway.answer("POST", "/v1/sql", ANSWER)

    async def ask() -> list[Any]:
        async with mainstem.connect_async(gateway.url) as client:
            both = await asyncio.gather(client.query("SELECT 1"), client.query("SELECT 1"))
        return [found.rows for found in both]

    rows = mainstem.connect(gateway.url).query("SELECT 1").rows
    assert asyncio.run(ask()) == [rows, rows]


def test_a_plain_client_works_inside_an_event_loop(gateway: Gateway) -> None:
    """As in a notebook, whose cells run in one."""
    gateway.answer("POST", "/v1/sql", ANSWER)

    async def cell() -> int:
        return len(Client(gateway.url).query("SELECT 1"))

    assert asyncio.run(cell()) == 2


def test_arrow_and_pandas_keep_the_types() -> None:
    table = Answer[Any](ANSWER).arrow()
    assert table.schema.types[:7] == [
        pa.int64(), pa.decimal128(18, 2), pa.timestamp("us", tz="UTC"), pa.timestamp("us"),
        pa.date32(), pa.float64(), pa.binary(),
    ]  # fmt: skip
    assert table.column("at")[0].as_py() == TYPED[2]
    assert table.column("by_id")[0].as_py() == [(3, Decimal("1.5"))]
    assert table.column("who").type == pa.struct([("name", pa.string()), ("born", pa.date32())])
    frame = Answer[Any](ANSWER).pandas()
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"
    assert frame["amount"][0] == TYPED[1]
    assert str(frame["n"].dtype) == "Int64"
    assert frame["day"][0] == TYPED[4]


def test_what_does_not_fit_its_type_is_kept_whole() -> None:
    columns = [{"name": "x", "type": "decimal(5,2)"}, {"name": "v", "type": "variant"}]
    rows = [["123456789.123", 1], ["1", {"a": 2}]]
    table = Answer[Any]({"columns": columns, "rows": rows}).arrow()
    assert table.column("x").to_pylist() == [Decimal("123456789.123"), Decimal(1)]
    assert table.column("v").to_pylist() == ["1", '{"a":2}']


def test_an_answer_without_rows_has_columns() -> None:
    empty = Answer[Any]({**ANSWER, "rows": []})
    assert empty.arrow().schema.names == list(COLUMNS)
    assert empty.pandas().empty


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    error = refused(Answer[Any](ANSWER).polars)
    assert (error.code, error.params["package"]) == ("PACKAGE_MISSING", "polars")


def test_rows_as_objects_of_a_model(gateway: Gateway) -> None:
    document = {"columns": VISITS["columns"], "rows": [["/", "2026-01-31", 2], ["/x", None, 1]]}
    gateway.answer("POST", "/v1/sql", document)
    found = Client(gateway.url).query("SELECT * FROM visits", model=Visit)
    error = refused(found.objects)
    assert (error.code, error.params["index"], error.params["model"]) == (
        "ROW_NOT_A_MODEL", 1, "Visit",
    )  # fmt: skip
    document["rows"].pop()
    assert list(Client(gateway.url).query("S", model=Visit)) == [
        Visit(page="/", day=date(2026, 1, 31), n=2)
    ]


def test_a_row_by_key(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects/visits", VISITS)
    row = {"page": "/", "day": "2026-01-31", "n": 2}
    gateway.answer("GET", "/v1/tables/visits/rows", {"rows": [row]}, {"rows": [row]}, {"rows": []})
    visits = Client(gateway.url).view("visits")
    typed = {"page": "/", "day": date(2026, 1, 31), "n": 2}
    assert visits.get(("/", date(2026, 1, 31)), wait_for="clicks:0=1") == typed
    assert visits.get(page="/", day="2026-01-31", model=Visit) == Visit(**typed)
    assert visits.get({"page": "/", "day": "2026-02-01"}) is None
    first = gateway.sent("GET", "/v1/tables/visits/rows")[0]
    assert first.query == {"page": "/", "day": "2026-01-31"}
    assert first.headers["mainstem-wait-for"] == "clicks:0=1"
    assert len(gateway.sent("GET", "/v1/objects/visits")) == 1
    assert refused(visits.get, "/").code == "BAD_REQUEST"
    assert refused(visits.get).code == "BAD_REQUEST"


def test_rows_by_many_keys_in_their_order(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects/visits", VISITS)
    rows = [["/b", "2026-01-02", 2], ["/a", "2026-01-01", 1]]
    gateway.answer("POST", "/v1/sql", {"columns": VISITS["columns"], "rows": rows})
    keys = [("/a", "2026-01-01"), ("/none", "2026-01-01"), ("/b", date(2026, 1, 2))]
    found = Client(gateway.url).view("visits").get_many(keys)
    assert [row and row["n"] for row in found] == [1, None, 2]
    asked = gateway.sent("POST", "/v1/sql")[0].json()
    assert asked["sql"].count("`page` = ? AND `day` = ?") == 3
    assert asked["parameters"] == [v for page, day in keys for v in (page, str(day))]


def test_a_table_without_a_key_has_no_look_ups(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects/s", {"name": "s", "key": [], "columns": []})
    assert refused(Client(gateway.url).view("s").get, 1).code == "BAD_REQUEST"


def test_the_events_behind_a_row(gateway: Gateway) -> None:
    event = {
        "object": "orders", "kind": "stream", "topic": "orders", "partition": 0, "offset": 4,
        "time": "2026-01-01T10:00:00Z", "schema_id": 7, "payload": {"id": 1}, "note": None,
        "inputs": [],
    }  # fmt: skip
    tree = {**event, "object": "totals", "kind": "table", "inputs": [event, event]}
    told = {"kind": "message", "message": "totals <b>", "detail": {"exact": True, "tree": tree}}
    gateway.answer("POST", "/v1/sql", told)
    client = Client(gateway.url)
    row = client.explain_row("totals", customer="it's \\", table=None)
    assert (row.exact, row.row.object) == (True, "totals")
    assert [(e.topic, e.offset, e.schema_id) for e in row.sources()] == [("orders", 4, 7)] * 2
    assert (str(row), row._repr_html_()) == ("totals <b>", "<pre>totals &lt;b&gt;</pre>")
    sql = gateway.requests[0].json()["sql"]
    assert sql == "EXPLAIN ROW `totals` WHERE `customer` = 'it\\'s \\\\' AND `table` IS NULL"
    parse_one(sql, "<query>")
    assert refused(client.explain_row, "totals").code == "BAD_REQUEST"


def test_subscribed_rows_have_types_and_models(gateway: Gateway, stream: Any) -> None:
    change = {"row": {"page": "/", "day": "2026-01-31", "n": 2}, "key": {"page": "/"}}
    events = [
        ("columns", VISITS["columns"], "t0"),
        ("upsert", change, "t1"),
        ("delete", {"key": {"page": "/"}}, "t2"),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events))
    client = Client(gateway.url)
    typed = [e.row for e in client.subscribe("S", limit=2, since="beginning", on_slow="sample")]
    assert typed == [None, {"page": "/", "day": date(2026, 1, 31), "n": 2}, None]
    assert gateway.requests[0].query == {
        "sql": "S", "snapshot": "true", "limit": "2", "since": "beginning", "on_slow": "sample",
    }  # fmt: skip
    _, made = client.subscribe("S", limit=1, model=Visit)
    assert made.row == Visit(page="/", day=date(2026, 1, 31), n=2)


def test_an_asynchronous_subscription_resumes_by_itself(
    gateway: Gateway, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.client.calling.FIRST_PAUSE", 0.01)
    answers = [
        stream([("append", {"row": {"a": 1}, "key": None}, "t1")], cut=True),
        stream([("append", {"row": {"a": 2}, "key": None}, "t2")]),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: answers.pop(0))

    async def follow() -> list[Any]:
        async with mainstem.connect_async(gateway.url) as client:
            return [e.row["a"] async for e in client.subscribe("S", limit=2)]

    assert asyncio.run(follow()) == [1, 2]
    assert gateway.requests[1].headers["last-event-id"] == "t1"
