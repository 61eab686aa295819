"""A disk that fills up while the broker runs: that is told, nothing is lost, it mends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.local import stack as local
from mainstem.local import supervise
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with 64 MB of room."""
    folder = tmp_path / "project" / ".mainstem"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=711", "none", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_fills_up_and_is_emptied(small_disk, monkeypatch):
    monkeypatch.setenv("MAINSTEM_MIN_FREE_MB", "20")
    monkeypatch.setattr(local, "_DISK_LOOK_EVERY", 0.2)
    monkeypatch.setattr(supervise, "LONGEST_PAUSE", 1.0)
    (small_disk.parent / "mainstem.toml").write_text('name = "full"\n')
    events: list[supervise.Event] = []
    with Stack(load_project(small_disk.parent), ("broker",), events.append) as stack:
        connection = Connection(stack.endpoints.bootstrap_servers)
        admin, producer = Admin(connection), Producer(connection)
        admin.ensure_topic(TopicSpec("kept", 1, 1, {}))
        written = [0]
        value = os.urandom(100_000)

        def write(seconds: float = 3.0) -> bool:
            try:
                producer.send("kept", [Outgoing(str(len(written)).encode(), value)], seconds)
            except MainstemError:
                return False
            written.append(len(written))
            return True

        assert write(60)
        filler = small_disk / "filler"
        fill(filler)
        eventually(lambda: not write() or "died" in kinds(events), every=0)
        eventually(lambda: "died" in kinds(events))
        eventually(lambda: "disk_low" in kinds(events))
        filler.unlink()
        eventually(lambda: kinds(events).count("ready") >= 2 and write())
        eventually(lambda: "disk_ok" in kinds(events))
        begin, end = admin.begin_offsets("kept"), admin.end_offsets("kept")
        found = [r for batch in read_range(connection, "kept", begin, end) for r in batch]
        assert {int(r.key) for r in found} >= set(written[1:])
        assert all(r.value == value for r in found)
        producer.close()
        admin.close()


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 65_536)
        except OSError:
            pass


def kinds(events: list[supervise.Event]) -> list[str]:
    return [event.kind for event in events]
