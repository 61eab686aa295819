"""Nothing outlives its parent, however the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mainstem.errors import MainstemError
from mainstem.local.process import LOG_LIMIT, Child, Command, last_line, run_once

# a server with a child of its own, in another session; says both process ids
SERVER = """
import os, subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()} {inner.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""
PARENT = """
import sys, time
from pathlib import Path
from mainstem.local.process import Child, Command
folder = Path(sys.argv[1])
child = Child.start(Command("s", [sys.executable, "-c", sys.argv[2], str(folder / "pids")],
                            folder / "s.log", folder, grace=0.5))
time.sleep(600)
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="adopting orphans needs Linux")


def command(tmp_path: Path, *argv: str, **more: object) -> Command:
    return Command("server", argv, tmp_path / "logs" / "server.log", tmp_path, **more)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def pids(tmp_path: Path) -> list[int]:
    return [int(word) for word in (tmp_path / "pids").read_text().split()]


@on_linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_death_of_the_parent_ends_server_and_its_children(tmp_path, eventually, how):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), SERVER])
    try:
        eventually((tmp_path / "pids").exists)
        everybody = pids(tmp_path)
        leash = psutil.Process(everybody[0]).ppid()
        parent.send_signal(how)
        parent.wait()
        eventually(lambda: all(gone(pid) for pid in [*everybody, leash]))
    finally:
        parent.kill()
        parent.wait()


@on_linux
def test_death_of_the_leash_ends_the_server(tmp_path, eventually):
    child = Child.start(command(tmp_path, "sleep", "600"))
    os.kill(psutil.Process(child.pid).ppid(), signal.SIGKILL)
    eventually(lambda: gone(child.pid))
    assert not child.wait(0) or child.exit_code() != 0
    child.stop()


@on_linux
def test_stop_ends_grandchildren(tmp_path, eventually):
    argv = (sys.executable, "-c", SERVER, str(tmp_path / "pids"))
    child = Child.start(command(tmp_path, *argv, grace=0.5))
    eventually((tmp_path / "pids").exists)
    child.stop()
    assert all(gone(pid) for pid in pids(tmp_path))


def test_stop_signal_is_the_one_asked_for(tmp_path, eventually):
    script = 'trap "echo interrupted; exit 5" INT; echo up; while :; do sleep 0.05; done'
    child = Child.start(command(tmp_path, "sh", "-c", script, stop="INT"))
    eventually(lambda: last_line(child.command.log) == "up")
    child.stop()
    assert child.last_words() == "interrupted"
    assert child.exit_code() == 5


def test_server_that_will_not_stop_is_killed(tmp_path, eventually):
    script = 'trap "" TERM; echo up; while :; do sleep 0.05; done'
    child = Child.start(command(tmp_path, "sh", "-c", script, grace=0.2))
    eventually(lambda: child.last_words() == "up")
    child.stop()
    assert child.exit_code() == 128 + signal.SIGKILL


def test_exit_code_of_the_server_is_seen(tmp_path):
    child = Child.start(command(tmp_path, "sh", "-c", "echo broken >&2; exit 7"))
    assert child.wait(60)
    assert child.exit_code() == 7
    assert child.last_words() == "broken"


def test_terminal_signals_do_not_reach_the_server(tmp_path):
    child = Child.start(command(tmp_path, "sleep", "600"))
    assert os.getsid(child.pid) != os.getsid(0)
    assert os.getpgid(child.pid) == child.pid
    child.stop()


def test_absent_program(tmp_path):
    with pytest.raises(MainstemError) as caught:
        Child.start(command(tmp_path, str(tmp_path / "no-such-program")))
    assert caught.value.code == "PROCESS_FAILED"
    assert "no-such-program" in caught.value.message


def test_environment_and_folder(tmp_path):
    child = Child.start(
        command(tmp_path, "sh", "-c", "echo $GREETING; pwd", environment={"GREETING": "hello"})
    )
    child.wait(60)
    words = child.command.log.read_text().split()
    assert words == ["hello", str(tmp_path.resolve())]


def test_large_log_is_put_aside_at_start(tmp_path):
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    log.write_bytes(b"x" * (LOG_LIMIT + 1))
    child = Child.start(command(tmp_path, "echo", "fresh"))
    child.wait(60)
    assert log.read_text() == "fresh\n"
    assert log.with_name("server.log.1").stat().st_size == LOG_LIMIT + 1
    assert log.stat().st_mode & 0o077 == 0


def test_run_once_says_why_it_failed(tmp_path):
    with pytest.raises(MainstemError) as caught:
        run_once(["sh", "-c", "echo first; echo last; exit 3"], name="setup",
                 log=tmp_path / "log", folder=tmp_path)  # fmt: skip
    assert caught.value.params["problem"] == "last"
    assert (tmp_path / "log").read_text() == "first\nlast\n"


def test_stack_frames_are_no_last_words(tmp_path):
    (tmp_path / "log").write_text("Caused by: no room\n\tat a.b.C(D.java:1)\n\t... 7 more\n\n")
    assert last_line(tmp_path / "log") == "Caused by: no room"
