"""Where the archive of Spark's classes lies, and when it has to be made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.local.class_archive import class_archive, failed_mark, to_be_made
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
    }
    assert len(others - {archive}) == 3
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
