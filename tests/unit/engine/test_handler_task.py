"""Calls of event functions: again, and until it is enough."""

from typing import Any

import pyarrow as pa

from mainstem.definitions.project import load_definitions
from mainstem.engine.handler_task import HandlerCalls
from mainstem.engine.records_for import PLACE

HEAD = """
from dataclasses import dataclass
from mainstem import on

@dataclass
class Order:
    id: int

"""


def called(text: str, *numbers: int) -> tuple[HandlerCalls, list[float]]:
    [definition] = load_definitions([("functions/f.py", HEAD + text)])
    assert definition.handler is not None
    pauses: list[float] = []
    calls = HandlerCalls(definition.handler, pauses.append)
    count = len(numbers)
    columns: list[Any] = [numbers, ["t"] * count, [3] * count, range(count), [0] * count]
    calls.call(pa.table([list(column) for column in columns], names=["id", *PLACE]))
    return calls, pauses


def test_it_is_tried_again_after_longer_and_longer_pauses() -> None:
    calls, pauses = called(
        "left = [3]\n"
        '@on("orders", tries=0, pause=30)\n'
        "def f(order: Order, id: str) -> None:\n"
        "    left[0] -= 1\n"
        "    if left[0] >= 0: raise OSError(id)\n",
        1,
        2,
    )
    assert pauses == [30, 60, 60]
    assert calls.rows == [{"id": "t/3/0", "tries": 4}, {"id": "t/3/1", "tries": 1}]
    assert calls.failed == {}


def test_enough_is_enough() -> None:
    calls, pauses = called(
        '@on("orders", tries=2)\n'
        "def f(order: Order) -> list[Order]:\n"
        "    return [Order(6 // order.id)]\n",
        0,
        2,
    )
    assert [row["id"] for row in calls.rows] == [3]
    assert list(calls.failed) == [0]
    assert "ZeroDivisionError" in calls.failed[0] and "2 times" in calls.failed[0]
    assert pauses == [1.0]


def test_a_list_that_fails_is_tried_record_by_record() -> None:
    calls, _ = called(
        '@on("orders", batch=True, tries=1)\n'
        "def f(orders: list[Order], ids: list[str]) -> list[Order]:\n"
        "    return [Order(6 // order.id * len(ids)) for order in orders]\n",
        1,
        0,
        2,
    )
    assert [row["id"] for row in calls.rows] == [6, 3]
    assert list(calls.failed) == [1]


def test_a_row_of_another_type_is_a_failure() -> None:
    calls, _ = called(
        '@on("orders", tries=1)\ndef f(order: Order) -> list[Order]:\n    return [Order("x")]\n', 1
    )
    assert (calls.rows, list(calls.failed)) == ([], [0])
