"""Passwords stay where they belong: in two private files of the state folder."""

from __future__ import annotations

import json
import os
import stat

import psutil

PATHS = (
    "/v1/objects",
    "/v1/status",
    "/v1/topics?internal=true",
    "/v1/topics/_mainstem.catalog/records",
    "/v1/topics/_mainstem.status/records?last=100",
    "/v1/topics/_mainstem.requests/records?last=100",
    "/v1/topics/_mainstem.replies/records?last=100",
    "/metrics",
    "/readyz",
    "/openapi.json",
    "/",
)
STATEMENTS = (
    "SHOW STREAMS",
    "SHOW TABLES",
    "SHOW TOPICS",
    "SHOW FLOWS",
    "DESCRIBE sales_by_product",
    "EXPLAIN sales_by_product",
    "EXPLAIN SELECT * FROM sales_by_product",
)


def test_passwords_are_shown_nowhere(shop):
    passwords = list(json.loads((shop.up.state / "secrets.json").read_text())["postgres"].values())
    assert len(passwords) == 2 and all(len(password) >= 20 for password in passwords)
    shown = {"what up printed": shop.up.text}
    for path in (shop.up.state / "logs").iterdir():
        shown[path.name] = path.read_text(errors="replace")
    for path in PATHS:
        answer = shop.http.get(path)
        shown[path] = answer.text + str(answer.headers)
    for statement in STATEMENTS:
        answer = shop.http.post("/v1/sql", json={"sql": statement})
        assert answer.status_code == 200, answer.text
        shown[statement] = answer.text
    for command in (("status", "-o", "json"), ("doctor", "-v"), ("topics", "-o", "json", "-v")):
        ran = shop.cli(*command).ok()
        shown[" ".join(command)] = ran.out + ran.err
    for process in psutil.process_iter(["cmdline"]):
        shown[f"process {process.pid}"] = " ".join(process.info["cmdline"] or ())
    found = [what for what, text in shown.items() if any(p in text for p in passwords)]
    assert found == []


def test_files_with_passwords_are_private(shop):
    for name in ("secrets.json", "pgpass", "run.json"):
        file = shop.up.state / name
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_uid == os.geteuid()
    others = stat.S_IMODE(shop.up.state.stat().st_mode) & (stat.S_IROTH | stat.S_IWOTH)
    assert others == 0
    assert stat.S_IMODE((shop.up.state / "logs").stat().st_mode) == 0o700
