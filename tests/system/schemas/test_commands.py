"""The schema commands, as a person or CI runs them, against the registry of a gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.system.schemas.conftest import Gateway

pytestmark = pytest.mark.kafka


def record(*fields: tuple[str, str, object]) -> str:
    members = [{"name": name, "type": kind, "default": value} for name, kind, value in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": members})


def test_a_schema_from_its_first_version_to_a_break(gateway: Gateway, tmp_path: Path) -> None:
    topic = f"orders_{uuid.uuid4().hex[:8]}"
    subject = f"{topic}-value"
    url = gateway.registry.removesuffix("/registry")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mainstem.cli", "schema", *arguments, "--url", url],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ,
            timeout=120,
            check=False,
        )

    file = tmp_path / f"{subject}.avsc"
    file.write_text(record(("id", "long", 0)))
    first = run("register", subject, str(file), "-o", "json")
    assert json.loads(first.stdout)["version"] == 1, first.stderr
    file.write_text(record(("id", "long", 0), ("at", "long", 0)))
    assert run("check", str(file)).returncode == 0
    evolved = run("evolve", subject, str(file), "--yes")
    assert "version 2" in evolved.stderr, evolved.stderr
    assert "+ Order.at: field added" in run("diff", subject).stdout
    assert run("config", subject, "FULL_TRANSITIVE").returncode == 0

    file.write_text(record(("id", "long", 0), ("at", "string", "")))
    broken = run("check", str(file), "-o", "json")
    assert broken.returncode == 4, broken.stderr
    found = json.loads(broken.stdout)[0]["breaks"]
    assert {(one["version"], one["path"]) for one in found} == {(2, "Order.at")}
    assert {one["direction"] for one in found} == {"BACKWARD", "FORWARD"}
    assert found[0]["used_by"] == [], broken.stderr
    assert run("register", subject, str(file)).returncode == 4

    assert run("delete", subject).returncode == 0
    assert "SUBJECT_UNKNOWN" in run("show", subject).stderr
    listed = run("list", "--deleted", "-o", "jsonl").stdout.splitlines()
    mine = [one for one in map(json.loads, listed) if one["subject"] == subject]
    assert [(one["version"], one["deleted"]) for one in mine] == [(1, True), (2, True)]
    assert run("delete", subject, "--permanent", "--yes").returncode == 0
