"""Two stacks of one folder refuse each other; a crashed one leaves nothing in the way."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.config import Project, load_project
from mainstem.errors import MainstemError
from mainstem.local.run_file import RunInfo, RunLock, run_path, running

INFO = RunInfo(
    pid=1, bootstrap_servers="x:1", gateway_url="http://x", postgres=None, started_at="now"
)
HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from mainstem.config import load_project
from mainstem.local.run_file import RunLock
lock = RunLock(load_project(Path(sys.argv[1])))
keep = lock.take(lambda: None)
server = subprocess.Popen(["sleep", "600"], pass_fds=[keep])
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "mainstem.toml").write_text('name = "shop"\n')
    project = load_project(tmp_path)
    project.state_folder.mkdir()
    return project


def test_second_stack_is_refused(project):
    lock = RunLock(project)
    lock.take(lambda: None)
    with pytest.raises(MainstemError) as caught:
        RunLock(project).take(lambda: None)
    assert caught.value.code == "ALREADY_RUNNING"
    lock.release()
    RunLock(project).take(lambda: None)


def test_run_file_counts_only_while_the_lock_is_held(project):
    assert running(project) is None
    lock = RunLock(project)
    lock.take(lambda: None)
    assert running(project) is None
    lock.publish(INFO)
    assert running(project) == INFO
    assert run_path(project).stat().st_mode & 0o777 == 0o600
    lock.release()
    assert not run_path(project).exists()
    run_path(project).write_text(INFO.model_dump_json())  # as a crash leaves it
    assert running(project) is None


def test_waits_for_servers_of_a_crashed_supervisor(project):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(project.folder)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    server = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    holder.stdout.close()

    def end_it() -> None:
        import os

        os.kill(server, signal.SIGKILL)

    waited: list[bool] = []
    lock = RunLock(project)
    lock.take(lambda: (waited.append(True), end_it()))
    assert waited == [True]
    lock.release()
