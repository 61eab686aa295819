"""Stand-ins for log and PostgreSQL, and a catalog, for tests of the application."""

from __future__ import annotations

from typing import Any, cast

from starlette.testclient import TestClient

from mainstem.catalog.entry import Catalog, Entry
from mainstem.config import Settings
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway.contracts import all_rules
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.pulled import Pulled
from mainstem.gateway.receipts import Once
from mainstem.gateway.sql import Statements
from mainstem.gateway.taken_in import TakenIn
from mainstem.log.connection import Connection
from mainstem.log.delivery import Place
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry
from mainstem.views.observe import ViewProgress
from mainstem.vocabulary import SystemClock


def entry(sql: str) -> Entry:
    statement = parse_one(sql)
    assert isinstance(statement, Create)
    return Entry(statement.definition, "f")


ENTRIES = [
    entry("CREATE TABLE users (id BIGINT, name STRING PII, PRIMARY KEY (id))"),
    entry(
        "CREATE STREAM clicks (user STRING NOT NULL ON VIOLATION drop, at TIMESTAMP,"
        " EXPECT early (at < '2030-01-01') ON VIOLATION fail) WITH (key = 'user')"
    ),
    entry("CREATE STREAM home AS SELECT * FROM clicks"),
    entry("CREATE STREAM talk FROM TOPICS '{city}.chat' (text STRING)"),
]


class Pull:
    async def lookup(self, definition: Any, equal: dict[str, str]) -> bytes:
        if equal.get("id") == "boom":
            raise RuntimeError("a secret inside")
        return f'{{"rows":[],"asked":{len(equal)}}}'.encode()

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.at: dict[str, dict[int, int]] = {}

    async def query(self, ask: Any) -> Any:
        self.asked.append(ask)

        class Answer:
            def to_json(self) -> str:
                return f'{{"kind":"rows","rows":[[{len(ask.tables)}]]}}'

        return Answer()

    async def stream(self, ask: Any) -> Any:
        self.asked.append(ask)

        async def lines() -> Any:
            yield b'{"columns":[{"name":"id","type":"bigint"}],"freshness":{}}\n[1]\n'
            yield b'{"end":true,"rows":1,"truncated":false}\n'

        return lines()

    async def explain(self, ask: Any) -> Any:
        return "Seq Scan on users", ({"message": "an index helps", "sql": "CREATE INDEX ..."},)

    async def positions(self, tables: Any) -> Any:
        return {name: self.at.get(name, {}) for name in tables}

    async def row_estimates(self) -> dict[str, int]:
        return {"users": 3}


class Writer:
    def __init__(self) -> None:
        self.written: list[Any] = []

    def write(self, topic: str, records: list[Any]) -> dict[int, int]:
        self.place(topic, records)
        return {0: len(records) - 1}

    def place(self, topic: str, records: list[Any]) -> list[Place]:
        self.written += [(r.topic or topic, r.key, r.value) for r in records]
        return [Place(r.topic or topic, 0, offset) for offset, r in enumerate(records)]


class Engine:
    """Takes in late records of one flow; others have none."""

    def connectors(self) -> dict[str, Any]:
        """The project has none of its own."""
        return {}

    def apply_late(self, flow: str, definition: Any, inputs: list[Any]) -> dict[str, int]:
        assert [source.name for source in inputs] == ["clicks"]
        if flow == "home.1":
            return {"records": 2, "windows": 1, "rows": 3}
        return {"records": 0, "windows": 0, "rows": 0}

    def try_schema(self, topic: str, schema: Any, last: int) -> Any:
        """Fails before or behind its first word, for some topics."""
        if topic == "none":
            raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
        yield {"read": 0, "of": last}
        if topic == "lost":
            raise MainstemError("ENGINE_UNREACHABLE", seconds=1)
        yield {"found": {"schema": schema.text, "type": schema.type.value}}

    def try_definition(self, definition: Any, last: int) -> Any:
        yield {"read": last, "of": last}
        yield {"found": {"passed": len(definition.columns)}}

    def try_transforms(self, definition: Any, transforms: Any, records: Any) -> dict[str, Any]:
        told = {"record": 1, "result": "passed", "cause": "; ".join(t.shown for t in transforms)}
        return {
            "columns": [column.name for column in definition.columns],
            "records": [{**told, "before": record, "after": None} for record in records],
        }


class Admin:
    """A log with some topics."""

    def matching(self, pattern: Any) -> list[str]:
        return list(filter(pattern.matches, ("nyc.chat", "nyc.loot", "rome.chat")))

    def topics_of(self, definition: Any) -> list[str]:
        return self.matching(definition.pattern)

    def begin_offsets(self, topic: str) -> dict[int, int]:
        return {0: 0}

    def groups(self) -> list[str]:
        return ["billing", "mainstem.home.1", "other"]

    def groups_of(self, topic: str, asked: list[str]) -> list[str]:
        return [group for group in asked if group != "other"]


class Quarantine:
    """Has counted some records of a stream."""

    def broken(self, stream: str) -> dict[str, int]:
        return {"user_not_null": 4} if stream == "clicks" else {}


class Stub:
    """What the routes use of the services."""

    def __init__(self) -> None:
        self.settings = Settings(name="shop")
        self.pull = Pull()
        self.writer = Writer()
        self.once = Once(cast(Any, self.writer), cast(Any, None), SystemClock())
        self.schemas = KnownSchemas(MemoryRegistry())
        self.codec = Codec(self.schemas)
        self.connection = Connection("127.0.0.1:20092", {"sasl.password": "geheim"})
        self.admin = Admin()
        self.quarantine = Quarantine()
        self.broken = self.quarantine.broken
        self.entries: Catalog | None = Catalog({e.name.lower(): e for e in ENTRIES}, 5)
        progress = ViewProgress("users", "users", {0: 1}, {0: 4}, 3, 0, None)
        self.metrics = Metrics(
            lambda: {"home": {"state": "running", "lag_records": 7, "rows_in_total": 9}},
            lambda: [progress],
            rules=lambda: all_rules(self.catalog(), self.broken),
        )
        self.taken_in = TakenIn(self.catalog, cast(Any, self.admin), self.pull.positions, 1.0)
        nothing = cast(Any, None)
        self.engine = cast(Any, Engine())
        self.statements = Statements(
            catalog=self.catalog,
            changes=nothing,
            backfills=nothing,
            engine=self.engine,
            writer=cast(Any, self.writer),
            codec=self.codec,
            admin=cast(Any, self.admin),
            pulled=Pulled(self.catalog, cast(Any, self.pull), self.taken_in),
            statuses=lambda: {"home": {"state": "running", "lag_records": 7}},
            connectors=lambda: [{"name": "shop", "state": "running", "error": None}],
            broken=self.broken,
            index_states=lambda: {("users", "users_name"): "ready"},
            max_rows=10,
            timeout_seconds=1.0,
        )

    def catalog(self) -> Catalog:
        if self.entries is None:
            raise MainstemError("LOG_UNREACHABLE", servers="127.0.0.1:1")
        return self.entries

    def statuses(self) -> dict[str, Any]:
        return {}

    async def health(self) -> dict[str, Any]:
        return {"catalog": {"ok": self.entries is not None, "problem": None}}

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


def sql(client: TestClient, text: str, parameters: Any = ()) -> Any:
    return client.post("/v1/sql", json={"sql": text, "parameters": parameters or []}).json()
