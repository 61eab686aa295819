"""Where the archives of classes lie, and when they have to be made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.local.class_archive import (
    broker_archive,
    class_archive,
    failed_mark,
    make_once,
    to_be_made,
)
from mainstem.local.jars import SparkJars
from mainstem.local.java import Java

JAVA = Java(Path("/jdk"), 17, True)
JARS = SparkJars((Path("a-1.jar"), Path("b-1.jar")), Path("fs-1.jar"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSTEM_CACHE", str(tmp_path))


def test_each_java_and_each_set_of_jars_has_its_own(tmp_path: Path) -> None:
    archive = class_archive(JAVA, JARS)
    assert archive.parent == tmp_path / "classes"
    others = {
        class_archive(replace(JAVA, home=Path("/other")), JARS),
        class_archive(replace(JAVA, version=21), JARS),
        class_archive(JAVA, JARS._replace(bare_fs=Path("fs-2.jar"))),
        broker_archive(JAVA, [*JARS.jars, JARS.bare_fs]),
    }
    assert len(others - {archive}) == 4
    moved = SparkJars(tuple(Path("elsewhere") / jar for jar in JARS.jars), JARS.bare_fs)
    assert class_archive(JAVA, moved) == archive


def test_it_is_made_once_and_after_a_failure_not_at_all() -> None:
    archive = class_archive(JAVA, JARS)
    archive.parent.mkdir()
    assert to_be_made(archive)
    failed_mark(archive).touch()
    assert not to_be_made(archive)
    failed_mark(archive).unlink()
    archive.touch()
    assert not to_be_made(archive)


def test_it_gets_its_name_when_it_is_whole() -> None:
    archive = class_archive(JAVA, JARS)
    seen: list[tuple[str, bool, bool]] = []

    def write(part: Path, folder: Path) -> bool:
        seen.append((part.suffix, archive.exists(), folder.is_dir()))
        assert make_once(archive, write), "one at a time"
        part.write_text("classes")
        return True

    assert make_once(archive, write)
    assert archive.read_text() == "classes"
    assert make_once(archive, write)
    assert seen == [(".part", False, True)]


def test_what_cannot_be_made_is_not_tried_again() -> None:
    archive = class_archive(JAVA, JARS)
    tries: list[Path] = []

    def write(part: Path, folder: Path) -> bool:
        tries.append(part)
        return False

    assert not make_once(archive, write)
    assert make_once(archive, write)
    assert len(tries) == 1 and not archive.exists()
