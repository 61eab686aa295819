"""How a client finds its gateway, and what a notebook shows of its answers."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import mainstem
from mainstem.client import Answer, Client
from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.local.run_file import RunInfo, RunLock

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway

COLUMNS = [{"name": "<b>", "type": "string"}, {"name": "n", "type": "bigint"}]


def refused(call: Any, *arguments: Any, **named: Any) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        call(*arguments, **named)
    return caught.value


def test_the_running_stack_of_the_folder_is_found(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert refused(mainstem.connect).code == "NO_GATEWAY_FOUND"
    lock = RunLock(load_project(project))
    load_project(project).state_folder.mkdir()
    lock.take(lambda: None)
    try:
        info = RunInfo(
            pid=1, bootstrap_servers="", gateway_url="http://127.0.0.1:5", postgres=None,
            started_at="",
        )  # fmt: skip
        lock.publish(info)
        monkeypatch.chdir(project / "pipeline")
        assert mainstem.connect().url == "http://127.0.0.1:5"
        monkeypatch.chdir(tmp_path)
        assert mainstem.connect_async(project=project).url == "http://127.0.0.1:5"
        assert "no mainstem.toml" in refused(mainstem.connect).message
    finally:
        lock.release()


@pytest.mark.parametrize("first", ["mainstem", "mainstem.connect.client"])
def test_connect_is_called_whoever_has_imported_what(first: str) -> None:
    code = f"import mainstem, {first}; print(mainstem.connect('http://127.0.0.1:5').url)"
    code += "; from mainstem import connect; print(connect('http://127.0.0.1:6').url)"
    code += "; import mainstem.connect.secrets; print(mainstem.connect(url='http://[::1]:7').url)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["http://127.0.0.1:5", "http://127.0.0.1:6", "http://[::1]:7"]


def test_an_address_goes_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "mainstem.toml").write_text('name = "p"\n[gateway]\nurl = "http://127.0.0.1:7"\n')
    assert mainstem.connect().url == "http://127.0.0.1:7"
    monkeypatch.setenv("MAINSTEM_URL", "http://127.0.0.1:6")
    assert mainstem.connect().url == "http://127.0.0.1:6"
    assert mainstem.connect(project=project).url == "http://127.0.0.1:7"
    assert mainstem.connect("http://127.0.0.1:5").url == "http://127.0.0.1:5"


def test_a_plan_of_the_folder_is_shown_and_applied(gateway: Gateway, project: Path) -> None:
    planned = {"plan": {}, "digest": "d", "revision": 4, "text": "+ stream s <x>\n", "changes": 1}
    gateway.answer("POST", "/v1/plan", planned)
    gateway.answer("POST", "/v1/apply", {"applied": 1})
    client = Client(gateway.url)
    plan = client.plan()
    assert (plan["changes"], str(plan)) == (1, "+ stream s <x>")
    assert plan._repr_html_() == "<pre>+ stream s &lt;x&gt;</pre>"
    assert client.apply(plan) == {"applied": 1}
    files = [{"path": "pipeline/a.sql", "text": "CREATE STREAM s (a INT);\n"}]
    assert gateway.sent("POST", "/v1/apply")[0].json() == {
        "files": files, "digest": "d", "revision": 4,
    }  # fmt: skip


def test_an_answer_in_a_notebook_is_escaped_and_short() -> None:
    rows = [["<script>", n] for n in range(60)]
    shown = Answer[Any]({"columns": COLUMNS, "rows": rows, "truncated": True})._repr_html_()
    assert "<script>" not in shown
    assert shown.count("<tr>") == 51
    assert "60 rows, and more in the table; the first 50 are shown" in shown
    message = Answer[Any]({"kind": "message", "message": "a < b"})
    assert (message._repr_html_(), repr(message)) == ("<pre>a &lt; b</pre>", "a < b")


class Notebook(ModuleType):
    """IPython.display, as far as it is used: what is on the page, and how often it was drawn."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.page: list[str] = []
        self.drawn = threading.Condition()

    @staticmethod
    def HTML(data: str) -> str:
        return data

    def display(self, shown: str, *, display_id: bool) -> Any:
        assert display_id
        self.update(shown)
        return SimpleNamespace(update=self.update)

    def update(self, shown: str) -> None:
        with self.drawn:
            self.page.append(shown)
            self.drawn.notify_all()

    def wait_for(self, text: str) -> None:
        with self.drawn:
            assert self.drawn.wait_for(lambda: text in self.page[-1], 20), self.page[-1]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    return made


def upsert(page: str, n: int) -> tuple[str, Any, str]:
    return ("upsert", {"row": {"<b>": page, "n": n}, "key": {"<b>": page}}, f"t{n}")


def test_a_live_table_follows_its_rows(gateway: Gateway, stream: Any, notebook: Notebook) -> None:
    hold = threading.Event()
    events = [("columns", COLUMNS, "t0"), *(upsert(f"/{n % 2}", n) for n in range(200))]
    events.append(("delete", {"key": {"<b>": "/0"}}, "t200"))
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events, hold=hold))
    live = Client(gateway.url).live("SELECT * FROM t EMIT CHANGES")
    try:
        notebook.wait_for("live; 1 rows, 201 changes")
        assert live.rows() == [{"<b>": "/1", "n": 199}]
        assert "<td>199</td>" in notebook.page[-1]
        assert "<b>" not in notebook.page[-1]
        assert len(notebook.page) < 20  # 201 changes
        live.stop()
        notebook.wait_for("stopped; 1 rows")
    finally:
        hold.set()
    assert gateway.requests[0].query["on_slow"] == "sample"


def test_a_live_table_of_a_stream_has_the_last_and_says_what_ended_it(
    gateway: Gateway, stream: Any, notebook: Notebook
) -> None:
    problem = {"title": "ENGINE_FAILED", "status": 500, "detail": "gone", "hint": ""}
    events = [("append", {"row": {"<b>": "x", "n": n}, "key": None}, f"t{n}") for n in range(9)]
    events = [("columns", COLUMNS, "t"), *events, ("error", problem, "")]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events))
    live = Client(gateway.url).live("SELECT * FROM s EMIT CHANGES", rows=3)
    notebook.wait_for("ENGINE_FAILED: gone")
    assert [row["n"] for row in live.rows()] == [6, 7, 8]


def test_a_live_table_says_at_once_what_is_wrong(gateway: Gateway, notebook: Notebook) -> None:
    gateway.refuse("GET", "/v1/subscribe", "UNKNOWN_RELATION", 404)
    assert refused(Client(gateway.url).live, "S").code == "UNKNOWN_RELATION"
    assert not notebook.page


def test_a_live_table_needs_a_page(
    gateway: Gateway, stream: Any, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "display", lambda *_, **__: None)  # as in a plain program
    gateway.on("GET", "/v1/subscribe", lambda _: stream([("columns", COLUMNS, "t")]))
    assert refused(Client(gateway.url).live, "S").code == "NOT_SUPPORTED"


def test_a_live_table_needs_ipython(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    error = refused(Client(gateway.url).live, "S")
    assert (error.code, error.params["package"]) == ("PACKAGE_MISSING", "IPython")
