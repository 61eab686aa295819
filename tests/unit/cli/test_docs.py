from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "generate-docs"


def test_generated_pages_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")  # the pages do not depend on the terminal
    stale = runpy.run_path(str(SCRIPT))["stale"]()
    assert [path.name for path in stale] == []


def test_every_code_and_command_has_its_place() -> None:
    from mainstem.errors import catalogue

    pages = {path.name: text for path, text in runpy.run_path(str(SCRIPT))["pages"]().items()}
    assert all(f"### {code}\n" in pages["errors.md"] for code in catalogue())
    assert "## mainstem consume\n" in pages["cli.md"]
    assert "| `bootstrap_servers` |" in pages["settings.md"]
