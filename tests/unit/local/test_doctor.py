"""The doctor names what is wrong and says how to mend it."""

from __future__ import annotations

import socket

import pytest

from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.local import doctor
from mainstem.local.doctor import diagnose
from mainstem.local.run_file import PostgresInfo, RunInfo, RunLock


@pytest.fixture
def project(tmp_path):
    (tmp_path / "mainstem.toml").write_text('name = "shop"\n')
    return load_project(tmp_path)


def by_name(checks):
    return {check.name: check for check in checks}


def test_machine_without_a_project():
    assert list(by_name(diagnose(None))) == ["python", "java", "jars", "disk", "memory"]


def test_no_java(monkeypatch):
    def none():
        raise MainstemError("JAVA_MISSING")

    monkeypatch.setattr(doctor, "find_java", none)
    check = by_name(diagnose(None))["java"]
    assert not check.ok and "mainstem[java]" in check.hint


def test_jars_missing_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("MAINSTEM_JARS", str(tmp_path))
    check = by_name(diagnose(None))["jars"]
    assert not check.ok and "more" in check.detail


def test_jars_not_to_be_had(monkeypatch, tmp_path):
    monkeypatch.delenv("MAINSTEM_JARS", raising=False)
    monkeypatch.setenv("MAINSTEM_CACHE", str(tmp_path))
    monkeypatch.setenv("MAINSTEM_MAVEN_URL", "http://127.0.0.1:1")
    assert not by_name(diagnose(None))["jars"].ok


def test_disk(monkeypatch):
    monkeypatch.setenv("MAINSTEM_MIN_FREE_MB", str(10**9))
    assert not by_name(diagnose(None))["disk"].ok


def test_configured_port_taken(project):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        file = project.folder / "mainstem.toml"
        file.write_text(f'name = "shop"\n[gateway]\nport = {port}\n')
        check = by_name(diagnose(load_project(project.folder)))["port of gateway"]
    assert not check.ok and str(port) in check.detail


def test_stack_not_running(project):
    check = by_name(diagnose(project))["stack"]
    assert check.ok and "mainstem up" in check.detail


def test_running_stack_whose_servers_are_dead(project, monkeypatch):
    monkeypatch.setattr(doctor, "_TIMEOUT", 0.5)
    project.state_folder.mkdir()
    lock = RunLock(project)
    lock.take(lambda: None)
    postgres = PostgresInfo(host="127.0.0.1", port=1, database="d", reader="r", passfile="p")
    lock.publish(
        RunInfo(
            pid=1,
            bootstrap_servers="127.0.0.1:1",
            gateway_url="http://127.0.0.1:1",
            postgres=postgres,
            started_at="now",
        )
    )
    checks = by_name(diagnose(project))
    lock.release()
    for name in ("broker", "postgres", "gateway", "engine"):
        assert not checks[name].ok and checks[name].hint
