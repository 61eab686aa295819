"""Clicks and orders of an imaginary shop: the same seed gives the same events."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from play import Event

PAGES = ("/", "/lamps", "/chairs", "/tables", "/cart", "/help")
PRODUCTS = ("lamp", "chair", "table", "rug", "clock")
COUNTRIES = ("de", "fr", "it", "pl", "es")


def events(seed: int, start: datetime) -> Iterator[Event]:
    """Events without end: about five clicks to one order, some a few seconds late."""
    choose = random.Random(seed)
    number = 0
    while True:
        number += 1
        happened = start + timedelta(milliseconds=5 * number - choose.choice((0, 0, 0, 800, 2500)))
        at = happened.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        user = f"u{choose.randrange(200)}"
        if choose.random() < 0.83:
            row = {
                "user_id": user,
                "page": choose.choice(PAGES),
                "country": choose.choice(COUNTRIES),
                "at": at,
            }
            yield Event("clicks", row)
        else:
            row = {
                "order_id": f"o{number}",
                "user_id": user,
                "product": choose.choice(PRODUCTS),
                "amount": choose.randrange(500, 30_000) / 100,
                "at": at,
            }
            yield Event("orders", row)


class Answer:
    """What the tables must hold, computed in plain Python from the events themselves."""

    def __init__(self) -> None:
        self.page_visits: dict[tuple[str, str], int] = {}
        self.sales: dict[str, tuple[int, Decimal, Decimal]] = {}
        self.big_orders = 0

    def add(self, event: Event) -> None:
        """Takes one event into account."""
        row = event.row
        if event.stream == "clicks":
            minute = row["at"][:16] + ":00Z"
            key = (row["page"], minute)
            self.page_visits[key] = self.page_visits.get(key, 0) + 1
            return
        amount = Decimal(str(row["amount"]))
        orders, revenue, largest = self.sales.get(row["product"], (0, Decimal(0), Decimal(0)))
        self.sales[row["product"]] = (orders + 1, revenue + amount, max(largest, amount))
        self.big_orders += amount >= 100
