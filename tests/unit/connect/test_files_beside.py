"""A folder that is built anew beside another takes its place, whatever crashes in between."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mainstem.connect.targets import files_beside
from mainstem.connect.targets.beside import beside_of, beside_options
from mainstem.connect.targets.target import Shape
from mainstem.errors import MainstemError

SHAPE = Shape("s", ())
exchanges = pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders")


class Folders:
    def __init__(self, there: Path) -> None:
        self.old = {"folder": str(there / "out")}
        self.new: dict[str, Any] = beside_options("files", self.old, "s", 7)
        self.target, self.beside = Path(self.old["folder"]), Path(self.new["folder"])

    def put(self, folder: Path, *names: str) -> None:
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def switch(self) -> None:
        files_beside.switch(self.old, self.new, SHAPE, "sink", 7)

    def names(self, folder: Path) -> list[str]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(folder)) for path in found)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.put(made.target, "sink-t-0.csv", "date=1/sink-t-1.csv", "_mainstem/sink-t-0.csv.json")
    files_beside.prepare(made.old, made.new, SHAPE)
    made.put(made.beside, "sink-t-2.csv")
    return made


@exchanges
def test_the_new_one_takes_the_place_and_the_old_one_goes(folders: Folders) -> None:
    files_beside.check(folders.old, SHAPE, "sink")
    folders.switch()
    wanted = ["_mainstem/sink-built-7", "sink-t-2.csv"]
    assert folders.names(folders.target) == wanted
    assert not folders.beside.exists()
    folders.switch()
    assert folders.names(folders.target) == wanted


@exchanges
def test_a_crash_between_the_exchange_and_the_end(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files_beside, "_clear", crash)
        with pytest.raises(KeyboardInterrupt):
            folders.switch()
    folders.put(folders.target, "sink-t-3.csv")
    folders.switch()
    assert "sink-t-3.csv" in folders.names(folders.target)
    assert not folders.beside.exists()


@exchanges
def test_what_others_have_put_there_stays(folders: Folders) -> None:
    folders.put(folders.target, "date=1/notes.txt")
    with pytest.raises(MainstemError) as caught:
        files_beside.check(folders.old, SHAPE, "sink")
    assert caught.value.code == "REBUILD_NOT_POSSIBLE"
    folders.switch()
    assert folders.names(folders.beside) == ["date=1/notes.txt"]


def test_a_target_that_is_not_there_yet(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    files_beside.check(folders.old, SHAPE, "sink")
    files_beside.prepare(folders.old, folders.new, SHAPE)
    folders.switch()
    assert folders.names(folders.target) == ["_mainstem/sink-built-7"]
    files_beside.discard(folders.new, SHAPE)


def test_others_are_refused() -> None:
    with pytest.raises(MainstemError) as caught:
        beside_of("http", "out")
    assert caught.value.code == "REBUILD_NOT_POSSIBLE"
    place = beside_options("postgres", {"table": "sales." + "ü" * 40}, "s", 12)["table"]
    assert len(place.removeprefix("sales.").encode()) <= 63 and place.endswith("__mainstem_12")
    assert beside_options("opensearch", {}, "Orders", 3) == {"index": "orders-mainstem-3"}
