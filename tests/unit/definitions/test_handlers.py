"""`@on` functions, read from their source text."""

import pytest

from mainstem.definitions.handlers import RECEIPTS
from mainstem.definitions.model import Definition, Flavour
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError

HEAD = """\
from dataclasses import dataclass
from mainstem import on

@dataclass
class Order:
    id: int

"""
BODY = "def f(order: Order) -> None:\n    pass\n"
MANY = "def f(orders: list[Order], ids: list[str]) -> list[Order]:\n    return orders\n"


def read(text: str) -> Definition:
    [found] = load_definitions([("functions/f.py", HEAD + text)])
    return found


def test_a_function_that_returns_nothing_leaves_receipts() -> None:
    found = read('@on("orders")\n' + BODY)
    handler = found.handler
    assert handler is not None and found.query is not None
    assert (found.query.inputs, found.start) == (("orders",), "latest")
    assert (handler.batch, handler.tries, handler.pause, handler.most) == (False, 5, 1.0, 500)
    function = handler.function
    assert (function.flavour, function.returns, function.nullable) == (
        Flavour.EVENT,
        RECEIPTS,
        True,
    )


def test_options_and_lists() -> None:
    mark = '@on("orders", batch=True, tries=0, pause=2, most=9, start="earliest")\n'
    found = read(mark + MANY)
    handler = found.handler
    assert handler is not None and found.start == "earliest"
    assert (handler.batch, handler.tries, handler.pause, handler.most) == (True, 0, 2, 9)
    assert [p.type for p in handler.function.parameters] == ["struct<id:bigint>", "string"]
    assert handler.function.returns == "struct<id:bigint>"


@pytest.mark.parametrize(
    "text",
    [
        "@on\n" + BODY,
        "@on()\n" + BODY,
        '@on(stream="orders")\n' + BODY,
        '@on("no name")\n' + BODY,
        '@on("orders", tries=-1)\n' + BODY,
        '@on("orders", tries=True)\n' + BODY,
        '@on("orders", most=0)\n' + BODY,
        '@on("orders", start="now")\n' + BODY,
        '@on("orders", speed=1)\n' + BODY,
        '@on("orders", batch=True)\n' + BODY,
        '@on("orders")\n' + MANY,
        '@on("orders")\n' + BODY.replace("order: Order", ""),
        '@on("orders")\n' + BODY.replace("order: Order", "order: int"),
        '@on("orders")\n' + BODY.replace("order: Order", "order: Order, id: int"),
        '@on("orders")\n' + BODY.replace(" -> None", ""),
        '@on("orders")\n' + BODY.replace("None", "Order"),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(MainstemError) as caught:
        read(text)
    assert caught.value.code == "INVALID_FUNCTION"
    assert caught.value.hint
