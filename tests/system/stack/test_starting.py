"""Starts that go wrong, are broken off, or come at a bad moment."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from mainstem.testing.waiting import eventually

DEAD = "127.0.0.1:1"
CLUSTER = f"""
name = "other"
profile = "cluster"
[kafka]
bootstrap_servers = "{DEAD}"
[postgres]
url = "postgresql://owner:sesame@127.0.0.1:2/x"
"""


@pytest.mark.parametrize(
    "command", [("plan",), ("apply",), ("up",), ("status",), ("consume", "x"), ("topics",)]
)
def test_a_folder_that_is_no_project(mainstem, tmp_path, command):
    failed = mainstem(*command, folder=tmp_path).failed("NOT_A_PROJECT")
    assert "mainstem init" in failed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('name = "x"\n[kafak]\nport = 1\n', "CONFIG_UNKNOWN_KEY", 'Did you mean "kafka"?'),
        ('name = "x"\n[kafka]\npartitons = 1\n', "CONFIG_UNKNOWN_KEY", 'mean "partitions"?'),
        ('name = "x"\nprofile = "lokal"\n', "CONFIG_INVALID", "profile"),
        ('name = "x\n', "CONFIG_INVALID", "line 1"),
        ('name = "x"\nprofile = "cluster"\n', "CONFIG_INVALID", "bootstrap_servers"),
        ('name = "x"\n[postgres]\nurl = "${env:NOBODY_SET_IT}"\n', "CONFIG_MISSING_ENVIRONMENT",
         "NOBODY_SET_IT"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong(mainstem, tmp_path, text, code, words):
    (tmp_path / "mainstem.toml").write_text(text)
    assert words in mainstem("up", folder=tmp_path).failed(code).err
    assert not (tmp_path / ".mainstem").exists()


def test_a_stack_that_does_not_run(mainstem, project):
    for command in ("plan", "status", "topics"):
        mainstem(command, folder=project).failed("NOT_RUNNING", 69)


def test_a_folder_that_is_in_use_is_refused_to_init(mainstem, project):
    mainstem("init", "other", folder=project.parent).failed("FOLDER_NOT_EMPTY")
    mainstem("init", "42", folder=project.parent).failed("INVALID_PROJECT_NAME", 64)


def test_a_disk_without_room(mainstem, project):
    environment = {**os.environ, "MAINSTEM_MIN_FREE_MB": "999999999"}
    mainstem("up", folder=project, env=environment).failed("DISK_FULL")
    failed = mainstem("doctor", folder=project, env=environment).failed("CHECK_FAILED", 4)
    assert "999999999 MB are needed" in failed.out


def test_a_state_folder_that_cannot_be_written(mainstem, project):
    (project / ".mainstem").symlink_to("/proc/1/nowhere")
    mainstem("up", folder=project).failed("FILE_NOT_WRITABLE")


def test_a_port_that_is_taken(mainstem, project):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (project / "mainstem.toml").open("a") as file:
            file.write(f"\n[gateway]\nport = {port}\n")
        assert str(port) in mainstem("up", folder=project).failed("PORT_TAKEN").err
        failed = mainstem("doctor", folder=project).failed("CHECK_FAILED", 4)
        assert f"{port} is taken" in failed.out


def test_two_stacks_in_one_folder(shop):
    failed = shop.cli("up").failed("ALREADY_RUNNING")
    assert str(shop.info["pid"]) in failed.err
    assert shop.http.get("/readyz").status_code == 200


def test_a_cluster_whose_broker_is_down(mainstem, project, launch):
    (project / "mainstem.toml").write_text(CLUSTER)
    began = time.monotonic()
    mainstem("plan", folder=project).failed("NOT_RUNNING", 69)
    failed = mainstem("doctor", folder=project).failed("CHECK_FAILED", 4)
    assert f"the Kafka broker at {DEAD} does not answer" in failed.out
    assert "PostgreSQL does not answer at 127.0.0.1:2" in failed.out
    mainstem("plan", "--url", f"http://{DEAD}", folder=project).failed("GATEWAY_UNREACHABLE", 69)
    assert time.monotonic() - began < 120
    up = launch()
    up.wait_for(f"broker: waiting: the Kafka broker at {DEAD} does not answer")
    assert up.end() == 130
    assert "sesame" not in up.text + failed.out


@pytest.mark.parametrize("moment", ["", "postgres: ready", "broker: ready"])
def test_ctrl_c_while_it_starts(launch, moment):
    up = launch()
    if moment:
        up.wait_for(moment)
    else:
        eventually(lambda: up.state.exists() or up.process.poll() is not None)
    assert up.end() == 130
    assert "stopping" in up.text
    assert "Traceback" not in up.text and "INTERNAL" not in up.text


def test_after_kill_9_the_next_start_works(launch):
    first = launch()
    first.wait_for("broker: ready")
    everybody, ports = first.children(), first.ports()
    assert len(everybody) >= 4
    first.process.kill()
    second = launch()  # at once, while the servers of the first are still ending
    second.wait_for("broker: ready")
    eventually(lambda: not [process for process in everybody if process.is_running()])
    assert second.ports() == ports
    assert second.end(signal.SIGTERM) == 130
    assert "Traceback" not in second.text


def test_a_narrow_terminal_and_none_at_all(shop: object, mainstem, tmp_path: Path):
    for columns in ("20", "0", "nonsense"):
        environment = {**os.environ, "COLUMNS": columns, "TERM": "dumb"}
        assert "Examples:" in mainstem("sql", "--help", folder=tmp_path, env=environment).ok().out
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment["LC_ALL"] = "C"
    mainstem("doctor", folder=tmp_path, env=environment).ok()
