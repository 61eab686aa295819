"""Finding Java: fake programs say which version they are."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from mainstem.errors import MainstemError
from mainstem.local.java import find_java, home_for_spark


def fake_java(home: Path, version: str, *, vector: bool = True) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if vector else 'case "$1" in --add-modules=*) echo "not found" >&2; exit 1;; esac\n'
    program.write_text(
        f"#!/bin/sh\n{refuse}"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        'echo "ran with: $*"\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}{os.pathsep}/bin")
    monkeypatch.setattr("mainstem.local.java.shutil.which", lambda name: _which(tmp_path, name))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def _which(tmp_path: Path, name: str) -> str | None:
    program = tmp_path / "path" / "bin" / name
    return str(program) if program.exists() else None


def test_none():
    with pytest.raises(MainstemError) as caught:
        find_java()
    assert caught.value.code == "JAVA_MISSING"


def test_java_home_comes_first(tmp_path, monkeypatch):
    fake_java(tmp_path / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17")))
    assert find_java().home == tmp_path / "home"
    assert find_java().version == 17


def test_path(tmp_path):
    fake_java(tmp_path / "path", "25")
    assert find_java().version == 25


@pytest.mark.parametrize(("said", "version"), [("1.8", 8), ("11", 11), ("16", 16)])
def test_too_old(tmp_path, said, version):
    fake_java(tmp_path / "path", said)
    with pytest.raises(MainstemError) as caught:
        find_java()
    assert caught.value.code == "JAVA_TOO_OLD"
    assert caught.value.params["found"] == version


def test_old_java_home_gives_way_to_a_good_path(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "11")))
    fake_java(tmp_path / "path", "17")
    assert find_java().home == tmp_path / "path"


def test_broken_java_home_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MainstemError) as caught:
        find_java()
    assert caught.value.code == "JAVA_MISSING"


def test_spark_gets_the_home_itself_when_nothing_is_missing(tmp_path):
    fake_java(tmp_path / "path", "17")
    assert home_for_spark(find_java(), tmp_path / "state") == tmp_path / "path"


def test_spark_gets_a_wrapper_that_leaves_the_missing_module_out(tmp_path):
    fake_java(tmp_path / "path", "25", vector=False)
    java = find_java()
    assert not java.has_vector
    home = home_for_spark(java, tmp_path / "state")
    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "ran with: -Dx=a b Main\n"
