"""Sources that run in the engine: each record once, what is none aside, mistakes at the option."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mainstem.connect.capture import Capture
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.connect.targets.target import check_target
from mainstem.engine import writer
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.sources.source import source_flows
from mainstem.engine.status import FlowState
from mainstem.errors import MainstemError
from mainstem.local.stack import Stack
from mainstem.log.producer import Outgoing
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import QUARANTINE_TOPIC

pytestmark = pytest.mark.spark

SECONDS = 120


@pytest.fixture(autouse=True)
def connectors(driver: Driver) -> None:
    def nobody(connector: str) -> Capture:
        raise AssertionError(connector)

    secrets = Secrets(driver.folder, {})  # the engine alone looks them up
    driver.connectors = PlannedConnectors(secrets, nobody, check_target, ask_engine=driver.look)


@pytest.fixture
def name() -> str:
    """Of a source: its topic is called after it, and many tests share the broker."""
    return f"in_{uuid.uuid4().hex[:8]}"


def source(name: str, connector: str, **options: Any) -> str:
    written = {"connector": connector, "partitions": 1, **options}
    options_text = ", ".join(f"\"{k}\" = '{v}'" for k, v in written.items())
    return f"CREATE SOURCE {name} WITH ({options_text});"


def refusal(driver: Driver, statement: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        driver.apply(statement)
    return caught.value


def aside(driver: Driver, name: str) -> list[tuple[str, bytes]]:
    """Cause and value of what a source has put into the quarantine."""
    found = []
    for record in driver.records(QUARANTINE_TOPIC):
        facts = {key: (value or b"").decode() for key, value in record.headers}
        if facts["object"] == f"{name}_events":
            assert (facts["stage"], facts["code"]) == ("source", "NOT_A_RECORD")
            found.append((facts["cause"], record.value or b""))
    return found


def run_again(driver: Driver, name: str) -> None:
    """As after a crash that came before Spark could note that the last batch was done."""
    commits = driver.folder / driver.entry(name).flow_id / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def old(path: Path, content: str) -> None:
    """A file that nobody has touched for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_files_of_all_formats_come_once(driver: Driver, name: str) -> None:
    folder = driver.folder / "data/in"
    old(folder / "a.jsonl", '{"id": 1, "tags": ["x"], "more": 0}\n{broken\n\n{"id": "two"}\n')
    old(folder / "a.csv", 'id;at;name\n1;2026-11-16T10:00:00Z;"a;b"\nx;;\n')
    old(folder / "other.csv", "name\nx\n")
    old(folder / "a.log", "one\n\ntwo")
    rows = {"id": [1, 2], "price": [1.5, None]}
    pq.write_table(pa.table(rows), folder / "a.parquet")
    os.utime(folder / "a.parquet", (1_700_000_000, 1_700_000_000))
    names = {kind: f"{name}_{kind}" for kind in ("jsonl", "csv", "lines", "parquet")}
    at = {"folder": "data/in", "pattern": "*.jsonl"}
    columns = "id BIGINT, tags ARRAY<STRING>"
    driver.apply(source(names["jsonl"], "files", format="jsonl", columns=columns, **at))
    at["pattern"] = "*.csv"
    more = {"header": "true", "delimiter": ";", "event_time": "at", "key": "id"}
    columns = "id INT, at TIMESTAMP, name STRING"
    driver.apply(source(names["csv"], "files", format="csv", columns=columns, **more, **at))
    at["pattern"] = "*.log"
    driver.apply(source(names["lines"], "files", format="lines", **at))
    at["pattern"] = "*.parquet"
    driver.apply(source(names["parquet"], "files", format="parquet", **at))

    def check(more: list[dict[str, Any]]) -> None:
        found = {kind: driver.rows(f"{each}_events") for kind, each in names.items()}
        first = {"id": 1, "tags": ["x"], "file": "a.jsonl", "position": 1}
        assert found["jsonl"] == [first, *more]
        time = "2026-11-16T10:00:00.000000Z"
        [row] = found["csv"]
        assert row == {"id": 1, "at": time, "name": "a;b", "file": "a.csv", "position": 2}
        assert [(r["line"], r["position"]) for r in found["lines"]] == [
            ("one", 1), ("", 2), ("two", 3),
        ]  # fmt: skip
        assert [(r["id"], r["price"], r["position"]) for r in found["parquet"]] == [
            (1, 1.5, 1), (2, None, 2),
        ]  # fmt: skip
        assert driver.keys(f"{names['csv']}_events") == ["1"]
        assert set(driver.keys(f"{names['lines']}_events")) == {"a.log"}
        [broken, misfit] = aside(driver, names["jsonl"])
        assert broken[0].startswith(f'a.jsonl, line 2 is no record of source "{names["jsonl"]}"')
        assert broken[1] == b"{broken"
        assert 'field "id" is not a bigint' in misfit[0]
        refused, unfit = sorted(aside(driver, names["csv"]), reverse=True)
        assert "its header is name" in refused[0]
        assert refused[0].startswith("other.csv is no record")
        assert unfit[1] == b"x;;"

    driver.run()
    check([])
    for each in names.values():
        run_again(driver, each)
    old(folder / "b.jsonl", '{"id": 2}\n')
    driver.run()
    check([{"id": 2, "tags": None, "file": "b.jsonl", "position": 1}])


def test_a_batch_that_fails_reads_the_same_again(
    driver: Driver, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = driver.folder / "data" / "app.log"
    log.parent.mkdir()
    log.write_text("one\ntw")
    options = {"folder": "data", "pattern": "app.log*", "format": "lines", "tail": "true"}
    driver.apply(source(name, "files", **options))

    def fail(point: str, flow: str, batch: int) -> None:
        if point == "before_write":
            message = "the machine is gone"
            raise ConnectionError(message)

    with monkeypatch.context() as crash:
        crash.setattr(writer, "crash_point", fail)
        with pytest.raises(MainstemError):
            driver.run()
    # what was planned is read, under its new name; what came since is for the next batch
    log.rename(log.with_name("app.log.1"))
    with log.with_name("app.log.1").open("a") as file:
        file.write("o\n")
    log.write_text("three\n")
    driver.run()
    driver.run()
    lines = [(row["line"], row["file"], row["position"]) for row in driver.rows(f"{name}_events")]
    assert lines[0] == ("one", "app.log", 1)
    assert sorted(lines[1:]) == [("three", "app.log", 1), ("two", "app.log.1", 2)]


@pytest.mark.parametrize(
    ("options", "code", "option"),
    [
        ({"folder": "/etc", "format": "lines"}, "SOURCE_FOLDER", "folder"),
        ({"folder": "data/missing", "format": "lines"}, "SOURCE_FOLDER", "folder"),
        ({"folder": "data", "format": "jsonl", "pattern": "*.x"}, "SOURCE_NO_COLUMNS", None),
        ({"folder": "data", "format": "parquet", "tail": "true"}, "INVALID_OPTION", "tail"),
        ({"folder": "data", "format": "jsonl", "columns": "file INT"}, "INVALID_OPTION", "columns"),
        ({"folder": "data", "format": "jsonl", "columns": "id WHAT"}, "INVALID_OPTION", "columns"),
        ({"folder": "data", "format": "lines", "key": "id"}, "INVALID_OPTION", "key"),
    ],
)
def test_mistakes_about_files_are_told_at_their_option(
    driver: Driver, name: str, options: dict[str, str], code: str, option: str | None
) -> None:
    (driver.folder / "data").mkdir()
    statement = source(name, "files", **options)
    error = refusal(driver, statement)
    assert error.code == code
    assert error.location is not None
    if option is not None:
        value = statement.index(f"'{options[option]}'", statement.index(f'"{option}"'))
        assert error.location.column == value + 1


class Shop:
    """A schema of the tests' PostgreSQL, and how a source reaches it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self.schema = f"poll_{uuid.uuid4().hex[:8]}"
        facts = psycopg.conninfo.conninfo_to_dict(url)
        secret = folder / "secrets" / "password"
        secret.parent.mkdir()
        secret.write_text(str(facts["password"]))
        self.options = {
            "url": f"jdbc:postgresql://{facts['host']}:{facts['port']}/{facts['dbname']}",
            "user": str(facts["user"]),
            "password": "${file:secrets/password}",
            "table": f"{self.schema}.orders",
            "delay": "0 seconds",
        }
        self.run(f"CREATE SCHEMA {self.schema}")
        self.run(
            f"CREATE TABLE {self.schema}.orders (id bigint PRIMARY KEY, total numeric(10, 2),"
            " note text, changed timestamptz)"
        )

    def run(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)

    def put(self, id_: int, time: str, total: str = "1.50") -> None:
        self.run(
            f"INSERT INTO {self.schema}.orders VALUES ({id_}, {total}, 'it''s', '{time}')"
            " ON CONFLICT (id) DO UPDATE SET changed = excluded.changed, total = excluded.total"
        )


@pytest.fixture
def shop(servers: Stack, driver: Driver) -> Iterator[Shop]:
    made = Shop(servers.endpoints.postgres_url.get_secret_value(), driver.folder)
    yield made
    made.run(f"DROP SCHEMA {made.schema} CASCADE")


def test_rows_of_a_database_come_once(driver: Driver, shop: Shop, name: str) -> None:
    for number in range(1, 8):
        shop.put(
            number, "2026-11-16 10:00:00.000001+00" if number < 6 else "2026-11-16 12:30:00+02"
        )
    both, times, numbers = f"{name}_both", f"{name}_times", f"{name}_numbers"
    options = {**shop.options, "batch_rows": "4"}
    driver.apply(source(both, "jdbc-poll", timestamp="changed", incrementing="id", **options))
    driver.apply(source(times, "jdbc-poll", timestamp="changed", **options))
    query = f"SELECT id, total FROM {shop.schema}.orders WHERE id <> 3"
    del options["table"]
    more = {"query": query, "parallel": "2", "batch_rows": "100"}
    driver.apply(source(numbers, "jdbc-poll", incrementing="id", **{**options, **more}))

    def ids(of: str) -> list[int]:
        return [row["id"] for row in driver.rows(f"{of}_events")]

    driver.run()
    assert ids(both) == [1, 2, 3, 4]
    driver.run()
    assert ids(both) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(ids(times)) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(ids(numbers)) == [1, 2, 4, 5, 6, 7]
    first = driver.rows(f"{both}_events")[0]
    time = "2026-11-16T10:00:00.000001Z"
    assert first == {"id": 1, "total": 1.5, "note": "it's", "changed": time}
    assert driver.keys(f"{both}_events")[0] == "1"
    for each in (both, times, numbers):
        run_again(driver, each)
    # the same time as the last row, and a change of the first one
    shop.put(8, "2026-11-16 10:00:00+00")
    shop.put(9, "2026-11-16 12:30:00+02")
    shop.put(1, "2026-11-16 13:00:00+00", "9")
    driver.run()
    assert ids(both)[7:] == [9, 1]
    assert ids(times)[7:] == [1]  # rows of a time that was passed come with a number alone
    assert sorted(ids(numbers)[6:]) == [8, 9]


def test_mistakes_about_databases_are_told_at_their_option(
    driver: Driver, shop: Shop, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "not-the-password-1")
    good = {**shop.options, "incrementing": "id"}
    elsewhere = "jdbc:postgresql://127.0.0.1:1/shop"
    harmful = f"{good['url']}?socketFactory=org.example.Evil"
    for change, code, option in [
        ({"url": "postgresql://h/db"}, "INVALID_OPTION", "url"),
        ({"url": "jdbc:derby:x"}, "INVALID_OPTION", "url"),
        ({"url": harmful}, "INVALID_OPTION", "url"),
        ({"url": elsewhere}, "CONNECTOR_UNREACHABLE", "url"),
        ({"url": "jdbc:oracle:thin:@//h:1521/db"}, "INVALID_OPTION", "url"),
        ({"table": "missing"}, "SOURCE_NOT_READABLE", "table"),
        ({"incrementing": "idd"}, "INVALID_OPTION", "incrementing"),
        ({"incrementing": "note"}, "INVALID_OPTION", "incrementing"),
        ({"timestamp": "note"}, "INVALID_OPTION", "timestamp"),
        ({"password": "${env:WRONG}"}, "SOURCE_LOGIN_REFUSED", "password"),
    ]:
        statement = source(name, "jdbc-poll", **{**good, **change})
        error = refusal(driver, statement)
        assert (error.code, error.params.get("option")) == (code, option), change
        assert error.location is not None
        value = statement.index(f"'{change[option]}'", statement.index(f'"{option}"'))
        assert error.location.column == value + 1
        assert "not-the-password-1" not in error.render()


COUNTER = """
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec("counter", Role.SOURCE, "Counts.", (
    Field("word", FieldKind.TEXT, "What is counted.", "sheep", required=True),
    Field("step", FieldKind.INTEGER, "How many at a time.", "2", default="2", least=1),
))


class Counter(DataSource):
    @classmethod
    def name(cls):
        return "counter"

    def schema(self):
        return "n BIGINT, word STRING"

    def simpleStreamReader(self, schema):
        return Reader(self.options)


class Reader(SimpleDataSourceStreamReader):
    def __init__(self, options):
        self.word, self.step = options["word"], int(options.get("step", 2))

    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        end = start["n"] + self.step
        return self.readBetweenOffsets(start, {"n": end}), {"n": end}

    def readBetweenOffsets(self, start, end):
        return iter([(n, self.word) for n in range(start["n"], end["n"])])
"""


def test_data_sources_of_spark_and_of_the_project_come_once(driver: Driver, name: str) -> None:
    own = driver.folder / "connectors"
    own.mkdir()
    (own / "counter.py").write_text(COUNTER)
    rate, counter = f"{name}_rate", f"{name}_counter"
    options = {"option.rowsPerBatch": "3", "key": "value"}
    driver.apply(source(rate, "spark", format="rate-micro-batch", **options))
    driver.apply(source(counter, "spark", format="counter", **{"option.word": "sheep"}))
    driver.run()
    assert [row["value"] for row in driver.rows(f"{rate}_events")] == [0, 1, 2]
    for each in (rate, counter):
        run_again(driver, each)
    driver.run()
    assert [row["value"] for row in driver.rows(f"{rate}_events")] == [0, 1, 2, 3, 4, 5]
    counted = driver.rows(f"{counter}_events")
    assert counted[:2] == [{"n": 0, "word": "sheep"}, {"n": 1, "word": "sheep"}]
    assert [row["n"] for row in counted] == list(range(len(counted)))
    word = {"format": "counter", "option.word": "x"}
    for given, code, option in [
        ({"format": "socket"}, "INVALID_OPTION", "format"),
        ({"format": "counter"}, "MISSING_OPTION", "option.word"),
        ({**word, "option.step": "0"}, "INVALID_OPTION", "option.step"),
        ({"format": "counter", "option.wort": "x"}, "UNKNOWN_OPTION", "option.wort"),
        ({"format": "rate", "option.password": "x"}, "SECRET_IN_PLAIN", "option.password"),
    ]:
        error = refusal(driver, source(f"{name}_wrong", "spark", **given))
        assert (error.code, error.params["option"]) == (code, option)
        assert error.location is not None
    (own / "broken.py").write_text("1 / 0")
    assert refusal(driver, source(f"{name}_x", "spark", format="counter")).code == "SOURCE_CODE"


def test_records_of_another_cluster_are_copied_as_they_are(driver: Driver, name: str) -> None:
    driver.send([Event(topic="orders", raw=b'{"id": 1}', key="a", timestamp=1_700_000_000_000)])
    topic = f"{driver.prefix}orders"
    headers = (("trace", b"t-1"), ("empty", None))
    out = Outgoing(b"b", b"not JSON", headers=headers, timestamp=1_700_000_001_000)
    driver._producer.send(topic, [out, Outgoing(b"a", None)])
    servers = driver.connection.servers
    options = {"servers": servers, "format": "json", "columns": "id BIGINT"}
    driver.apply(source(name, "kafka", topics=topic, **options))
    late = f"{name}_late"
    options = {"servers": servers, "start": "2023-11-14T22:13:21Z"}
    driver.apply(source(late, "kafka", pattern=f"{driver.prefix}ord.*", **options))
    driver.run()
    run_again(driver, name)
    driver.run()
    records = {r.key: r for r in driver.records(f"{name}_events") if r.value is not None}
    assert len(driver.records(f"{name}_events")) == 3
    first, second = records[b"a"], records[b"b"]
    assert (first.value, first.timestamp) == (b'{"id": 1}', 1_700_000_000_000)
    assert second.value == b"not JSON"
    assert second.timestamp == 1_700_000_001_000
    assert second.headers[:2] == headers
    name_, place = second.headers[2]
    assert name_ == "mainstem.from"
    assert (place or b"").decode().startswith(f"{topic}/")
    assert b"a" in {r.key for r in driver.records(f"{late}_events")}
    assert first.value not in {r.value for r in driver.records(f"{late}_events")}
    for given, code, option in [
        ({"servers": "127.0.0.1:1", "topics": "x"}, "CONNECTOR_UNREACHABLE", "servers"),
        ({"servers": servers, "topics": "missing"}, "SOURCE_NOT_READABLE", "topics"),
        ({"servers": servers}, "INVALID_OPTION", "servers"),
        ({"servers": servers, "topics": topic, "start": "soon"}, "INVALID_OPTION", "start"),
        ({"servers": servers, "topics": topic, "format": "json"}, "INVALID_OPTION", "format"),
    ]:
        error = refusal(driver, source(f"{name}_wrong", "kafka", **given))
        assert (error.code, error.params["option"]) == (code, option)


def test_a_source_that_fails_says_so_and_goes_on_when_it_can(
    driver: Driver, services: FlowServices, name: str
) -> None:
    folder = driver.folder / "data"
    old(folder / "a.log", "one\n")
    options = {"folder": "data", "pattern": "*.log", "format": "lines", "interval": "1 second"}
    driver.apply(source(name, "files", **options))
    [entry] = [each for each in source_flows(driver.catalog) if each.name == name]
    away = folder.rename(driver.folder / "away")
    flow = Flow(entry, (), services)
    flow.start()

    def is_(state: FlowState) -> Callable[[], bool]:
        def seen() -> bool:
            flow.tick()
            return flow.status.state is state

        return seen

    try:
        eventually(is_(FlowState.RETRYING), SECONDS, what="the flow tells that it cannot read")
        assert flow.status.error is not None
        assert flow.status.error["title"] == "SOURCE_FOLDER"
        away.rename(folder)
        eventually(is_(FlowState.RUNNING), SECONDS, what="the flow goes on")
        old(folder / "b.log", "two\n{}\n")

        def both() -> bool:
            flow.tick()
            return len(driver.rows(f"{name}_events")) == 3

        eventually(both, SECONDS, what="both files are read")
        flow.measure()
        assert flow.status.source == {"files": 2, "waiting_bytes": 0}
        assert flow.status.restarts > 0
        assert flow.status.rows_out_total == 3
    finally:
        flow.stop()
