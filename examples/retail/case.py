"""A retail sale fans out to inventory, loyalty and analytics."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from play import Answer, Row, Sql, clock

NEEDS = {
    "TILL_URL": "postgres:till",
    "INVENTORY_URL": "redis",
    "LOYALTY_URL": "postgres:loyalty",
    "ANALYTICS_FOLDER": "folder:analytics",
}
BEGIN = datetime(2026, 5, 8, 20, tzinfo=UTC)
PRICES = {"bread": 320, "cheese": 890, "jam": 450, "tea": 610}
STORES = ("market street", "station")


def events(seed: int) -> list[Sql]:
    """An evening and the next morning; the outbox keeps nothing, and some sales are taken back."""
    choose = random.Random(seed)
    at = BEGIN
    happened = []
    for number in range(120):
        at += timedelta(minutes=choose.randrange(12))
        products = choose.sample(sorted(PRICES), choose.randrange(1, 4))
        sale = {
            "id": number,
            "store": choose.choice(STORES),
            "member": choose.choice([None, *(f"member-{n}" for n in range(8))]),
            "at": clock(at),
            "items": [
                {"product": product, "n": choose.randrange(1, 4), "cents": PRICES[product]}
                for product in products
            ],
        }
        text = (
            f"INSERT INTO sales VALUES ({number}, '{sale['store']}', '{sale['at']}');"
            "INSERT INTO outbox (aggregatetype, aggregateid, type, payload)"
            f" VALUES ('sale', '{number}', 'sold', '{json.dumps(sale)}');"
            "DELETE FROM outbox"
        )
        happened.append(Sql("till", text, fails=choose.random() < 0.1))
    return happened


def answer(events: list[Sql]) -> Answer:
    """Sale by sale, of those that were committed."""
    sold: Counter[tuple[str, str]] = Counter()
    spent: Counter[str] = Counter()
    lines: list[Row] = []
    for event in events:
        if event.fails:
            continue
        sale = json.loads(event.text[event.text.index("{") : event.text.rindex("}") + 1])
        for item in sale["items"]:
            cents = item["n"] * item["cents"]
            sold[sale["store"], item["product"]] += item["n"]
            if sale["member"] is not None:
                spent[sale["member"]] += cents
            line = {column: sale[column] for column in ("id", "store", "member")}
            lines.append({**line, "product": item["product"], "n": item["n"], "cents": cents})
    return {
        "redis:sold:": [
            {"store": store, "product": product, "n": n} for (store, product), n in sold.items()
        ],
        "postgres:loyalty.spent": [{"member": m, "cents": cents} for m, cents in spent.items()],
        "parquet:analytics": lines,
    }
