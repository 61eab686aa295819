from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mainstem.cli.project import project_files
from mainstem.config import load_project
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

EXAMPLE = Path(__file__).parents[3] / "examples" / "shop"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(folder: Path) -> set[str]:
    return {f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file()}


def test_init_makes_a_project_that_loads_and_parses(run: Run, tmp_path: Path) -> None:
    result = run("init", "shop")
    folder = tmp_path / "shop"
    assert (result.code, result.out) == (0, "")
    assert "cd shop" in result.err
    assert "mainstem up" in result.err
    assert load_project(folder).settings.name == "shop"
    statements = [
        statement
        for file in sorted(folder.rglob("*.sql"))
        for statement in parse(file.read_text(), file.name)
    ]
    assert all(isinstance(s, Create) for s in statements)
    made = [s.definition.name for s in statements if isinstance(s, Create)]
    assert made == ["clicks", "orders", "big_orders", "page_visits", "sales_by_product"]
    assert ".mainstem" in (folder / ".gitignore").read_text()


def test_init_without_example(run: Run, tmp_path: Path) -> None:
    assert run("init", "My Shop 2", "--no-example").code == 0
    folder = tmp_path / "My Shop 2"
    assert load_project(folder).settings.name == "my-shop-2"
    assert parse((folder / "pipeline" / "starter.sql").read_text()) == []
    assert names(folder) == {"mainstem.toml", ".gitignore", "README.md", "pipeline/starter.sql"}


def test_init_in_this_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = run("init", ".")
    assert result.code == 0
    assert "cd " not in result.err


def test_init_refuses_a_folder_with_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "precious").write_text("x")
    result = run("init", "shop")
    assert result.code == 1
    assert "FOLDER_NOT_EMPTY" in result.err
    assert names(tmp_path / "shop") == {"precious"}


def test_init_refuses_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("x")
    assert "FOLDER_NOT_EMPTY" in run("init", "shop").err


@pytest.mark.parametrize("name", ["123", "___", "日本"])
def test_init_refuses_a_name_that_no_project_can_have(name: str, run: Run) -> None:
    result = run("init", name)
    assert result.code == 64
    assert "INVALID_PROJECT_NAME" in result.err


def test_the_example_of_the_repository_is_what_init_writes() -> None:
    for path, text in project_files("shop").items():
        assert (EXAMPLE / path).read_text("utf-8") == text, path
