"""The files of a pipeline."""

import pytest

from mainstem.definitions.project import load_definitions, read_files
from mainstem.errors import MainstemError


def test_files_are_read_in_order_from_all_folders(tmp_path):
    pipeline = tmp_path / "pipeline"
    (pipeline / "deep").mkdir(parents=True)
    (pipeline / "b.sql").write_text("\ufeffCREATE STREAM b (x STRING)", "utf-8")
    (pipeline / "deep" / "a.sql").write_text("CREATE STREAM a (ü STRING)", "utf-8")
    (pipeline / "notes.txt").write_text("no")
    files = read_files(tmp_path)
    assert [path for path, _ in files] == ["pipeline/b.sql", "pipeline/deep/a.sql"]
    assert [d.name for d in load_definitions(files)] == ["b", "a"]
    assert load_definitions(files)[1].location.file == "pipeline/deep/a.sql"


def test_a_project_without_a_pipeline_has_no_files(tmp_path):
    assert read_files(tmp_path) == []


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "x.sql").write_bytes(b"-- one\n-- \xff\n")
    with pytest.raises(MainstemError) as caught:
        read_files(tmp_path)
    assert caught.value.code == "FILE_UNREADABLE"
    assert str(caught.value.location) == "pipeline/x.sql:2:1"


def test_two_definitions_of_one_name_name_both_places():
    files = [
        ("a.sql", "CREATE STREAM x (a INT)"),
        ("b.sql", "\n CREATE TABLE X (a INT PRIMARY KEY)"),
    ]
    with pytest.raises(MainstemError) as caught:
        load_definitions(files)
    assert caught.value.code == "DUPLICATE_NAME"
    assert str(caught.value.location) == "b.sql:2:2"
    assert caught.value.params["other"] == "a.sql:1:1"


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "PAUSE x", "DROP STREAM x", "INSERT INTO s VALUES (1)"]
)
def test_only_definitions_may_stand_there(sql):
    with pytest.raises(MainstemError) as caught:
        load_definitions([("a.sql", f"CREATE STREAM s (a INT);\n{sql}")])
    assert (caught.value.code, str(caught.value.location)) == ("SQL_NOT_ALLOWED", "a.sql:2:1")
