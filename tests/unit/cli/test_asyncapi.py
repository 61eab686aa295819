"""`mainstem asyncapi`, of the project's files and of what is running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

SETTINGS = """name = "shop"
[kafka]
bootstrap_servers = "broker:9092"
options = { "security.protocol" = "ssl", "ssl.key.password" = "geheim" }
"""


def test_of_the_projects_files(run: Run, project: Path) -> None:
    (project / "mainstem.toml").write_text(SETTINGS)
    (project / "pipeline").mkdir(exist_ok=True)
    for file in (project / "pipeline").iterdir():
        file.unlink()
    text = "CREATE STREAM s (id INT);\nCREATE STREAM t AS SELECT twice(id) AS id FROM s;"
    (project / "pipeline" / "p.sql").write_text(text)
    (project / "functions").mkdir(exist_ok=True)
    function = (
        "from mainstem import function\n\n@function\ndef twice(n: int) -> int:\n    return n\n"
    )
    (project / "functions" / "f.py").write_text(function)
    result = run("asyncapi", "--offline")
    assert "geheim" not in result.out
    document = yaml.safe_load(result.out)
    assert document["servers"]["kafka"] == {"host": "broker:9092", "protocol": "kafka-secure"}
    assert list(document["operations"]) == ["receive_s", "send_t"]
    other = run("asyncapi", "--offline", "--json", "--api-version", "3")
    assert json.loads(other.out)["info"]["version"] == "3"


def test_of_what_is_running(run: Run, gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/asyncapi", "asyncapi: 3.0.0\n")
    assert run("asyncapi").out == "asyncapi: 3.0.0\n"
    [request] = gateway.sent("GET", "/v1/asyncapi")
    assert request.query == {"format": "yaml", "version": "1.0.0"}
