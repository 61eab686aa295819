"""Which parts of which files are read: each line once, whatever happens to the files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mainstem.engine.sources.file_parts import Kind, Piece, lines_of
from mainstem.engine.sources.file_plan import Files, find_by_key
from mainstem.engine.sources.file_reader import read_piece
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

NOW = 2_000_000_000.0
COLUMNS = (Column("id", "bigint"), Column("name", "string"))


def kind(folder: Path, **options: Any) -> Kind:
    given: dict[str, Any] = {"pattern": "**/*", "format": "lines", "columns": COLUMNS, **options}
    return Kind(folder=str(folder), **given)


def taken(files: Files, of: Kind, now: float = NOW) -> list[tuple[str, int, str]]:
    """File, number and text of each line that the next batch reads."""
    plan = files.plan(now)
    files.take(plan.pieces)
    return [
        (piece.file, number, line.decode())
        for piece in plan.pieces
        if piece.cause is None
        for number, line in lines_of(of.path(piece.file), piece)
    ]


def test_each_file_is_read_once_the_oldest_first(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/new.txt").write_text("3\r\n\n")
    (tmp_path / "old.txt").write_text("1\n2")
    os.utime(tmp_path / "old.txt", (1000, 1000))
    for hidden in (".part", "_SUCCESS"):
        (tmp_path / hidden).write_text("x\n")
    (tmp_path / "empty").touch()
    of = kind(tmp_path)
    files = Files(of)
    first = [("old.txt", 1, "1"), ("old.txt", 2, "2"), ("b/new.txt", 1, "3"), ("b/new.txt", 2, "")]
    assert taken(files, of) == first
    assert taken(files, of) == []
    again = Files(of)
    again.from_json(files.to_json())
    (tmp_path / "third").write_text("4\n")
    assert taken(again, of) == [("third", 1, "4")]


def test_a_file_that_is_being_written_is_waited_for(tmp_path):
    path = tmp_path / "a"
    path.write_text("1\n")
    os.utime(path, (NOW - 1, NOW - 1))
    of = kind(tmp_path, settle=2.0)
    files = Files(of)
    assert taken(files, of) == []
    assert taken(files, of, NOW + 1) == [("a", 1, "1")]
    path.write_text("1\n2\n")
    assert taken(files, of, NOW + 9) == []
    assert files.plan(NOW + 9).altered == 1


def test_large_files_are_read_in_parts_that_end_with_a_line(tmp_path):
    lines = [f"{number:099}" for number in range(500)]
    (tmp_path / "a").write_text("\n".join(lines))
    of = kind(tmp_path, batch_bytes=5_000)
    files = Files(of)
    parts = []
    while part := taken(files, of):
        parts.append(part)
    assert len(parts) > 5
    found = [line for part in parts for line in part]
    assert [text for _, _, text in found] == lines
    assert [number for _, number, _ in found] == list(range(1, 501))


def test_a_file_that_changes_between_its_parts_is_told_and_left(tmp_path):
    path = tmp_path / "a"
    path.write_text("x" * 4_000 + "\n" + "y" * 4_000 + "\n")
    of = kind(tmp_path, batch_bytes=4_000)
    files = Files(of)
    assert len(taken(files, of)) == 1
    path.write_text("other\n" * 2_000)
    [piece] = files.plan(NOW).pieces
    assert piece.cause == "it was changed while it was being read"
    files.take([piece])
    assert files.plan(NOW).pieces == []


def test_growing_files_are_read_line_by_line_and_under_other_names(tmp_path):
    path = tmp_path / "app.log"
    path.write_text("one\ntw")
    of = kind(tmp_path, tail=True, pattern="app.log*")
    files = Files(of)
    assert taken(files, of) == [("app.log", 1, "one")]
    assert taken(files, of) == []
    with path.open("a") as file:
        file.write("o\nthree\n")
    path.rename(tmp_path / "app.log.1")
    path.write_text("four\n")
    found = [("app.log.1", 2, "two"), ("app.log.1", 3, "three"), ("app.log", 1, "four")]
    assert sorted(taken(files, of)) == sorted(found)
    # the same name, number and length, but another file
    path.write_text("five\n")
    assert taken(files, of) == [("app.log", 1, "five")]
    path.write_text("6\n")
    assert taken(files, of) == [("app.log", 1, "6")]


def test_a_part_of_a_growing_file_is_found_when_it_is_renamed(tmp_path):
    path = tmp_path / "app.log"
    path.write_text("one\n")
    of = kind(tmp_path, tail=True, pattern="app.log*")
    [piece] = Files(of).plan(NOW).pieces
    path.rename(tmp_path / "app.log.1")
    path.write_text("two\n")
    assert find_by_key(of, piece.key) == "app.log.1"
    [batch] = read_piece(of, piece)
    assert batch.column("line").to_pylist() == [b"one"]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("2\n3\n")])
def test_a_part_is_not_read_from_another_file(tmp_path, change):
    path = tmp_path / "a"
    path.write_text("1\n")
    of = kind(tmp_path)
    [piece] = Files(of).plan(NOW).pieces
    change(path)
    with pytest.raises(MainstemError) as caught:
        list(read_piece(of, piece))
    assert caught.value.code == "SOURCE_FILE_LOST"


def test_csv_files_have_the_columns_that_their_header_says(tmp_path):
    (tmp_path / "good").write_bytes(b"\xef\xbb\xbfID;name\n1;a\n\n2;b\n")
    (tmp_path / "other").write_text("name;id\na;1\n")
    of = kind(tmp_path, format="csv", header=True, delimiter=";")
    pieces = {piece.file: piece for piece in Files(of).plan(NOW).pieces}
    assert pieces["other"].cause == "its header is name, id; the columns are id, name"
    [batch] = read_piece(of, pieces["good"])
    assert batch.column("line").to_pylist() == [b"1;a", b"2;b"]
    assert batch.column("position").to_pylist() == [2, 4]
    [refused] = read_piece(of, pieces["other"])
    assert refused.column("refused").to_pylist() == [pieces["other"].cause]


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> None:
    pq.write_table(pa.table(columns), path, **options)


def test_parquet_is_read_by_row_groups(tmp_path):
    rows = {
        "id": pa.array(range(100), pa.int32()),
        "name": [f"n{i}" for i in range(100)],
        "x": [0] * 100,
    }
    parquet(tmp_path / "a.parquet", rows, row_group_size=30)
    of = kind(tmp_path, format="parquet", batch_bytes=1)
    files = Files(of)
    found, parts = [], 0
    while pieces := files.plan(NOW).pieces:
        files.take(pieces)
        parts += 1
        found += [row for piece in pieces for b in read_piece(of, piece) for row in b.to_pylist()]
    assert parts == 4
    assert [(row["id"], row["name"], row["position"]) for row in found] == [
        (i, f"n{i}", i + 1) for i in range(100)
    ]


def test_what_parquet_cannot_give_is_told(tmp_path):
    parquet(tmp_path / "lacks", {"id": [1]})
    parquet(tmp_path / "other", {"id": [[1]], "name": ["a"]})
    (tmp_path / "none").write_text("no Parquet at all")
    of = kind(tmp_path, format="parquet")
    causes = {piece.file: piece.cause or "" for piece in Files(of).plan(NOW).pieces}
    assert causes["lacks"] == 'it has no column "name"'
    assert causes["other"].startswith('its column "id" is list')
    assert causes["none"].startswith("it is not Parquet")


def test_a_value_that_does_not_fit_its_column_is_told_by_its_row(tmp_path):
    parquet(tmp_path / "a", {"id": [1, 2**40, 3], "name": ["a", "b", "c"]})
    of = kind(tmp_path, format="parquet", columns=(Column("id", "int"), COLUMNS[1]))
    [piece] = Files(of).plan(NOW).pieces
    rows = [row for batch in read_piece(of, piece) for row in batch.to_pylist()]
    assert [(row["id"], row["position"]) for row in rows] == [(1, 1), (None, 2), (3, 3)]
    assert rows[1]["refused"]


def test_a_folder_that_cannot_be_read_is_an_error_and_no_file_is_forgotten(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").write_text("1\n")
    of = kind(folder)
    files = Files(of)
    assert len(taken(files, of)) == 1
    folder.rename(tmp_path / "away")
    with pytest.raises(MainstemError) as caught:
        files.plan(NOW)
    assert caught.value.code == "SOURCE_FOLDER"
    (tmp_path / "away").rename(folder)
    assert taken(files, of) == []


def test_links_do_not_lead_out_of_the_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret").write_text("x\n")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert Files(kind(folder)).plan(NOW).pieces == []


def test_a_part_says_all_that_a_batch_needs_to_be_read_again(tmp_path):
    (tmp_path / "a").write_text("1\n")
    [piece] = Files(kind(tmp_path)).plan(NOW).pieces
    assert isinstance(piece, Piece)
    assert (piece.start, piece.end, piece.first, piece.next, piece.done) == (0, 2, 1, 2, True)
