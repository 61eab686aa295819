"""Jars come verified from cache, folder or repository, whatever breaks on the way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from mainstem.errors import MainstemError
from mainstem.local.download import download
from mainstem.local.jars import cache_folder, provide
from mainstem.local.jars_lock import Jar, locked_jars


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch, repository):
    monkeypatch.delenv("MAINSTEM_JARS", raising=False)
    monkeypatch.setenv("MAINSTEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MAINSTEM_MAVEN_URL", repository.url)


def fetch(repository, jar: Jar, target: Path) -> list[float]:
    pauses: list[float] = []
    with httpx2.Client() as client:
        download(client, repository.url, jar, target, lambda count: None, pauses.append)
    return pauses


def test_fetches_all_then_none(repository):
    wanted = [repository.add(f"org.a:b{i}:1", os.urandom(1000 + i)) for i in range(20)]
    paths = provide(wanted, "jars", quiet=True)
    assert [path.read_bytes() for path in paths] == [repository.files[j.path] for j in wanted]
    assert len(repository.requests) == 20
    assert provide(wanted, "jars", quiet=True) == paths
    assert len(repository.requests) == 20


def test_fetches_side_by_side(repository):
    wanted = [repository.add(f"org.a:b{i}:1", b"x" * 10) for i in range(8)]
    repository.gate = threading.Barrier(8)  # answers nobody before all eight have asked
    provide(wanted, "jars", quiet=True)


def test_damaged_jar_is_named_and_fetched_again(repository, capsys):
    jar = repository.add("org.a:b:1", b"right content")
    [path] = provide([jar], "jars", quiet=True)
    path.write_bytes(b"wrong content")
    provide([jar], "jars")
    assert path.read_bytes() == b"right content"
    assert "org.a:b:1 is damaged in the cache" in capsys.readouterr().err


def test_resumes_a_part(repository, tmp_path):
    content = os.urandom(100_000)
    jar = repository.add("org.a:b:1", content)
    target = tmp_path / "b-1.jar"
    (tmp_path / "b-1.jar.part").write_bytes(content[:60_000])
    fetch(repository, jar, target)
    assert target.read_bytes() == content
    assert repository.requests == [(jar.path, "bytes=60000-")]


def test_resumes_after_a_broken_connection(repository, tmp_path):
    content = os.urandom(300_000)
    jar = repository.add("org.a:b:1", content)
    repository.cut_after[jar.path] = 100_000
    pauses = fetch(repository, jar, tmp_path / "b-1.jar")
    assert (tmp_path / "b-1.jar").read_bytes() == content
    assert len(pauses) == 1
    start = repository.requests[1][1]
    assert start is not None and 0 < int(start[6:-1]) <= 100_000


def test_starts_over_when_the_repository_cannot_resume(repository, tmp_path):
    jar = repository.add("org.a:b:1", b"0123456789")
    repository.ignore_range = True
    (tmp_path / "b-1.jar.part").write_bytes(b"01234")
    fetch(repository, jar, tmp_path / "b-1.jar")
    assert (tmp_path / "b-1.jar").read_bytes() == b"0123456789"


def test_damaged_part_is_not_kept(repository, tmp_path):
    jar = repository.add("org.a:b:1", b"0123456789")
    (tmp_path / "b-1.jar.part").write_bytes(b"xxxxx")
    fetch(repository, jar, tmp_path / "b-1.jar")
    assert (tmp_path / "b-1.jar").read_bytes() == b"0123456789"


def test_retries_with_growing_pauses(repository, tmp_path):
    jar = repository.add("org.a:b:1", b"x")
    repository.statuses[jar.path] = [503, 500, 429]
    assert fetch(repository, jar, tmp_path / "b-1.jar") == [0.5, 1.0, 2.0]


def test_absent_jar_is_named_at_once(repository, tmp_path):
    with pytest.raises(MainstemError) as caught:
        fetch(repository, Jar("org.a:gone:1", "0" * 64, 1), tmp_path / "gone-1.jar")
    assert caught.value.code == "JAR_UNAVAILABLE"
    assert caught.value.params["coordinate"] == "org.a:gone:1"
    assert len(repository.requests) == 1


def test_wrong_checksum_is_refused(repository, tmp_path):
    good = repository.add("org.a:b:1", b"0123456789")
    repository.files[good.path] = b"9876543210"
    with pytest.raises(MainstemError) as caught:
        fetch(repository, good, tmp_path / "b-1.jar")
    assert caught.value.code == "JAR_CORRUPT"
    assert list(tmp_path.glob("b-1*")) == []


def test_dead_repository(repository, monkeypatch, tmp_path):
    jar = repository.add("org.a:b:1", b"x")
    with httpx2.Client() as client, pytest.raises(MainstemError) as caught:
        download(client, "http://127.0.0.1:1", jar, tmp_path / "x", lambda c: None, lambda s: None)
    assert caught.value.code == "JAR_UNAVAILABLE"


def test_offline_folder(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("MAINSTEM_JARS", str(tmp_path))
    jar = repository.add("org.a:b:1", b"content")
    with pytest.raises(MainstemError) as caught:
        provide([jar], "jars")
    assert caught.value.code == "JAR_UNAVAILABLE"
    (tmp_path / "b-1.jar").write_bytes(b"kontent")
    with pytest.raises(MainstemError, match="damaged"):
        provide([jar], "jars")
    assert (tmp_path / "b-1.jar").exists()
    (tmp_path / "b-1.jar").write_bytes(b"content")
    assert provide([jar], "jars") == [tmp_path / "b-1.jar"]
    assert repository.requests == []


FETCH = """
import sys
from mainstem.local.jars import provide
from mainstem.local.jars_lock import Jar
print(provide([Jar(sys.argv[1], sys.argv[2], int(sys.argv[3]))], "jars")[0].read_bytes()[:4])
"""


def test_two_processes_fetch_once(repository):
    jar = repository.add("org.a:b:1", b"good" * 100_000)
    argv = [sys.executable, "-c", FETCH, jar.coordinate, jar.sha256, str(jar.size)]
    both = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == [b"b'good'\n"] * 2
    assert len(repository.requests) == 1


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache" / "jars"
    monkeypatch.delenv("MAINSTEM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/mainstem/jars")


def test_lock_is_complete():
    names = {jar.file_name for jar in locked_jars("broker")}
    assert {"kafka_2.13-4.2.2.jar", "log4j-slf4j-impl-2.25.5.jar"} <= names
    assert len(locked_jars("spark")) == 8
    for jar in (*locked_jars("broker"), *locked_jars("spark")):
        assert len(jar.sha256) == 64 and jar.size > 0


def test_progress_in_plain_lines(repository, capsys):
    provide([repository.add("org.a:b:1", os.urandom(1_000_000))], "test jars")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Fetching 1 test jars (1 MB)"
    assert lines[-1] == "Fetched test jars"
    assert "  test jars: 50 %" in lines
