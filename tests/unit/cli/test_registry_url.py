"""Which registry the commands ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run


def listed(gateway: Gateway, path: str, subject: str) -> None:
    gateway.answer("GET", path, [{"subject": subject, "version": 1, "id": 1, "schema": '"int"'}])


def test_the_one_of_the_gateway(gateway: Gateway, run: Run) -> None:
    listed(gateway, "/registry/schemas", "ours")
    assert "ours" in run("schema", "list").out
    with_password = gateway.url.replace("http://", "http://me:secret@")
    assert "ours" in run("schema", "list", "--url", with_password).out
    assert gateway.requests[-1].headers["authorization"].startswith("Basic ")


def test_the_one_of_the_settings(
    gateway: Gateway, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(gateway, "/elsewhere/schemas", "theirs")
    listed(gateway, "/registry/schemas", "ours")
    settings = f'name = "project"\n[schemas]\nregistry = "{gateway.url}/elsewhere"\n'
    (project / "mainstem.toml").write_text(settings)
    monkeypatch.delenv("MAINSTEM_URL")
    assert "theirs" in run("schema", "list").out
    assert "ours" in run("schema", "list", "--url", gateway.url).out


def test_nobody_answers(run: Run) -> None:
    result = run("schema", "list", "--url", "http://me:secret@127.0.0.1:1")
    assert (result.code, "REGISTRY_UNREACHABLE" in result.err) == (69, True)
    assert "secret" not in result.err


def test_strange_answers(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/registry/schemas", {"not": "a list"})
    assert "REGISTRY_FAILED" in run("schema", "list").err
    gateway.answer("GET", "/registry/config", {"compatibilityLevel": "SIDEWARDS"})
    assert "REGISTRY_FAILED" in run("schema", "config").err
