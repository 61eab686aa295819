"""A sink is called until it has taken a batch; the position moves on behind that."""

from pathlib import Path

import pytest

from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event

SQL = "CREATE STREAM s (id INT) WITH (key = 'id');"
PYTHON = """
from mainstem import sink

@sink
def keep(s):
    with open({file!r}, "a") as out:
        empty = out.tell() == 0
        for row in s.orderBy("id").collect():
            out.write(f"{{row.id}} ")
    if empty:
        raise ConnectionError("not now")
"""


def test_a_batch_that_fails_comes_again_and_leaves_one_receipt(
    driver: Driver, tmp_path: Path
) -> None:
    file = tmp_path / "taken"
    driver.apply(SQL, python=PYTHON.format(file=str(file)))
    assert not file.exists(), "a plan calls no sink"
    driver.send([Event("s", {"id": 1}), Event("s", {"id": 2})])
    with pytest.raises(MainstemError) as caught:
        driver.run()
    assert caught.value.code == "FUNCTION_FAILED"
    assert "ConnectionError: not now" in caught.value.message
    assert driver.rows("keep") == []
    driver.run()
    assert file.read_text() == "1 2 1 2 "
    driver.send([Event("s", {"id": 3}), Event("s", raw=b"{broken")])
    driver.run()
    assert file.read_text() == "1 2 1 2 3 "
    receipts = sorted((row["batch"], row["records"]) for row in driver.rows("keep"))
    assert receipts == [(0, 2), (1, 1)]
