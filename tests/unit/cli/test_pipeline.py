from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli import pipeline

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

pytestmark = pytest.mark.usefixtures("project")


def step(kind: str, name: str, *, derived: bool = True, generation: int = 1) -> dict[str, Any]:
    definition = {"name": name, "kind": "table", "query": {"text": "SELECT"} if derived else None}
    return {
        "step": kind,
        "why": "because",
        "entry": {"definition": definition, "generation": generation, "fingerprint": "f"},
    }


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "plan": {"revision": 7, "steps": list(steps), "target": "local", "functions": []},
        "digest": "d1",
        "revision": 7,
        "text": "the plan in words\n" if steps else "No changes.\n",
        "changes": len(steps),
    }


def flow(name: str, state: str, generation: int = 1, **more: Any) -> dict[str, Any]:
    known = {"flow": name, "state": state, "generation": generation, "fingerprint": "f"}
    return {**known, **more}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_POLL_SECONDS", 0.01)


def test_plan_sends_the_files_and_prints_the_text(
    gateway: Gateway, run: Run, project: Path
) -> None:
    (project / "pipeline" / "sub").mkdir()
    (project / "pipeline" / "sub" / "b.sql").write_text("-- ü\n")
    (project / "pipeline" / "notes.txt").write_text("no SQL")
    gateway.answer("POST", "/v1/plan", plan(step("create", "t")))
    result = run("plan")
    assert (result.code, result.out, result.err) == (0, "the plan in words\n", "")
    assert gateway.requests[0].json() == {
        "files": [
            {"path": "pipeline/a.sql", "text": "CREATE STREAM s (a INT);\n"},
            {"path": "pipeline/sub/b.sql", "text": "-- ü\n"},
        ]
    }


@pytest.mark.parametrize(("steps", "code"), [([], 0), ([step("create", "t")], 2)])
def test_plan_with_detailed_exit_code(
    gateway: Gateway, run: Run, steps: list[Any], code: int
) -> None:
    gateway.answer("POST", "/v1/plan", plan(*steps))
    assert run("plan", "--detailed-exitcode").code == code
    assert run("plan").code == 0


def test_plan_as_data(gateway: Gateway, run: Run) -> None:
    answer = plan(step("rebuild", "t"))
    gateway.answer("POST", "/v1/plan", answer)
    assert json.loads(run("plan", "-o", "json").out) == answer
    assert run("plan", "-o", "csv").out == "step,name,kind,why\nrebuild,t,table,because\n"


def test_functions_stand_in_the_plan(gateway: Gateway, run: Run) -> None:
    answer = plan(step("rebuild", "t"))
    answer["plan"]["functions"] = [{"step": "change", "function": {"name": "slug"}}]
    gateway.answer("POST", "/v1/plan", answer)
    assert run("plan", "-o", "csv").out.splitlines()[1:] == [
        "change,slug,function,",
        "rebuild,t,table,because",
    ]


def test_an_error_in_a_definition_has_its_place(gateway: Gateway, run: Run) -> None:
    place = {"file": "pipeline/a.sql", "line": 1, "column": 8, "snippet": "CREATE STREM s"}
    gateway.refuse("POST", "/v1/plan", "SQL_SYNTAX", location=place)
    result = run("plan")
    assert (result.code, result.out) == (3, "")
    assert result.err.splitlines()[:3] == [
        "pipeline/a.sql:1:8: SQL_SYNTAX: what happened",
        "  CREATE STREM s",
        "         ^",
    ]


def test_a_definition_file_that_is_not_text(run: Run, project: Path) -> None:
    (project / "pipeline" / "x.sql").write_bytes(b"\xff\xfe")
    result = run("plan")
    assert result.code == 1
    assert "FILE_UNREADABLE: pipeline/x.sql" in result.err


def test_apply_carries_out_the_plan_that_was_shown(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/plan", plan(step("create", "t", generation=3)))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 8})
    gateway.answer(
        "GET",
        "/v1/status",
        {"flows": []},
        {"flows": [flow("t", "running", 2), flow("other", "failed", 3)]},
        {"flows": [flow("t", "starting", 3)]},
        {"flows": [flow("t", "running", 3)]},
    )
    result = run("apply")
    assert (result.code, result.out) == (0, "")
    assert "1 change applied" in result.err
    sent = gateway.sent("POST", "/v1/apply")[0].json()
    assert (sent["digest"], sent["revision"], len(sent["files"])) == ("d1", 7, 1)
    assert len(gateway.sent("GET", "/v1/status")) == 4


def test_apply_without_changes_applies_nothing(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/plan", plan())
    result = run("apply")
    assert (result.code, result.out) == (0, "No changes.\n")
    assert not gateway.sent("POST", "/v1/apply")


def test_dry_run_applies_nothing(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/plan", plan(step("drop", "t")))
    assert run("apply", "--dry-run").code == 0
    assert not gateway.sent("POST", "/v1/apply")


@pytest.mark.parametrize("kind", ["rebuild", "drop"])
def test_losses_need_a_yes(gateway: Gateway, run: Run, kind: str) -> None:
    gateway.answer("POST", "/v1/plan", plan(step(kind, "t")))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 8})
    result = run("apply", "--no-wait")
    assert result.code == 1
    assert f"CONFIRMATION_NEEDED: this would {kind} t" in result.err
    assert not gateway.sent("POST", "/v1/apply")
    assert run("apply", "--no-wait", "--yes").code == 0


@pytest.mark.parametrize(("reply", "code"), [("y\n", 0), ("n\n", 1)])
def test_losses_are_asked_for_at_a_terminal(
    gateway: Gateway, run: Run, reply: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "interactive", lambda: True)
    gateway.answer("POST", "/v1/plan", plan(step("drop", "t")))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 8})
    result = run("apply", "--no-wait", stdin=reply)
    assert result.code == code
    assert "This will drop t. Go on?" in result.err
    assert bool(gateway.sent("POST", "/v1/apply")) is (code == 0)


def test_a_flow_that_fails_after_apply_is_reported(gateway: Gateway, run: Run) -> None:
    problem = {"title": "ENGINE_FAILED", "status": 500, "detail": "no luck", "hint": "try"}
    gateway.answer("POST", "/v1/plan", plan(step("create", "t")))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 8})
    gateway.answer("GET", "/v1/status", {"flows": [flow("t", "failed", error=problem)]})
    result = run("apply")
    assert result.code == 1
    assert "ENGINE_FAILED: no luck" in result.err


def test_what_a_flow_said_before_the_apply_does_not_count(gateway: Gateway, run: Run) -> None:
    problem = {"title": "SOURCE_CHANGED", "status": 409, "detail": "it has grown", "hint": ""}
    gateway.answer("POST", "/v1/plan", plan(step("change", "t")))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 8})
    gateway.answer(
        "GET",
        "/v1/status",
        {"flows": [flow("t", "failed", fingerprint="old", error=problem)]},
        {"flows": [flow("t", "running")]},
    )
    assert run("apply").code == 0


def test_a_flow_that_never_starts(gateway: Gateway, run: Run) -> None:
    gateway.answer(
        "POST", "/v1/plan", plan(step("create", "t"), step("create", "s", derived=False))
    )
    gateway.answer("POST", "/v1/apply", {"applied": 2, "text": "", "revision": 8})
    gateway.answer("GET", "/v1/status", {"flows": []})
    result = run("apply", "--timeout", "0.2")
    assert result.code == 1
    assert "FLOWS_NOT_RUNNING" in result.err
    assert "do not run yet: t\n" in result.err


def test_a_stale_plan(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/plan", plan(step("create", "t")))
    gateway.refuse("POST", "/v1/apply", "STALE_PLAN", 409)
    assert "STALE_PLAN" in run("apply").err
