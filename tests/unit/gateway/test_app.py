"""The application in this process, with stand-ins for log and PostgreSQL."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from typing import Any, cast

import pytest
import yaml
from starlette.testclient import TestClient
from tests.unit.gateway.world import Stub, sql

from mainstem.config import GatewaySettings, Settings
from mainstem.gateway.app import create_app


def test_late_records_are_taken_in(client: TestClient, stub: Stub) -> None:
    answer = sql(client, "APPLY LATE Home")
    assert answer["message"] == (
        "home: 2 late records taken in: 1 window computed again, 3 rows written"
    )
    assert answer["detail"]["rows"] == 3
    assert stub.entries is not None
    changed = replace(stub.entries.entries["home"], generation=2)
    stub.entries = stub.entries.with_entry(changed)
    assert sql(client, "APPLY LATE home")["message"] == "home: no late record waits"
    assert sql(client, "APPLY LATE hom")["title"] == "UNKNOWN_RELATION"


def test_problem_documents(client: TestClient) -> None:
    answer = client.get("/v1/tables/user/rows")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["title"] == "UNKNOWN_RELATION"
    assert "users" in document["hint"]
    assert document["request_id"] == answer.headers["x-request-id"]


def test_given_request_id_is_kept_and_a_strange_one_is_not(client: TestClient) -> None:
    kept = client.get("/healthz", headers={"X-Request-Id": "abc-1"})
    assert kept.headers["x-request-id"] == "abc-1"
    made = client.get("/healthz", headers={"X-Request-Id": "a b\tc"})
    assert made.headers["x-request-id"] != "a b\tc"


def test_unexpected_error_tells_nothing_and_logs_all(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = client.get("/v1/tables/users/rows?id=boom")
    assert answer.status_code == 500
    assert answer.json()["title"] == "INTERNAL"
    assert "secret" not in answer.text
    assert "a secret inside" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("192.168.1.5", 200),
        ("gateway.example", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8080", 403),
        ("", 403),
    ],
)
def test_host_must_be_ours(client: TestClient, host: str, status: int) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:8080"}, 200),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_changes_from_other_pages_are_refused(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/v1/sql", json={"sql": "SHOW TABLES"}, headers=headers)
    assert answer.status_code == status


def test_no_cors(client: TestClient) -> None:
    answer = client.get("/healthz", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_body_limit(client: TestClient) -> None:
    answer = client.post("/v1/sql", content=b"x" * (33 * 1024 * 1024))
    assert (answer.status_code, answer.json()["title"]) == (413, "BODY_TOO_LARGE")


def test_wrong_requests(client: TestClient) -> None:
    for answer, status, code in (
        (client.get("/nowhere"), 404, "NO_SUCH_PATH"),
        (client.put("/v1/sql"), 405, "METHOD_NOT_ALLOWED"),
        (client.post("/v1/sql", json={}), 400, "BAD_REQUEST"),
        (client.post("/v1/sql", content=b"{"), 400, "BAD_REQUEST"),
        (client.post("/v1/sql", json={"sql": "SHOW TABLES", "x": 1}), 400, "BAD_REQUEST"),
        (client.get("/v1/tables/users/rows?id=1&id=2"), 400, "BAD_REQUEST"),
        (client.get("/v1/tables/users/rows?id=%ff"), 400, "BAD_REQUEST"),
        (client.get("/v1/tables/clicks/rows"), 400, "WRONG_KIND"),
        (client.get("/v1/subscribe?sql=SELECT+1+FROM+users"), 400, "BAD_REQUEST"),
        (client.get("/v1/subscribe?sql=SELECT+*+FROM+x+EMIT+CHANGES"), 404, "UNKNOWN_RELATION"),
        (client.get("/v1/objects/x"), 404, "UNKNOWN_RELATION"),
        (client.get("/page/../errors.toml"), 404, "NO_SUCH_PATH"),
    ):
        assert (answer.status_code, answer.json()["title"]) == (status, code)


def test_before_the_catalog_is_read(client: TestClient, stub: Stub) -> None:
    stub.entries = None
    answer = client.get("/v1/objects")
    assert (answer.status_code, answer.json()["title"]) == (503, "LOG_UNREACHABLE")
    assert answer.headers["retry-after"] == "1"
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_statements(client: TestClient) -> None:
    assert sql(client, "SHOW TABLES")["rows"] == [["users", "users", False, "id", "name"]]
    assert [row[0] for row in sql(client, "SHOW STREAMS")["rows"]] == ["clicks", "home", "talk"]
    assert sql(client, "SHOW FLOWS")["rows"][0][:2] == ["home", "running"]
    assert sql(client, "DESCRIBE users")["rows"] == [
        ["id", "bigint", True, False], ["name", "string", False, True],
    ]  # fmt: skip
    assert sql(client, "SELECT * FROM users")["rows"] == [[1]]
    assert sql(client, "SELECT * FROM users WHERE id = ?", [1])["rows"] == [[1]]
    assert "PostgreSQL" in sql(client, "EXPLAIN SELECT * FROM users")["message"]


@pytest.mark.parametrize(
    ("text", "parameters", "code"),
    [
        ("SELECT * FROM users EMIT CHANGES", [], "BAD_REQUEST"),
        ("SELECT * FROM users WHERE id = ?", [], "BAD_REQUEST"),
        ("SELECT * FROM users WHERE id = ?", [[1]], "BAD_REQUEST"),
        ("SELECT * FROM users", [1], "BAD_REQUEST"),
        ("SHOW TABLES", [1], "BAD_REQUEST"),
        ("SELECT * FROM nobody", [], "UNKNOWN_RELATION"),
        ("SELECT 1; SELECT 2", [], "ONE_STATEMENT_EXPECTED"),
        ("SET x = 1", [], "SQL_NOT_ALLOWED"),
        ("INSERT INTO home VALUES (1)", [], "WRONG_KIND"),
        ("INSERT INTO talk VALUES ('nyc', 'hi')", [], "WRONG_KIND"),
        ("INSERT INTO users (idd) VALUES (1)", [], "UNKNOWN_COLUMN"),
        ("DESCRIBE nobody", [], "UNKNOWN_RELATION"),
        ("EXPLAIN users", [], "NO_FLOW"),
    ],
)
def test_refused_statements(client: TestClient, text: str, parameters: Any, code: str) -> None:
    assert sql(client, text, parameters)["title"] == code


def test_a_query_is_read_once_while_the_catalog_is_the_same(client: TestClient, stub: Stub) -> None:
    text = "SELECT name FROM Users WHERE id = :id"
    for id in (1, 2):
        body = {"sql": text, "parameters": {"id": id}, "limit": 5}
        assert client.post("/v1/sql", json=body).json()["rows"] == [[1]]
    first, second = stub.pull.asked
    assert first.sql is second.sql
    assert (second.parameters, second.limit, second.tables) == ({"id": 2}, 5, ["users"])
    assert stub.entries is not None
    stub.entries = replace(stub.entries, entries={})
    assert sql(client, text, {"id": 1})["title"] == "UNKNOWN_RELATION"


def test_a_query_waits_for_a_receipt(client: TestClient, stub: Stub) -> None:
    stub.pull.at = {"users": {0: 42}}
    body = {"sql": "SELECT * FROM users", "wait_for": "users:0=41"}
    assert client.post("/v1/sql", json=body).json()["rows"] == [[1]]
    late = {**body, "wait_for": "users:0=42", "wait_seconds": 0.01}
    answer = client.post("/v1/sql", json=late)
    assert (answer.status_code, answer.json()["title"]) == (504, "NOT_TAKEN_IN")
    path, header = "/v1/tables/users/rows?id=1", "Mainstem-Wait-For"
    assert client.get(path, headers={header: "users:0=41"}).json()["rows"] == []
    assert client.get(path, headers={header: "no"}).json()["title"] == "BAD_REQUEST"
    assert client.get(path, headers={header: "clicks:0=1"}).json()["title"] == "BAD_REQUEST"
    for wrong in ({"sql": "SHOW TABLES"}, {"sql": "SELECT * FROM clicks"}):
        answer = client.post("/v1/sql", json={**body, **wrong}).json()
        assert answer["title"] in ("BAD_REQUEST", "NOT_SUPPORTED")


def test_an_answer_in_lines(client: TestClient) -> None:
    headers = {"Accept": "application/x-ndjson"}
    answer = client.post("/v1/sql", json={"sql": "SELECT id FROM users"}, headers=headers)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line) for line in answer.text.splitlines()][1:] == [
        [1], {"end": True, "rows": 1, "truncated": False},
    ]  # fmt: skip
    for text in ("SHOW TABLES", "SELECT * FROM clicks"):
        answer = client.post("/v1/sql", json={"sql": text}, headers=headers)
        assert answer.json()["title"] == "BAD_REQUEST"


def test_look_ups_are_read_only(client: TestClient) -> None:
    answer = client.post("/v1/tables/users/rows?id=1")
    assert (answer.status_code, answer.json()["title"]) == (405, "METHOD_NOT_ALLOWED")
    assert client.get("/v1/tables/a/b/rows").json()["title"] == "NO_SUCH_PATH"


def test_records_are_checked_before_any_is_written(client: TestClient, stub: Stub) -> None:
    bad = {"records": [{"value": {"id": 1}}, {"value": {"id": "x"}}]}
    answer = client.post("/v1/streams/users/records", json=bad)
    assert answer.status_code == 422
    assert (answer.json()["index"], answer.json()["path"]) == (1, "value.id")
    assert stub.writer.written == []
    good = {"records": [{"value": {"id": 1}}]}
    assert client.post("/v1/streams/USERS/records", json=good).json() == {
        "written": 1, "offsets": {"0": 0}, "topic": "users", "repeated": False,
        "receipt": "users:0=0",
        "records": [{"partition": 0, "offset": 0}],
    }  # fmt: skip
    assert stub.writer.written == [("users", b'{"id":1}', b'{"id":1}')]
    assert client.post("/v1/streams/home/records", json=good).json()["title"] == "WRONG_KIND"
    assert client.post("/v1/streams/talk/records", json=good).json()["title"] == "WRONG_KIND"


def test_a_wildcard_stream_tells_its_topics(client: TestClient) -> None:
    document = client.get("/v1/objects/talk").json()
    assert (document["topic"], document["wildcard"]) == ("{city}.chat", True)
    assert document["topics"] == ["nyc.chat", "rome.chat"]
    described = sql(client, "DESCRIBE talk")
    assert described["rows"] == [
        ["city", "string", False, False],
        ["text", "string", False, False],
    ]
    assert described["note"] == "reads the topics {city}.chat; now: nyc.chat, rome.chat"
    assert "now: nyc.chat" in sql(client, "SHOW STREAMS")["note"]
    assert client.get("/v1/objects/clicks").json()["topics"] == ["clicks"]


def test_columns_and_what_is_made_of_them(client: TestClient) -> None:
    answer = client.get("/v1/objects/CLICKS/columns").json()
    assert (answer["object"], answer["not_followed"]) == ("clicks", [])
    first = answer["columns"][0]
    assert first["made_of"] == []
    [copy] = first["goes_into"]
    assert copy == {"object": "home", "column": first["name"], "copied": True, "steps": 1}
    assert client.get("/v1/objects/x/columns").json()["title"] == "UNKNOWN_RELATION"


def test_why_a_window_waits(client: TestClient) -> None:
    assert client.get("/v1/objects/home/waiting").json() == {"reasons": []}  # it has none
    assert client.get("/v1/objects/x/waiting").json()["title"] == "UNKNOWN_RELATION"


def test_rules_and_tags_are_shown(client: TestClient) -> None:
    note = sql(client, "DESCRIBE clicks")["note"]
    assert note.splitlines() == [
        "rule user_not_null: `user` IS NOT NULL, else drop; broken by 4 records",
        "rule early: at < '2030-01-01', else fail",
    ]
    [first, second] = client.get("/v1/objects/clicks").json()["rules"]
    assert (first["on_violation"], first["records"]) == ("drop", 4)
    assert (second["condition"], second["records"]) == ("at < '2030-01-01'", None)
    columns = client.get("/v1/objects/users").json()["columns"]
    assert [c["pii"] for c in columns] == [None, "users.name"]
    labels = 'object="clicks",on_violation="drop",rule="user_not_null"'
    assert f"mainstem_rule_broken_total{{{labels}}} 4.0" in client.get("/metrics").text


def test_metrics(client: TestClient) -> None:
    client.get("/v1/tables/users/rows?id=1")
    text = client.get("/metrics").text
    assert 'mainstem_flow_lag_records{flow="home"} 7.0' in text
    assert 'mainstem_flow_rows_in_total{flow="home"} 9.0' in text
    assert 'mainstem_view_lag_records{view="users"} 3.0' in text
    assert 'route="/v1/tables/{name}/rows"' in text


def test_page_and_description(client: TestClient) -> None:
    for path in ("/", "/lineage", "/tables/a%2Fb", "/docs"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        # an attribute cannot load or run anything; the editor writes its widths there
        assert policy.count("unsafe") == policy.count("style-src-attr 'unsafe-inline'") == 1
        assert "<script>" not in answer.text
        assert "https://" not in answer.text
        assert "http://" not in answer.text
    [script] = re.findall(r'src="(/assets/[^"]+[.]js)"', client.get("/").text)
    assert "immutable" in client.get(script).headers["cache-control"]
    for path in ("/assets/none.js", "/assets/..%2Findex.html", "/page/page.js"):
        assert client.get(path).status_code == 404
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/sql", "/v1/subscribe", "/v1/tables/{name}/rows", "/v1/status"} <= paths.keys()


def test_the_asyncapi_document(client: TestClient) -> None:
    answer = client.get("/v1/asyncapi", params={"version": "7"})
    document = answer.json()
    assert document["info"] == {"title": "shop", "version": "7"}
    assert document["operations"]["send_home"]["action"] == "send"
    assert document["servers"]["kafka"]["host"] == "127.0.0.1:20092"
    registry = document["servers"]["kafka"]["bindings"]["kafka"]["schemaRegistryUrl"]
    assert registry == "http://127.0.0.1:8080/registry"
    assert "geheim" not in answer.text
    text = client.get("/v1/asyncapi", params={"format": "yaml", "version": "7"})
    assert text.headers["content-type"].startswith("application/yaml")
    assert yaml.safe_load(text.text) == document
    assert client.get("/v1/asyncapi", params={"format": "xml"}).status_code == 400


def test_other_programs_that_read_a_topic(client: TestClient) -> None:
    answer = client.get("/v1/topics/clicks/groups").json()
    assert answer == {"groups": ["billing"], "not_asked": 0}


def test_a_trial_tells_how_far_it_is(client: TestClient) -> None:
    request = {"schema": '"int"', "schemaType": "AVRO", "last": 5}

    def events(topic: str) -> list[tuple[str, Any]]:
        answer = client.post(f"/v1/topics/{topic}/trial", json=request)
        assert answer.headers["content-type"].startswith("text/event-stream")
        parts = (part.split("\n") for part in answer.text.strip().split("\n\n"))
        return [(p[0].removeprefix("event: "), json.loads(p[2][6:])) for p in parts]

    assert events("clicks") == [
        ("progress", {"read": 0, "of": 5}),
        ("found", {"schema": '"int"', "type": "AVRO"}),
    ]
    assert [(name, data.get("title")) for name, data in events("lost")] == [
        ("progress", None),
        ("error", "ENGINE_UNREACHABLE"),
    ]
    text = (
        "CREATE STREAM a (x INT) WITH (topic = 't.a'); CREATE TABLE b (k INT PRIMARY KEY, v INT);"
        "CREATE STREAM c AS SELECT x FROM a; CREATE STREAM d FROM TOPICS 'd.*' (x INT)"
    )
    answer = client.post("/v1/trial", json={"file": {"path": "a.sql", "text": text}, "last": 7})
    found = [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data:")]
    assert found == [
        {"name": "a", "topic": "t.a", "read": 7, "of": 7},
        {"name": "a", "topic": "t.a", "passed": 1},
        {"name": "b", "topic": "b", "read": 7, "of": 7},
        {"name": "b", "topic": "b", "passed": 2},
    ]
    empty = {"file": {"path": "a.sql", "text": ""}}
    assert client.post("/v1/trial", json=empty).json()["title"] == "BAD_REQUEST"
    # what is wrong from the beginning is no event
    assert client.post("/v1/topics/none/trial", json=request).json()["title"] == "UNKNOWN_TOPIC"
    for bad in ({"last": 0}, {"schemaType": "XML"}, {"schema": ""}):
        assert client.post("/v1/topics/clicks/trial", json=request | bad).status_code in (400, 422)


def test_what_the_gateway_serves(client: TestClient) -> None:
    told = client.get("/v1/project").json()
    assert told["name"] == "shop"
    assert not told["read_only"]
    kinds = {
        (kind["role"], kind["name"]): kind for kind in client.get("/v1/connector-kinds").json()
    }
    postgres = kinds["sink", "postgres"]
    assert "CREATE SINK" in postgres["statement"]
    password = next(option for option in postgres["options"] if option["name"] == "password")
    assert password["secret"]


def test_a_gateway_that_only_shows() -> None:
    stub = Stub()
    stub.settings = Settings(name="shop", gateway=GatewaySettings(read_only=True))
    with TestClient(create_app(cast(Any, stub)), base_url="http://localhost") as client:
        assert client.get("/v1/project").json()["read_only"]
        for method, path in (
            ("POST", "/v1/streams/home/records"),
            ("DELETE", "/v1/objects/home"),
            ("POST", "/v1/apply"),
            ("PUT", "/registry/config"),
            ("POST", "/kafka/v3/clusters/x/topics/y/records"),
        ):
            refused = client.request(method, path, json={})
            assert (refused.status_code, refused.json()["title"]) == (403, "READ_ONLY"), path
        assert client.post("/v1/plan", json={"files": []}).status_code != 403
