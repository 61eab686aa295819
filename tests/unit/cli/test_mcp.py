"""The tools for agents, against a gateway in a thread; the protocol has its own file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli.context import Options, Session
from mainstem.errors import MainstemError, catalogue
from mainstem.mcp import resources
from mainstem.mcp.asking import ASKING
from mainstem.mcp.changing import CHANGING
from mainstem.mcp.looking import LOOKING
from mainstem.mcp.sizes import MOST_CHARACTERS, fitted, length, plain
from mainstem.mcp.tool import find

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

TOOLS = (*LOOKING, *ASKING, *CHANGING)
OBJECTS = [
    {"name": "clicks", "kind": "stream", "sink": False, "topic": "clicks", "comment": "raw"},
    {"name": "visits", "kind": "table", "sink": False, "inputs": ["clicks"], "sql": "CREATE ..."},
    {"name": "mail", "kind": "stream", "sink": True, "inputs": ["visits"]},
]
COLUMNS = [{"name": "page", "type": "string"}, {"name": "n", "type": "bigint"}]


def asked_at(seconds_ago: float = 0.0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()


def rows(**more: Any) -> dict[str, Any]:
    return {"kind": "rows", "columns": COLUMNS, "rows": [["/home", 2]], "truncated": False, **more}


@pytest.fixture
def place(gateway: Gateway) -> Session:
    gateway.answer("GET", "/v1/objects", {"objects": OBJECTS})
    return Session(Options(url=gateway.url))


def call(place: Session, name: str, /, **given: Any) -> dict[str, Any]:
    tool = find(TOOLS, name, allow_changes=True)
    assert tool is not None
    return tool.call(place, given)


def code_of(place: Session, name: str, /, **given: Any) -> str:
    with pytest.raises(MainstemError) as caught:
        call(place, name, **given)
    assert caught.value.hint
    return caught.value.code


def sent(gateway: Gateway) -> list[dict[str, Any]]:
    return [request.json() for request in gateway.sent("POST", "/v1/sql")]


# -- the command


def test_without_the_package_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.cli.mcp.find_spec", lambda _: None)
    result = run("mcp")
    assert (result.code, "mainstem[mcp]" in result.err, result.out) == (69, True, "")


# -- asking


def test_a_query_cites_table_age_and_offsets(gateway: Gateway, place: Session) -> None:
    tables = {"visits": {"offsets": {"0": 42, "1": 7}, "lag_records": 3}}
    freshness = {"as_of": asked_at(2.0), "tables": tables}
    gateway.answer("POST", "/v1/sql", rows(freshness=freshness))
    answer = call(place, "query", sql="SELECT * FROM visits WHERE n > ?", parameters=[1], limit=5)
    assert answer["rows"] == [["/home", 2]]
    assert answer["columns"] == COLUMNS
    assert answer["freshness"] == freshness
    assert answer["truncated"] is False
    assert "table visits (offsets 0:42, 1:7; 3 records of its topic behind)" in answer["citation"]
    assert freshness["as_of"] in answer["citation"]
    assert 2.0 <= answer["age_seconds"] < 60
    assert answer["again"] == ['visits AS OF OFFSETS \'{"0": 42, "1": 7}\'']
    asked = {"sql": "SELECT * FROM visits WHERE n > ?", "parameters": [1], "limit": 5}
    assert sent(gateway) == [asked]


def test_a_table_without_records_is_cited_as_such(gateway: Gateway, place: Session) -> None:
    tables = {"visits": {"offsets": {}, "lag_records": None}}
    gateway.answer("POST", "/v1/sql", rows(freshness={"as_of": asked_at(), "tables": tables}))
    answer = call(place, "query", sql="SELECT * FROM visits")
    assert "table visits (no offsets; how far behind is not known)" in answer["citation"]
    assert answer["again"] == []


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DROP TABLE visits", "SQL_NOT_ALLOWED"),
        ("INSERT INTO clicks VALUES ('/home')", "SQL_NOT_ALLOWED"),
        ("PAUSE visits", "SQL_NOT_ALLOWED"),
        ("SELECT 1; DROP TABLE visits", "ONE_STATEMENT_EXPECTED"),
        ("SELECT * FROM visits EMIT CHANGES", "SQL_NOT_ALLOWED"),
        ("SELECT * FROM clicks", "WRONG_KIND"),
        ("SELECT * FROM visits AS OF TIMESTAMP '2026-01-31'", "WRONG_KIND"),
        ("SELECT * FROM visit", "UNKNOWN_RELATION"),
        ("SELEC 1", "SQL_SYNTAX"),
    ],
)
def test_what_is_no_question_to_tables_is_not_sent(
    gateway: Gateway, place: Session, sql: str, code: str
) -> None:
    assert code_of(place, "query", sql=sql) == code
    assert sent(gateway) == []


@pytest.mark.parametrize("tool", ["query", "history"])
def test_more_rows_than_the_limit_are_refused(place: Session, tool: str) -> None:
    assert code_of(place, tool, sql="SELECT * FROM visits", limit=1001) == "INVALID_ARGUMENTS"


def test_history_says_how_much_it_read(gateway: Gateway, place: Session) -> None:
    read = [{"stream": "clicks", "records": 312, "of": 48120}]
    gateway.answer("POST", "/v1/sql", rows(read=read, freshness=None, warnings=["gone"]))
    answer = call(place, "history", sql="SELECT * FROM clicks WHERE _offset > 10")
    assert "312 of 48,120 records of clicks" in answer["citation"]
    assert (answer["read"], answer["warnings"]) == (read, ["gone"])
    assert sent(gateway)[0]["limit"] == 100


def test_history_of_a_table_names_its_moment(gateway: Gateway, place: Session) -> None:
    read = [{"stream": "visits", "records": 2, "of": 3, "at": "offsets 0:42", "warning": None}]
    gateway.answer("POST", "/v1/sql", rows(read=read))
    answer = call(place, "history", sql="SELECT * FROM visits AS OF OFFSETS '{\"0\": 42}'")
    assert "records of visits as of offsets 0:42" in answer["citation"]


def test_a_whole_log_is_read_only_when_that_is_said(gateway: Gateway, place: Session) -> None:
    gateway.answer("POST", "/v1/sql", rows(read=[]))
    assert code_of(place, "history", sql="SELECT * FROM clicks") == "QUERY_UNBOUNDED"
    assert code_of(place, "history", sql="SELECT * FROM visits") == "WRONG_KIND"
    assert sent(gateway) == []
    call(place, "history", sql="SELECT * FROM clicks", whole_log=True)
    assert len(sent(gateway)) == 1


def test_a_sample_is_bounded(gateway: Gateway, place: Session) -> None:
    gateway.answer("POST", "/v1/sql", rows(read=[]))
    call(place, "sample_records", stream="clicks", limit=3)
    (asked,) = sent(gateway)
    assert "FROM clicks WHERE _timestamp >= TIMESTAMP '" in asked["sql"]
    assert asked["limit"] == 3
    assert code_of(place, "sample_records", stream="visits") == "WRONG_KIND"
    for name in ("clicks --", "clicks; DROP TABLE visits", "(SELECT 1)", "clicks, clicks AS b"):
        assert code_of(place, "sample_records", stream=name) in catalogue()
    assert len(sent(gateway)) == 1


def test_explain_sends_nothing_but_explain(gateway: Gateway, place: Session) -> None:
    gateway.answer("POST", "/v1/sql", {"kind": "message", "message": "a plan", "detail": {"a": 1}})
    answer = call(place, "explain", what="SELECT * FROM visits")
    assert answer == {"plan": "a plan", "detail": {"a": 1}}
    assert code_of(place, "explain", what="visits; DROP TABLE visits") == "ONE_STATEMENT_EXPECTED"
    assert [one["sql"] for one in sent(gateway)] == ["EXPLAIN SELECT * FROM visits"]


def test_the_events_behind_a_row(gateway: Gateway, place: Session) -> None:
    node = {"object": "visits", "topic": "visits", "partition": 0, "offset": 4, "time": "T"}
    detail = {"exact": True, "tree": node}
    gateway.answer("POST", "/v1/sql", {"kind": "message", "message": "tree", "detail": detail})
    answer = call(place, "explain_row", table="visits", where="page = '/home'")
    assert "offset 4 of partition 0 of topic visits, from exactly these" in answer["citation"]
    assert (answer["tree"], answer["events"]) == ("tree", detail)
    assert sent(gateway)[0]["sql"] == "EXPLAIN ROW visits WHERE page = '/home'"


# -- looking


def test_objects_by_kind(place: Session) -> None:
    assert [one["name"] for one in call(place, "list_objects")["objects"]] == [
        "clicks",
        "visits",
        "mail",
    ]
    assert [o["name"] for o in call(place, "list_objects", kind="sink")["objects"]] == ["mail"]
    assert code_of(place, "list_objects", kind="x") == "INVALID_ARGUMENTS"
    assert code_of(place, "list_objects", other=1) == "INVALID_ARGUMENTS"


def test_a_table_is_described_with_its_view(gateway: Gateway, place: Session) -> None:
    view = {"name": "visits", "offsets": {"0": 42}, "lag_records": 0}
    gateway.answer("GET", "/v1/objects/visits", OBJECTS[1])
    gateway.answer("GET", "/v1/status", {"flows": [], "views": [view]})
    assert call(place, "describe_object", name="visits")["view"] == view


def test_status_names_what_needs_a_look(gateway: Gateway, place: Session) -> None:
    problem = {"title": "QUERY_FAILED", "detail": "d", "hint": "h"}
    flows = [
        {"flow": "a", "state": "running", "lag_seconds": 1.5},
        {"flow": "b", "state": "running", "lag_seconds": 90, "lag_records": 5},
        {"flow": "c", "state": "failed", "error": problem},
        {"flow": "d", "state": "paused"},
    ]
    views = [{"name": "v", "lag_records": 7, "offsets": {"0": 1}, "error": None}]
    document = {"at": "T", "engine": {"state": "running"}, "flows": flows, "views": views}
    gateway.answer("GET", "/v1/status", {**document, "quarantine": {"records": 2}})
    answer = call(place, "status")
    assert answer["failing"] == [{"flow": "c", "state": "failed", "error": problem}]
    assert [one["flow"] for one in answer["late"]] == ["b"]
    assert (answer["paused"], answer["views_behind"][0]["name"]) == (["d"], "v")
    assert "4 flows, 1 failing, 1 late; 1 views, 1 behind; 2 records in" in answer["citation"]
    assert len(call(place, "status", late_seconds=1)["late"]) == 2


def test_the_quarantine(gateway: Gateway, place: Session) -> None:
    gateway.answer("GET", "/v1/quarantine", {"records": [{"id": 17}], "next": 17})
    gateway.answer("GET", "/v1/quarantine/summary", {"counts": [{"held": 1}]})
    gateway.answer("GET", "/v1/quarantine/17", {"id": 17, "record": {}})
    answer = call(place, "quarantine_list", stream="clicks", limit=1)
    assert answer == {"counts": [{"held": 1}], "records": [{"id": 17}], "next": 17}
    (asked,) = gateway.sent("GET", "/v1/quarantine")
    assert asked.query == {"stream": "clicks", "state": "held", "limit": "1"}
    assert call(place, "quarantine_show", id=17)["id"] == 17


# -- changing


def test_a_server_that_only_reads_refuses_what_changes() -> None:
    for tool in CHANGING:
        with pytest.raises(MainstemError) as caught:
            find(TOOLS, tool.name, allow_changes=False)
        assert caught.value.code == "CHANGES_NOT_ALLOWED"
        assert find(TOOLS, tool.name, allow_changes=True) is tool
    assert not any(tool.changes for tool in (*LOOKING, *ASKING))
    assert find(TOOLS, "drop", allow_changes=True) is None


def test_written_records_have_a_receipt(gateway: Gateway, place: Session) -> None:
    path = "/v1/streams/clicks/records"
    gateway.answer("POST", path, {"written": 2, "receipt": "clicks:0=41"})
    answer = call(place, "produce", stream="clicks", rows=[{"page": "/a"}, {"page": "/b"}])
    assert (answer["written"], answer["receipt"]) == (2, "clicks:0=41")
    assert len(gateway.sent("POST", path)[0].json()["records"]) == 2
    many = [{"page": "/"}] * 1001
    assert code_of(place, "produce", stream="clicks", rows=many) == "INVALID_ARGUMENTS"


@pytest.mark.usefixtures("project")
def test_a_plan_is_applied_only_as_it_was_looked_at(gateway: Gateway, place: Session) -> None:
    step = {"step": "rebuild", "entry": {"definition": {"name": "visits"}}}
    made = {"digest": "d1", "revision": 7, "text": "~ visits", "changes": 1}
    gateway.answer("POST", "/v1/plan", {**made, "plan": {"steps": [step]}})
    gateway.answer("POST", "/v1/apply", {"applied": 1, "revision": 8})
    looked_at = call(place, "plan")
    assert looked_at == {**made, "loses_data": ["rebuild visits"]}
    assert code_of(place, "apply", digest="d1", revision=7) == "LOSS_NOT_AGREED"
    assert gateway.sent("POST", "/v1/apply") == []
    assert call(place, "apply", digest="d1", revision=7, lose_data=True)["applied"] == 1
    sent = gateway.sent("POST", "/v1/apply")[0].json()
    assert (sent["digest"], sent["revision"]) == ("d1", 7)
    assert [file["path"] for file in sent["files"]] == ["pipeline/a.sql"]


def test_a_plan_needs_a_project(place: Session, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert code_of(place, "plan") == "NOT_A_PROJECT"


def test_pause_and_resume(gateway: Gateway, place: Session) -> None:
    for verb in ("pause", "resume"):
        gateway.answer("POST", f"/v1/objects/visits/{verb}", {"message": f"{verb}d"})
        assert call(place, verb, name="visits") == {"message": f"{verb}d"}


# -- resources


def test_definitions_and_errors_can_be_read(gateway: Gateway, place: Session) -> None:
    gateway.answer("GET", "/v1/objects/visits", OBJECTS[1])
    listed = {one.uri: one for one in resources.listed(place)}
    assert listed["mainstem://objects/clicks"].description == "raw"
    assert resources.read(place, "mainstem://objects/visits").text == "CREATE ..."
    everything = resources.read(place, "mainstem://errors").text
    assert all(f"## {code}\n" in everything for code in catalogue())
    one = resources.read(place, "mainstem://errors/QUERY_UNBOUNDED")
    assert "WHERE _timestamp" in one.text
    for uri in ("mainstem://errors/NO", "mainstem://other", "file:///etc/passwd"):
        with pytest.raises(MainstemError) as caught:
            resources.read(place, uri)
        assert caught.value.code == "UNKNOWN_RESOURCE"


def test_without_a_gateway_the_errors_can_be_read() -> None:
    nowhere = Session(Options(url="http://127.0.0.1:9"))
    assert [one.uri for one in resources.listed(nowhere)] == ["mainstem://errors"]


# -- sizes


def test_numbers_keep_their_digits() -> None:
    exact = Decimal("12345678901234567890.123456789")
    value = {"a": [Decimal("1.5"), exact, 7, None, True], "b": Decimal("12.30")}
    assert plain(value) == {"a": [1.5, str(exact), 7, None, True], "b": 12.3}


def test_a_long_answer_is_cut_and_says_so(gateway: Gateway, place: Session) -> None:
    many = [[f"/page/{number}", "x" * 200] for number in range(1_000)]
    freshness = {"as_of": asked_at(), "tables": {"visits": {"offsets": {"0": 1}}}}
    gateway.answer("POST", "/v1/sql", {**rows(freshness=freshness), "rows": many})
    answer = call(place, "query", sql="SELECT * FROM visits", limit=1_000)
    assert length(answer) <= MOST_CHARACTERS + 100
    assert answer["truncated"] is True
    assert answer["cut"] == {"rows": "the first of 1000"}
    assert answer["rows"] == many[: len(answer["rows"])]
    assert len(answer["rows"]) > 50
    assert answer["freshness"] == freshness


def test_long_texts_are_clipped() -> None:
    document = {"record": {"value": "x" * (2 * MOST_CHARACTERS)}, "id": 7}
    cut = fitted(document)
    assert cut["id"] == 7
    assert cut["record"]["value"].endswith("... (98,000 characters more)")
    assert length(cut) < MOST_CHARACTERS
    assert length(fitted({str(n): n for n in range(MOST_CHARACTERS)})) < 200
