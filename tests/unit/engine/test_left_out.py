"""Values that changes leave out: they are those that the row had before."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from mainstem.engine.left_out import GAPS, KEPT, MOVED, ORDER, Filler, Filling

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("n", pa.int64()),
        (KEPT, pa.bool_()),
        (ORDER, pa.int64()),
        (MOVED, pa.bool_()),
        (GAPS, pa.list_(pa.string())),
    ]
)
OLD: dict[str, Any] = {ORDER: -1}


def row(id: int, note: str | None = None, **more: Any) -> dict[str, Any]:
    beside = {KEPT: True, ORDER: 5, MOVED: False, GAPS: None}
    return {"id": id, "note": note, "tags": None, "n": None, **beside, **more}


def gone(id: int) -> dict[str, Any]:
    return row(id, **{KEPT: False})


def left(id: int, *names: str, **more: Any) -> dict[str, Any]:
    return row(id, **{GAPS: list(names) or ["note"]}, **more)


def filled(*rows: dict[str, Any], size: int = 2, wanted: set[int] | None = None) -> list[Any]:
    """Id, note and tags of the rows that come out; None for those that go."""
    keys = {(r["id"],) for r in rows} if wanted is None else {(id,) for id in wanted}
    filler = Filler(Filling(("id",), ("note", "tags"), keys))
    parts = [
        pa.RecordBatch.from_pylist(list(rows[at : at + size]), schema=SCHEMA)
        for at in range(0, len(rows), size)
    ]
    made = [found for part in parts for found in filler.fill(part).to_pylist()]
    assert all(found.keys() == {"id", "note", "tags", "n", KEPT} for found in made)
    return [(f["id"], f["note"], f["tags"]) if f[KEPT] else (f["id"], None) for f in made]


def test_of_the_table_and_of_changes() -> None:
    assert filled(row(1, "a", **OLD), row(2, "b", tags=["x"], **OLD), left(1), left(2, "tags")) == [
        (1, "a", None),
        (2, None, ["x"]),
    ]
    assert filled(left(1), row(1, "c"), left(1), row(1, None), left(1)) == [
        (1, None, None),
        (1, "c", None),
        (1, "c", None),
        (1, None, None),
        (1, None, None),
    ]


def test_a_row_that_came_again_is_another_one() -> None:
    assert filled(row(1, "a"), gone(1), left(1)) == [(1, "a", None), (1, None), (1, None, None)]


def test_a_row_takes_its_values_along_to_another_key() -> None:
    moved = {MOVED: True}
    rows = [row(1, "a", **OLD), gone(1), left(2, **moved), gone(2), left(3, **moved), left(3)]
    for size in range(1, len(rows) + 1):
        assert filled(*rows, size=size) == [
            (1, None),
            (2, "a", None),
            (2, None),
            *[(3, "a", None)] * 2,
        ]
    assert filled(row(1, "a"), gone(1), row(3, "b"), left(2)) == [
        (1, "a", None),
        (1, None),
        (3, "b", None),
        (2, None, None),  # not that of another row that went
    ]


def test_a_snapshot_has_read_the_row_under_its_new_key_already() -> None:
    """Changes from before it follow it; of the row under its old key nothing was told."""
    moved = {MOVED: True}
    read = row(3, "a", **OLD)
    assert filled(read, gone(2), left(3, **moved), left(3)) == [(2, None), *[(3, "a", None)] * 2]
    found = filled(read, gone(1), left(2, **moved), gone(2), left(3, **moved))
    assert found == [(1, None), (2, None, None), (2, None), (3, "a", None)]


def test_only_what_is_looked_for_is_kept() -> None:
    filler = Filler(Filling(("id",), ("note", "tags"), {(1,)}))
    filler.fill(pa.RecordBatch.from_pylist([row(1, "a"), row(2, "b")], schema=SCHEMA))
    assert filler._known == {(1,): {"note": "a", "tags": None}}


def test_a_random_history() -> None:
    dice = random.Random(11)
    known: dict[int, str | None] = {}
    rows: list[dict[str, Any]] = []
    wanted: list[Any] = []
    for number in range(400):
        id = dice.randrange(8)
        if id in known and dice.random() < 0.3:
            del known[id]
            rows.append(gone(id))
            wanted.append((id, None))
        elif id not in known and known and dice.random() < 0.5:
            old = dice.choice(sorted(known))
            known[id] = known.pop(old)
            rows += [gone(old), left(id, **{MOVED: True})]
            wanted += [(old, None), (id, known[id], None)]
        elif id in known and dice.random() < 0.6:
            rows.append(left(id))
            wanted.append((id, known[id], None))
        else:
            known[id] = dice.choice([f"v{number}", None])
            rows.append(row(id, known[id]))
            wanted.append((id, known[id], None))
    for size in (1, 7, len(rows)):
        assert filled(*rows, size=size) == wanted
