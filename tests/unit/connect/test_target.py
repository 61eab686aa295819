"""What a sink may read, and by which key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.catalogue import specs
from mainstem.connect.spec import Role
from mainstem.connect.targets.target import (
    OFFSET,
    PARTITION,
    TOPIC,
    Form,
    Shape,
    by_partition,
    module_of,
    poison_at,
)
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse
from mainstem.errors import MainstemError

SINKS = [spec for (role, _), spec in specs().items() if role is Role.SINK]


def defined(sql: str) -> Definition:
    [statement] = parse(sql)
    found: Definition = statement.definition  # type: ignore[union-attr]
    return found


STREAM = defined("CREATE STREAM s (id INT, shop STRING, n INT) WITH (key = 'shop')")
TABLE = defined("CREATE TABLE t (id INT PRIMARY KEY, n INT)")


def test_rows_of_a_stream_are_added_or_upserted_by_a_key() -> None:
    assert not Shape.of({}, STREAM).upserts
    shape = Shape.of({"key": ("shop", "id")}, STREAM)
    assert (shape.upserts, shape.deletes, shape.key) == (True, False, ("shop", "id"))


def test_rows_of_a_table_are_upserted_and_deleted_by_its_own_key() -> None:
    shape = Shape.of({"key": None}, TABLE)
    assert (shape.upserts, shape.deletes, shape.key) == (True, True, ("id",))


@pytest.mark.parametrize(
    ("source", "key", "code"),
    [
        (TABLE, ("n",), "INVALID_OPTION"),
        (STREAM, ("id",), "INVALID_OPTION"),
        (STREAM, ("shop", "name"), "UNKNOWN_COLUMN"),
        (defined("CREATE STREAM x (id INT)"), ("id",), "INVALID_OPTION"),
    ],
)
def test_a_key_by_which_records_are_not_in_order_is_refused(
    source: Definition, key: tuple[str, ...], code: str
) -> None:
    with pytest.raises(MainstemError) as caught:
        Shape.of({"key": key}, source)
    assert caught.value.code == code


def test_rows_by_partition_keep_their_order() -> None:
    rows = pa.table({TOPIC: list("abaa"), PARTITION: [0, 0, 1, 0], OFFSET: [5, 1, 7, 6]})
    parts = {(t, p): mine[OFFSET].to_pylist() for t, p, mine in by_partition(rows)}
    assert parts == {("a", 0): [5, 6], ("b", 0): [1], ("a", 1): [7]}
    assert poison_at(rows, 2, "why").offset == 7


@pytest.mark.parametrize("spec", SINKS, ids=lambda spec: spec.name)
def test_every_sink_has_a_target(spec: Any) -> None:
    module = module_of(spec.name)
    given = {field.name: field.example for field in spec.fields if field.required}
    assert module.form(spec.validate(given)) in Form
    assert module.GUARANTEE.startswith(("exactly once", "at least once"))
    assert isinstance(module.KEYED, bool)
    assert callable(module.check)
    assert callable(module.open_target)
