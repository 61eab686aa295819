"""A part that dies is restarted, with growing pauses, until the stack stops."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mainstem.errors import MainstemError
from mainstem.local import supervise
from mainstem.local.process import Command
from mainstem.local.supervise import Supervised


class FakePart:
    """Runs a shell script; ready when it says so by a file."""

    name = "fake"

    def __init__(self, folder: Path, script: str, start_timeout: float = 60.0) -> None:
        self.start_timeout = start_timeout
        self.folder = folder
        self.script = script
        self.closed = False

    def prepare(self) -> Command:
        (self.folder / "ready").unlink(missing_ok=True)
        return Command("fake", ["sh", "-c", self.script], self.folder / "log", self.folder, grace=1)

    def ready(self) -> bool:
        return (self.folder / "ready").exists()

    def answers(self) -> bool:
        return self.ready()

    def close(self) -> None:
        self.closed = True


GOOD = "touch ready; exec sleep 600"


@pytest.fixture
def events():
    return []


def kinds(events):
    return [event.kind for event in events]


def test_killed_server_is_restarted(tmp_path, events, eventually):
    item = Supervised(FakePart(tmp_path, GOOD), [], events.append)
    item.start()
    first = item.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: kinds(events).count("ready") == 2)
    assert item.pid not in (None, first)
    assert item.restarts == 1
    item.stop()
    assert kinds(events) == ["starting", "ready", "died", "restarting", "ready", "stopped"]
    assert item.part.closed


def test_pauses_double_up_to_the_longest(tmp_path, events, eventually, monkeypatch):
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(supervise, "LONGEST_PAUSE", 0.04)
    part = FakePart(tmp_path, GOOD)
    item = Supervised(part, [], events.append)
    item.start()
    pauses: list[float] = []
    wait = item._stopping.wait
    monkeypatch.setattr(
        item._stopping, "wait", lambda seconds: (pauses.append(seconds), wait(seconds))[1]
    )
    part.script = "exit 1"
    os.kill(item.pid, signal.SIGKILL)
    eventually(lambda: item.restarts >= 4)
    item.stop()
    taken = [seconds for seconds in pauses if seconds != supervise._TICK]
    assert taken[:4] == [0.01, 0.02, 0.04, 0.04]


def test_server_that_ends_at_once_fails_the_start(tmp_path, events):
    item = Supervised(FakePart(tmp_path, "echo no memory; exit 9"), [], events.append)
    with pytest.raises(MainstemError) as caught:
        item.start()
    assert caught.value.code == "PROCESS_FAILED"
    assert caught.value.params["problem"] == "it ended with exit code 9: no memory"
    item.stop()


def test_server_that_never_gets_ready_fails_the_start(tmp_path, events):
    item = Supervised(FakePart(tmp_path, "exec sleep 600", 0.3), [], events.append)
    with pytest.raises(MainstemError) as caught:
        item.start()
    assert "not ready after" in caught.value.message
    assert item.pid is None
    item.stop()


def test_server_that_answers_no_more_is_restarted(tmp_path, events, eventually, monkeypatch):
    monkeypatch.setattr(supervise, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(supervise, "UNRESPONSIVE_AFTER", 0.2)
    item = Supervised(FakePart(tmp_path, GOOD), [], events.append)
    item.start()
    (tmp_path / "ready").unlink()
    eventually(lambda: kinds(events).count("ready") == 2)
    assert "unresponsive" in kinds(events)
    item.stop()


def test_a_full_disk_at_a_restart_is_told_and_tried_again(
    tmp_path, events, eventually, monkeypatch
):
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.01)
    part = FakePart(tmp_path, GOOD)
    item = Supervised(part, [], events.append)
    item.start()
    prepare = part.prepare

    def no_room() -> Command:
        part.prepare = prepare
        raise OSError(28, "No space left on device")

    part.prepare = no_room
    os.kill(item.pid, signal.SIGKILL)
    eventually(lambda: kinds(events).count("ready") == 2)
    item.stop()
    assert ["No space left on device" in event.detail for event in events].count(True) == 1
