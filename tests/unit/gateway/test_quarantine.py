"""Pages, replay and discard over REST, with stand-ins for the log and the engine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from mainstem.catalog.entry import Catalog, Entry
from mainstem.config import Settings
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway import replay as replay_module
from mainstem.gateway.app import create_app
from mainstem.gateway.engine import Refitted
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.quarantine import Quarantine, _runs
from mainstem.gateway.quarantine_index import QuarantineIndex
from mainstem.gateway.replay import Replay
from mainstem.gateway.services import Services
from mainstem.log.quarantine import Quarantined
from mainstem.log.settle import Settled, Settlement, State
from mainstem.vocabulary import Record


def entry(id: int, value: bytes, reader: str = "orders", topic: str = "orders") -> Quarantined:
    origin = Record(topic, 0, 100 + id, b"k%d" % id, value, 1_700_000_000_000)
    return Quarantined(id, origin, reader, "decode", "RECORD_NOT_DECODED", f"bad {id}", "2026")


ENTRIES = [
    entry(0, b"bad"),
    entry(1, b'{"id": 1}'),
    entry(2, b"\xff"),
    entry(3, b"bad", "gone"),
    entry(4, b'{"id": 4}', "orders", "no topic"),
]


def test_records_that_a_sink_refused_are_held_against_what_it_reads() -> None:
    texts = (
        "CREATE STREAM orders (id BIGINT) WITH (topic = 'in')",
        "CREATE SINK out FROM orders WITH (connector = 'files', folder = '/x')",
    )
    made = [cast(Create, parse_one(text)).definition for text in texts]
    catalog = Catalog({each.name: Entry(each, "f") for each in made}, 1)
    stream, sink = made
    assert replay_module.decoded_by(catalog, "out", "in") is stream
    assert replay_module.decoded_by(catalog, "orders", "in") is stream
    assert replay_module.decoded_by(catalog, "out", "out") is sink
    assert replay_module.decoded_by(catalog, "gone", "in") is None


class Log:
    """The quarantine in memory: follower, reader and the transaction that settles."""

    def __init__(self) -> None:
        self.known = QuarantineIndex(0)
        for each in ENTRIES:
            self.known.add(each)
        self.settled: list[Settlement] = []
        self.taken: set[int] = set()
        """Ids that another gateway settles just before."""
        self.reads: list[list[int]] = []

    def glance(self) -> QuarantineIndex:
        return self.known

    def index(self) -> tuple[QuarantineIndex, int]:
        return self.known, 0

    def wait_for(self, position: int) -> None:
        for place, settlement in enumerate(self.settled):
            self.known.settle(settlement.entry.id, settlement.state, place)

    def read(self, ids: Sequence[int]) -> Iterator[Quarantined]:
        self.reads.append(list(ids))
        return (e for e in ENTRIES if e.id in ids)

    def settle(self, _: Any, settlements: list[Settlement], known: int, at: float) -> Settled:
        done = [s for s in settlements if s.entry.id not in self.taken]
        self.settled += done
        return Settled(frozenset(s.entry.id for s in done), len(self.settled))


class Engine:
    """Refuses what is not a JSON object; a query puts its own text there."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], bool]] = []

    def refit(self, entries: Sequence[Quarantined], definition: Any, query: Any) -> list[Refitted]:
        self.asked.append(([e.id for e in entries], definition is not None))
        fitted = []
        for each in entries:
            value = each.origin.value if query is None else b'{"mended": 1}'
            bad = definition is not None and not (value or b"").startswith(b"{")
            if query is None or each.id != 1:  # the query leaves 1 out
                problem = "not JSON" if bad else None
                fitted.append(Refitted(each.id, each.origin.key, value, problem))
        return fitted


class Topics:
    def topic(self, name: str) -> Any:
        class Info:
            partitions = 2

        info = Info()
        info.name = name  # type: ignore[attr-defined]
        return info if name == "orders" else None

    def offsets_at(self, topic: str, moment: int) -> dict[int, int]:
        return {0: 3}


class Stub:
    def __init__(self, log: Log, engine: Engine, orders: str = "STREAM orders (id INT)") -> None:
        statement = parse_one(f"CREATE {orders}")
        assert isinstance(statement, Create)
        catalog = Catalog({"orders": Entry(statement.definition, "f")}, 1)
        nothing, topics, follower = cast(Any, None), cast(Any, Topics()), cast(Any, log)
        self.quarantine = Quarantine(nothing, topics, follower)
        self.quarantine.read = log.read  # type: ignore[method-assign]
        self.replay = Replay(
            nothing, topics, cast(Any, engine), self.quarantine, follower, lambda: catalog
        )
        self.settings = Settings(name="shop")
        self.metrics = Metrics(dict, list, lambda: self.quarantine.status()["objects"])

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(replay_module, "settle", log.settle)
    return log


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def stub(log: Log, engine: Engine) -> Stub:
    return Stub(log, engine)


@pytest.fixture
def client(stub: Stub) -> Iterator[TestClient]:
    app = create_app(cast(Services, stub))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as made:
        yield made


def post(client: TestClient, what: str, **request: Any) -> Any:
    return client.post(f"/v1/quarantine/{what}", json=request).json()


def outcomes(answer: Any) -> dict[int, str]:
    return {r["id"]: r["outcome"] for r in answer["records"]}


def test_pages_from_the_newest_down(client: TestClient, log: Log) -> None:
    first = client.get("/v1/quarantine", params={"limit": 2}).json()
    assert [r["id"] for r in first["records"]] == [4, 3]
    second = client.get("/v1/quarantine", params={"limit": 2, "before": first["next"]}).json()
    assert [r["id"] for r in second["records"]] == [2, 1]
    assert log.reads == [[3, 4], [1, 2]]  # no more than what is shown is read
    last = client.get("/v1/quarantine", params={"limit": 2, "before": second["next"]}).json()
    assert ([r["id"] for r in last["records"]], last["next"]) == ([0], None)
    since = client.get("/v1/quarantine", params={"since": "2026-01-01"}).json()
    assert [r["id"] for r in since["records"]] == [4, 3]
    bad = second["records"][0]
    assert (bad["value"], bad["size"], bad["state"]) == ("�", 1, "held")


def test_one_whole_record(client: TestClient) -> None:
    one = client.get("/v1/quarantine/2").json()
    assert one["record"]["value_base64"] == "/w=="
    assert one["record"]["key"] == "k2"
    assert (one["origin"], one["state"], one["settled"]) == ("orders/0/102", "held", None)
    assert client.get("/v1/quarantine/9").json()["title"] == "UNKNOWN_QUARANTINED"


def test_summary(client: TestClient) -> None:
    [all_of_it] = client.get("/v1/quarantine/summary", params={"stream": "gone"}).json()["counts"]
    assert (all_of_it["cause"], all_of_it["held"]) == ("bad #", 1)


def test_over_time(client: TestClient, log: Log) -> None:
    now = int(time.time())
    for name in ("orders", "orders", "gone"):
        log.known.arrivals.add(name, now * 1000)
    answer = client.get("/v1/quarantine/arrivals", params={"stream": "orders"}).json()
    assert answer["step_seconds"] == 3600
    [counted] = answer["counts"]
    assert (counted["object"], counted["records"]) == ("orders", 2)
    assert 0 <= now - counted["at"] <= 3600
    assert client.get("/v1/quarantine/arrivals?step=day").json()["title"] == "BAD_REQUEST"


def test_a_row_of_a_computed_table_is_not_written_by_hand(log: Log, engine: Engine) -> None:
    derived = "TABLE orders (CHECK (n > 0)) AS SELECT id, count(*) AS n FROM s GROUP BY id"
    app = create_app(cast(Services, Stub(log, engine, derived)))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for force in (False, True):
            answer = post(client, "replay", ids=[0], force=force)
            assert outcomes(answer) == {0: "refused"}
            assert "computed" in answer["records"][0]["problem"]


def test_what_fits_is_replayed_and_the_rest_stays_with_the_reason(
    client: TestClient, log: Log
) -> None:
    answer = post(client, "replay", all=True)
    assert outcomes(answer) == {
        0: "refused", 1: "replayed", 2: "refused", 3: "refused", 4: "refused",
    }  # fmt: skip
    problems = {r["id"]: r["problem"] for r in answer["records"]}
    assert problems[0] == "not JSON"
    assert "not there any more" in problems[3] and "not there any more" in problems[4]
    assert (answer["replayed"], answer["refused"], answer["next"]) == (1, 4, None)
    assert [s.entry.id for s in log.settled] == [1]
    again = post(client, "replay", ids=[1])
    assert (outcomes(again), again["records"][0]["problem"]) == ({1: "skipped"}, "already replayed")
    assert len(log.settled) == 1


def test_a_dry_run_writes_nothing(client: TestClient, log: Log) -> None:
    answer = post(client, "replay", ids=[0, 1], dry_run=True)
    assert (answer["replayed"], answer["refused"], answer["dry_run"]) == (1, 1, True)
    assert post(client, "discard", ids=[0], dry_run=True)["discarded"] == 1
    assert log.settled == []


def test_force_asks_nobody_but_needs_a_topic(client: TestClient, log: Log, engine: Engine) -> None:
    answer = post(client, "replay", ids=[0, 3, 4], force=True)
    assert outcomes(answer) == {0: "replayed", 3: "replayed", 4: "refused"}
    assert engine.asked == []
    assert [s.entry.id for s in log.settled] == [0, 3]


def test_a_new_value_is_checked(client: TestClient, log: Log) -> None:
    assert post(client, "replay", ids=[0], value="worse")["refused"] == 1
    answer = post(client, "replay", ids=[2], value='{"id": 2}')
    [done] = answer["records"]
    assert (done["outcome"], done["changed"], done["value"]) == ("replayed", True, '{"id": 2}')
    record = log.settled[0].record
    assert record is not None and (record.key, record.value) == (b"k2", b'{"id": 2}')
    answer = post(client, "replay", ids=[0], value_base64="eyJpZCI6IDJ9")
    assert answer["records"][0]["value"] == '{"id": 2}'


def test_a_query_mends_what_it_takes(client: TestClient) -> None:
    answer = post(client, "replay", ids=[0, 1], sql="SELECT '{}' AS value FROM quarantine")
    assert outcomes(answer) == {0: "replayed", 1: "skipped"}
    assert answer["records"][0]["value"] == '{"mended": 1}'


def test_parts_go_on_where_they_ended(client: TestClient, log: Log) -> None:
    seen: dict[int, str] = {}
    position: dict[str, Any] = {}
    while True:
        answer = post(client, "discard", stream="orders", limit=2, **position)
        seen |= outcomes(answer)
        log.known.add(entry(50 + len(seen), b"came meanwhile"))
        if answer["next"] is None:
            break
        position = {"after": answer["next"], "until": answer["until"]}
    assert seen == {0: "discarded", 1: "discarded", 2: "discarded", 4: "discarded"}


def test_large_records_are_settled_in_parts(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "_MOST_BYTES", 4)
    answer = post(client, "discard", all=True)
    assert (outcomes(answer), answer["next"]) == ({0: "discarded"}, 0)


def test_what_another_gateway_settles_meanwhile_is_skipped(client: TestClient, log: Log) -> None:
    log.taken = {1}
    answer = post(client, "discard", ids=[0, 1])
    assert outcomes(answer) == {0: "discarded", 1: "skipped"}
    assert answer["discarded"] == 1


def test_status_counts_what_is_held(client: TestClient, stub: Stub, log: Log) -> None:
    post(client, "discard", ids=[0])
    assert stub.quarantine.status() == {
        "records": 4,
        "objects": {"orders": 3, "gone": 1},
        "replayed": 0,
        "discarded": 1,
    }
    assert log.known.state(0) == (State.DISCARDED, 0)
    assert 'mainstem_quarantine_held{object="orders"} 3.0' in client.get("/metrics").text


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"ids": []},
        {"ids": [1], "all": True},
        {"ids": [1], "stream": "orders"},
        {"ids": [1, 2], "value": "x"},
        {"stream": "orders", "value": "x"},
        {"ids": [1], "value": "x", "sql": "SELECT 1 AS value"},
        {"ids": [1], "value_base64": "*"},
        {"all": True, "since": "yesterday"},
        {"ids": [-1]},
        {"all": True, "limit": 100_000},
    ],
)
def test_wrong_requests(client: TestClient, request_: dict[str, Any]) -> None:
    assert post(client, "replay", **request_)["title"] == "BAD_REQUEST"


def test_errors_are_problems(client: TestClient, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = client.post("/v1/quarantine/discard", json={"ids": [99]})
    assert (missing.status_code, missing.json()["title"]) == (404, "UNKNOWN_QUARANTINED")
    assert post(client, "replay", all=True, sql="SELECT x FROM y")["title"] == "NOT_SUPPORTED"

    def busy(*_: Any) -> Settled:
        raise MainstemError("QUARANTINE_BUSY")

    monkeypatch.setattr(replay_module, "settle", busy)
    answer = client.post("/v1/quarantine/discard", json={"ids": [0]})
    assert (answer.status_code, answer.json()["title"]) == (409, "QUARANTINE_BUSY")


def test_the_description_has_examples(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/v1/quarantine", "/v1/quarantine/{id}", "/v1/quarantine/summary"):
        assert paths[path]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    body = paths["/v1/quarantine/replay"]["post"]["requestBody"]["content"]["application/json"]
    assert len(body["examples"]) == 3


def test_ids_far_apart_are_read_apart() -> None:
    assert list(_runs([1, 2, 400, 2000, 2001])) == [(1, 400), (2000, 2001)]
    assert list(_runs([])) == []
