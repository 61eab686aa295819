"""The schema commands against our registry, whose topic is a list."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml
from starlette.testclient import TestClient

from mainstem.cli.context import Options, Session
from mainstem.cli.schema_users import topic_of, users
from mainstem.errors import MainstemError
from mainstem.gateway.registry_app import RegistryApp
from mainstem.mcp.looking import LOOKING
from mainstem.schemas.registry_client import RegistryClient
from mainstem.testing.schemas_topic import MemoryTopic

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Request, Run, Stream


def click(*fields: str, default: str | None = None) -> str:
    more = {} if default is None else {"default": default}
    members = [{"name": name, "type": "string", **more} for name in fields]
    return json.dumps({"type": "record", "name": "Click", "fields": members})


def one(name: str, **more: Any) -> dict[str, Any]:
    columns = [{"name": column, "type": "string"} for column in more.pop("columns", ())]
    plain: dict[str, Any] = {"kind": "stream", "function": None, "topic": name, "wildcard": False}
    plain |= {"inputs": [], "columns_read": [], "subject": None}
    return {"name": name, **plain, "columns": columns, **more}


OBJECTS = [
    one("clicks", columns=["user", "page"]),
    one("pages", kind="table", columns=["page", "n"], inputs=["clicks"], columns_read=["page"]),
    one("names", columns=["user"], inputs=["clicks"], columns_read=["user"]),
    one("all_clicks", columns=["user", "page"], inputs=["clicks"], columns_read=["*"]),
    one("after", columns=["n"], inputs=["pages"], columns_read=["page"]),
    one("counts", columns=["m"], inputs=["pages"], columns_read=["n"]),
    one("python", columns=["x"], inputs=["clicks"]),
    one("mail", columns=["batch"], inputs=["clicks"], columns_read=["*"], function="sink"),
]


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch, gateway: Gateway, project: Path) -> None:
    services: Any = type("Services", (), {"registry": MemoryTopic().registry()})()
    inner = RegistryApp(services, rest=None)  # type: ignore[arg-type]
    http = TestClient(inner, base_url="http://127.0.0.1", raise_server_exceptions=False)

    def answer(request: httpx2.Request) -> httpx2.Response:
        found = http.request(
            request.method, str(request.url), content=request.content, headers=dict(request.headers)
        )
        return httpx2.Response(found.status_code, content=found.content)

    transport = httpx2.MockTransport(answer)
    client = RegistryClient("http://127.0.0.1/registry", transport=transport)
    monkeypatch.setattr(Session, "registry", client)
    gateway.answer("GET", "/v1/objects", {"objects": OBJECTS})
    gateway.answer("GET", "/v1/topics/clicks/groups", {"groups": ["billing"], "not_asked": 0})


@pytest.fixture
def clicks(run: Run) -> Path:
    """A subject of two versions; the file is what would be the third."""
    file = Path("click.avsc")
    for fields in (("user",), ("user", "page")):
        file.write_text(click(*fields, default=""))
        assert run("schema", "register", "clicks-value", str(file)).code == 0
    return file


def test_register_list_show(run: Run, clicks: Path) -> None:
    assert run("schema", "list", "-o", "csv").out == (
        "subject,version,id,type\nclicks-value,2,2,AVRO\n"
    )
    shown = run("schema", "show", "clicks-value", "--version", "1")
    assert json.loads(shown.out) == json.loads(click("user", default=""))
    assert "version 1 of 1, 2; AVRO, id 1, BACKWARD" in shown.err
    document = json.loads(run("schema", "show", "clicks-value", "-o", "json").out)
    assert (document["version"], document["versions"], document["level"]) == (2, [1, 2], "BACKWARD")
    result = run("schema", "register", "clicks-value", str(clicks), "-o", "json")
    assert json.loads(result.out) == {"subject": "clicks-value", "version": 2, "id": 2}


def test_register_from_stdin_and_by_type(run: Run) -> None:
    text = 'syntax = "proto3"; message A { int32 a = 1; }'
    assert run("schema", "register", "a", "-", stdin=text).code == 64
    assert run("schema", "register", "a", "-", "--type", "protobuf", stdin=text).code == 0
    assert run("schema", "show", "a").out == text + "\n"
    user = 'syntax = "proto3"; import "a.proto"; message B { A a = 1; }'
    given = ("schema", "register", "b", "-", "--type", "protobuf")
    assert "SCHEMA_REFERENCE_UNKNOWN" in run(*given, stdin=user).err
    assert run(*given, "--reference", "a.proto=a", stdin=user).code == 64
    assert run(*given, "--reference", "a.proto=a:1", stdin=user).code == 0
    # who does not say references means those that there are
    more = user.replace("A a = 1;", "A a = 1; int32 more = 2;")
    assert "version 2" in run(*given, stdin=more).err


def test_what_cannot_be_read(run: Run, clicks: Path) -> None:
    assert "FILE_UNREADABLE" in run("schema", "register", "s", "none.avsc").err
    clicks.write_text('{"type": "record"')
    result = run("schema", "register", "s", str(clicks))
    assert result.code == 1
    assert "SCHEMA_MALFORMED" in result.err
    assert "SUBJECT_UNKNOWN" in run("schema", "show", "none").err
    assert "SCHEMA_VERSION_UNKNOWN" in run("schema", "show", "clicks-value", "--version", "9").err


def test_delete(run: Run, clicks: Path) -> None:
    assert "1 version of" in run("schema", "delete", "clicks-value", "--version", "2").err
    assert "clicks-value,1," in run("schema", "list", "-o", "csv").out
    assert run("schema", "list", "--deleted", "-o", "csv").out == (
        "subject,version,id,type,deleted\nclicks-value,1,1,AVRO,false\nclicks-value,2,2,AVRO,true\n"
    )
    again = ("schema", "delete", "clicks-value", "--version", "2")
    assert "SCHEMA_VERSION_SOFT_DELETED" in run(*again).err
    assert "CONFIRMATION_NEEDED" in run(*again, "--permanent").err
    assert run(*again, "--permanent", "--yes").code == 0
    assert (
        "SUBJECT_NOT_SOFT_DELETED"
        in run("schema", "delete", "clicks-value", "--permanent", "--yes").err
    )
    assert "1 version of" in run("schema", "delete", "clicks-value").err
    assert run("schema", "list", "-o", "jsonl").out == ""


def test_config(run: Run, clicks: Path) -> None:
    def level(*arguments: str) -> str:
        return str(json.loads(run("schema", "config", *arguments, "-o", "json").out)["level"])

    assert level() == "BACKWARD"
    assert level("clicks-value", "full") == "FULL"
    assert level("--for-all", "NONE") == "NONE"
    assert level("clicks-value") == "FULL"
    assert level("clicks-value", "--reset") == "NONE"
    assert level("--reset") == "BACKWARD"
    assert "COMPATIBILITY_INVALID" in run("schema", "config", "clicks-value", "SIDEWARDS").err
    assert run("schema", "config", "clicks-value", "FULL", "--reset").code == 64
    assert run("schema", "config", "clicks-value", "--for-all", "FULL").code == 64


def test_a_break_says_whom(run: Run, clicks: Path) -> None:
    assert run("schema", "check", str(clicks), "--subject", "clicks-value").code == 0
    clicks.write_text(
        click("user", "page").replace(
            '"name": "page", "type": "string"', '"name": "page", "type": "int"'
        )
    )
    result = run("schema", "check", str(clicks), "--subject", "clicks-value")
    assert result.code == 4
    assert "breaks the rule BACKWARD of clicks-value" in result.out
    assert "version 2, BACKWARD: Click.page: " in result.out
    assert (
        "used by: clicks (stream), pages (table), all_clicks (stream), python (stream),"
        " mail (sink), after (stream)\n" in result.out
    )
    assert "consumer groups: billing; of which fields they use nothing is known" in result.out
    document = json.loads(
        run("schema", "check", str(clicks), "--subject", "clicks-value", "-o", "json").out
    )
    assert document[0]["compatible"] is False
    assert document[0]["breaks"][0]["field"] == "page"
    assert document[0]["breaks"][0]["version"] == 2
    assert (document[0]["consumers"], document[0]["records"]) == (["billing"], None)


def test_who_uses_it_may_not_be_known(run: Run, gateway: Gateway, clicks: Path) -> None:
    gateway.refuse("GET", "/v1/objects", "INTERNAL", 500)
    gateway.refuse("GET", "/v1/topics/clicks/groups", "INTERNAL", 500)
    clicks.write_text(click("user", "added"))
    result = run("schema", "check", str(clicks), "--subject", "clicks-value")
    assert result.code == 4
    assert "used by: not known" in result.out
    assert "consumer groups: not known" in result.out


def test_the_last_records_are_asked(
    run: Run, gateway: Gateway, clicks: Path, stream: type[Stream]
) -> None:
    sample = {"topic": "clicks", "partition": 1, "offset": 7, "path": "page", "reason": "no"}
    reason = {"path": "page", "rule": "string", "reason": "no", "count": 2, "samples": [sample]}
    found: dict[str, Any] = {"passed": 8, "failed": 2, "deletions": 0, "reasons": [reason]}
    asked: list[Any] = []

    def answer(*events: tuple[str, Any]) -> None:
        def handle(request: Request) -> Stream:
            asked.append(request.json())
            return stream([(*event, "") for event in events])

        gateway.on("POST", "/v1/topics/clicks/trial", handle)

    answer(("progress", {"read": 5, "of": 10}), ("found", found))
    given = ("schema", "check", str(clicks), "--subject", "clicks-value", "--last", "10")
    result = run(*given)
    assert result.code == 4
    assert "8 of the last 10 records of clicks would pass, 2 would not:" in result.out
    assert "2 x page: no (string)\n      such as partition 1 offset 7" in result.out
    assert (asked[0]["last"], asked[0]["schema"]) == (10, clicks.read_text())
    document = json.loads(run(*given, "-o", "json").out)
    assert document[0]["records"] == {"topic": "clicks", **found}
    answer(("found", {**found, "failed": 0, "reasons": []}))
    result = run(*given)
    assert (result.code, result.out) == (0, "")
    assert "8 of the last 8 records of clicks would pass" in result.err
    answer(("progress", {"read": 0, "of": 10}))
    assert "NOT_A_GATEWAY" in run(*given).err
    assert run("schema", "check", str(clicks), "--subject", "shop.Order", "--last", "1").code == 64


def test_the_last_records_and_definitions(run: Run, gateway: Gateway, stream: type[Stream]) -> None:
    file = Path("orders.sql")
    file.write_text("CREATE STREAM orders (id INT)")
    reason = {"path": "", "rule": "id_check", "reason": "no", "count": 2, "samples": []}
    about = {"name": "orders", "topic": "shop.orders"}
    found = {**about, "passed": 8, "failed": 2, "deletions": 0, "reasons": [reason]}
    events = [("progress", {**about, "read": 0, "of": 9}, ""), ("found", found, "")]
    gateway.on("POST", "/v1/trial", lambda _: stream(events))
    result = run("schema", "check", str(file), "--last", "10")
    assert result.code == 4
    assert "orders.sql: orders\n  8 of the last 10 records of shop.orders" in result.out
    [asked] = gateway.sent("POST", "/v1/trial")
    assert asked.json() == {
        "file": {"path": "orders.sql", "text": file.read_text()}, "last": 10,
    }  # fmt: skip
    document = json.loads(run("schema", "check", str(file), "--last", "10", "-o", "json").out)
    assert document == [{"file": "orders.sql", "definition": "orders", "records": found}]
    assert run("schema", "check", str(file)).code == 64


def test_wildcard_streams_read_the_topic_too(run: Run, gateway: Gateway, clicks: Path) -> None:
    chat = one("chat", columns=["page"], topic="", wildcard=True)
    gateway.answer("GET", "/v1/objects", {"objects": [chat]})
    gateway.answer("GET", "/v1/objects/chat", {**chat, "topics": ["clicks", "other"]})
    clicks.write_text(click("user", "page").replace('"string"', '"int"'))
    result = run("schema", "check", str(clicks), "--subject", "clicks-value")
    assert "used by: chat (stream)" in result.out


def test_check_a_folder(run: Run, clicks: Path) -> None:
    assert "NO_SCHEMA_FILES" in run("schema", "check").err
    folder = Path("schemas")
    folder.mkdir()
    (folder / "clicks-value.avsc").write_text(click("user", "page", "more", default=""))
    (folder / "a%2Fb.json").write_text('{"type": "object"}')
    result = run("schema", "check")
    assert (result.code, result.out) == (0, "")
    assert "the first version of a/b" in result.err
    assert "may follow version 2 of clicks-value (BACKWARD)" in result.err
    (folder / "bad.proto").write_text("message {")
    result = run("schema", "check", "schemas")
    assert result.code == 1
    assert "bad.proto: SCHEMA_MALFORMED" in result.err
    (folder / "clicks-value.avsc").write_text(click("other"))
    assert run("schema", "check", "schemas").code == 4
    assert run("schema", "check", "schemas", "--subject", "x").code == 64


def test_the_hook_and_the_job_of_the_docs(run: Run, clicks: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "schemas.md").read_text("utf-8")
    job, hooks = (yaml.safe_load(part.partition("```")[0]) for part in text.split("```yaml\n")[1:])
    [hook] = hooks["repos"][0]["hooks"]
    [step] = [s["run"] for s in job["jobs"]["schemas"]["steps"] if "schema" in s.get("run", "")]
    Path("schemas").mkdir()
    file = Path("schemas/clicks-value.avsc")
    assert re.match(hook["files"], str(file))
    for fields, code in ((("user", "page", "more"), 0), (("other",), 4)):
        file.write_text(click(*fields, default="" if code == 0 else None))
        for command in ([*hook["entry"].split(), str(file)], step.partition("#")[0].split()):
            assert command[0] == "mainstem"
            assert run(*command[1:]).code == code


def test_transitive_levels_name_each_version(run: Run, clicks: Path) -> None:
    run("schema", "config", "clicks-value", "BACKWARD_TRANSITIVE")
    clicks.write_text(click("user", "page", "added"))
    out = run("schema", "check", str(clicks), "--subject", "clicks-value").out
    assert "version 1, BACKWARD" in out
    assert "version 2, BACKWARD" in out


def test_diff(run: Run, clicks: Path) -> None:
    result = run("schema", "diff", "clicks-value")
    assert "+ Click.page: field added" in result.out
    assert "version 1 -> version 2: 1 change, compatible under BACKWARD" in result.err
    back = run("schema", "diff", "clicks-value", "--from", "2", "--to", "1", "-o", "json")
    document = json.loads(back.out)
    assert document["changes"][0]["action"] == "removed"
    assert document["compatible"] is True
    other = Path("other.avsc")
    other.write_text(click("user", "page", "third"))
    result = run("schema", "diff", str(clicks), str(other))
    assert (result.code, "BREAKING" in result.out) == (0, True)
    assert "compatible" in run("schema", "diff", str(clicks), str(other), "--level", "none").err
    assert "COMPATIBILITY_INVALID" in run("schema", "diff", "clicks-value", "--level", "x").err
    assert run("schema", "diff", "clicks-value", "--to", "1").code == 64


@pytest.mark.usefixtures("clicks")
def test_agents_see_the_same(gateway: Gateway) -> None:
    place = Session(Options(url=gateway.url))
    tools = {tool.name: tool for tool in LOOKING}
    shown = tools["schema_show"].call(place, {"subject": "clicks-value", "version": 1})
    assert (shown["version"], shown["versions"], shown["type"]) == (1, [1, 2], "AVRO")
    changed = tools["schema_diff"].call(place, {"subject": "clicks-value"})
    assert (changed["older"], changed["newer"], changed["compatible"]) == (1, 2, True)
    assert changed["changes"][0]["action"] == "added"
    with pytest.raises(MainstemError, match="no version before 1"):
        tools["schema_diff"].call(place, {"subject": "clicks-value", "newer": 1})


def test_evolve(run: Run, clicks: Path) -> None:
    clicks.write_text(click("user", "page", "more", default=""))
    given = ("schema", "evolve", "clicks-value", str(clicks))
    assert "CONFIRMATION_NEEDED" in run(*given).err
    dry = run(*given, "--dry-run")
    assert (dry.code, "+ Click.more: field added" in dry.out) == (0, True)
    assert "clicks-value,2," in run("schema", "list", "-o", "csv").out
    result = run(*given, "--yes")
    assert (result.code, "clicks-value: version 3, id 3" in result.err) == (0, True)
    clicks.write_text(click("other"))
    assert run(*given, "--yes").code == 4
    assert "clicks-value,3," in run("schema", "list", "-o", "csv").out


def test_topics_and_users() -> None:
    assert [topic_of(name) for name in ("a-value", "a-b-key", "shop.Order", "-value")] == [
        "a",
        "a-b",
        None,
        None,
    ]
    objects = [{**each, "topics": [each["topic"]]} for each in OBJECTS]
    assert users(objects, "clicks-value", "USER")[:2] == ["clicks (stream)", "names (stream)"]
    assert users(objects, "clicks-value", "none") == []
    assert "counts (stream)" in users(objects, "clicks-value", None)
    assert users(objects, "other-value", None) == []
    named = [
        {**each, "subject": "shop.Click" if each["name"] == "clicks" else None} for each in objects
    ]
    assert users(named, "shop.Click", "user")[:2] == ["clicks (stream)", "names (stream)"]
    assert users(named, "clicks-value", None) == []
    assert "clicks (stream)" in users(named, "clicks-key", None)


def test_infer_and_to_sql(run: Run, clicks: Path) -> None:
    samples = '{"id": 1, "at": "2026-01-01"}\n{"id": 2}\n[{"id": 3}]'
    found = run("schema", "infer", "-", "--name", "Event", stdin=samples)
    assert json.loads(found.out)["name"] == "Event"
    Path("events-value.json").write_text(
        run("schema", "infer", "-", "--type", "json", stdin=samples).out
    )
    result = run("schema", "to-sql", "events-value.json")
    assert result.out == (
        "CREATE STREAM events (\n  id BIGINT,\n  at DATE\n) WITH (format = 'json_schema');\n"
    )
    assert "CREATE STREAM clicks (" in run("schema", "to-sql", "clicks-value").out
    clicks.write_text(
        click("a")
        .replace('"string"', '["int", "string"]')
        .replace("}]", '}, {"name": "b", "type": "int"}]')
    )
    result = run("schema", "to-sql", str(clicks), "--topic", "t")
    assert "left out: a: it is one of several types" in result.err
    assert "SUBJECT_UNKNOWN" in run("schema", "to-sql", "none").err
    assert "class Click(BaseModel):" in run("schema", "to-python", "clicks-value").out


@pytest.mark.parametrize("text", ['{"a": 1}\n{"a": ', '{"a": NaN}', "[" * 100_000])
def test_samples_that_are_not_json(run: Run, text: str) -> None:
    result = run("schema", "infer", "-", stdin=text)
    assert (result.code, "FILE_UNREADABLE" in result.err) == (1, True)


SQL = """
CREATE STREAM clicks (user STRING, at TIMESTAMP) WITH (format = 'avro');
CREATE STREAM plain (id INT);
CREATE STREAM big WITH (format = 'avro') AS SELECT id FROM plain;
"""


def test_from_sql(run: Run) -> None:
    Path("p.sql").write_text(SQL)
    made = json.loads(run("schema", "from-sql", "p.sql", "--name", "Clicks").out)
    assert (made["name"], made["fields"][1]["type"][1]["type"]) == ("clicks", "long")
    assert json.loads(run("schema", "from-sql", "p.sql", "--name", "plain").out)["title"] == "plain"
    first = SQL.partition(";")[0]
    text = run("schema", "from-sql", "-", "--type", "protobuf", stdin=first).out
    assert "message clicks {" in text
    assert run("schema", "from-sql", "p.sql").code == 64
    assert "SCHEMA_NOT_DERIVED" in run("schema", "from-sql", "p.sql", "--name", "big").err
    assert "UNKNOWN_RELATION" in run("schema", "from-sql", "p.sql", "--name", "none").err
    short = "CREATE STREAM s (id TINYINT)"
    assert "NOT_SUPPORTED" in run("schema", "from-sql", "-", "--type", "avro", stdin=short).err


def test_from_sql_of_a_running_object(run: Run, gateway: Gateway) -> None:
    answer = one(
        "big", columns=["id", "name"], format="protobuf", record="shop.Big", sql="CREATE ...",
        subject_strategy="record_name", file="p.sql", line=1,
    )  # fmt: skip
    gateway.answer("GET", "/v1/objects/big", answer)
    text = run("schema", "from-sql", "big").out
    assert "package shop;" in text
    assert "optional string name = 2;" in text
    Path("shop.Big.proto").write_text(text.replace("name = 2", "name = 7"))
    assert run("schema", "register", "shop.Big", "shop.Big.proto").code == 0
    assert "optional string name = 7;" in run("schema", "from-sql", "big").out
    sql = run("schema", "to-sql", "shop.Big", "--topic", "t").out
    assert "record = 'shop.Big', subject_strategy = 'record_name'" in sql
    assert "record" not in run("schema", "to-sql", "shop.Big.proto", "--topic", "t").out
    sql = run("schema", "to-sql", "shop.Big.proto", "--topic", "t", "--record", "shop.Big").out
    assert "record = 'shop.Big');" in sql
