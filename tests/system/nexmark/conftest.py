"""The events of the Nexmark benchmark, small and from a seed: people, auctions, bids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

EVENTS = 20_000
STATES = ("OR", "ID", "CA", "WA", "AZ", "WY")
CITIES = ("Phoenix", "San José", "Boise", "Portland", "Bend", "Seattle")
NAMES = ("Ann", "Bob", "Chloé", "Dmitri", "Eve", "Łukasz", "雪")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
BEGIN = datetime(2026, 1, 1, 22, tzinfo=UTC)  # midnight is among the events
PACE = timedelta(milliseconds=450)
OUT_OF_ORDER_MS = 10_000

Row = dict[str, Any]


@dataclass
class Nexmark:
    """Rows in the order in which they arrive; no two events have one time."""

    person: list[Row] = field(default_factory=list)
    auction: list[Row] = field(default_factory=list)
    bid: list[Row] = field(default_factory=list)

    def sent(self) -> Iterator[tuple[str, Row]]:
        for name in ("person", "auction", "bid"):
            yield from ((name, row) for row in getattr(self, name))


@pytest.fixture(scope="session")
def nexmark(seed: int) -> Nexmark:
    """One person and three auctions among fifty events, as in the original."""
    chance = random.Random(f"nexmark {seed}")
    made = Nexmark()
    events = sorted(
        range(EVENTS), key=lambda n: n * 450 + chance.randrange(OUT_OF_ORDER_MS)
    )  # out of order, by ten seconds at most
    for number in events:
        at = BEGIN + number * PACE
        match number % 50:
            case 0:
                made.person.append(_person(number // 50, at, chance))
            case 1 | 2 | 3:
                made.auction.append(_auction(number // 50 * 3 + number % 50 - 1, at, chance))
            case _:
                made.bid.append(_bid(number, at, chance))
    # the last bid ends all sessions; its own stays open
    end = BEGIN + EVENTS * PACE + timedelta(days=1)
    made.bid.append({**_bid(EVENTS, end, chance), "bidder": -1, "auction": -1})
    return made


def _person(number: int, at: datetime, chance: random.Random) -> Row:
    name = chance.choice(NAMES)
    return {
        "id": number,
        "name": name,
        "email_address": f"{name.lower()}{number}@example.com",
        "city": chance.choice(CITIES),
        "state": chance.choice(STATES),
        "date_time": at,
        "extra": _extra(chance),
    }


def _auction(number: int, at: datetime, chance: random.Random) -> Row:
    first = chance.randrange(1, 1000)
    return {
        "id": number,
        "item_name": f"item {number}",
        "initial_bid": first,
        "reserve": first + chance.randrange(1000),
        "date_time": at,
        "expires": at + timedelta(seconds=chance.randrange(10, 2000)),
        # most sellers are new ones
        "seller": _near(number // 3, 20 if chance.random() < 0.7 else 1000, chance),
        "category": 10 + chance.randrange(5),
        "extra": _extra(chance),
    }


def _bid(number: int, at: datetime, chance: random.Random) -> Row:
    newest = number // 50 * 3
    # half of all bids are for a few auctions that are hot
    auction = newest // 60 * 60 if chance.random() < 0.5 else _near(newest, 60, chance)
    channel = chance.choice(CHANNELS)
    url = f"https://www.nexmark.com/{_word(chance)}/{_word(chance)}/item.htm?query=1"
    if chance.random() < 0.5:
        channel = f"channel-{chance.randrange(100)}"
        url += f"&channel_id={chance.randrange(2**31)}" if chance.random() < 0.9 else ""
    return {
        "auction": auction,
        "bidder": _near(number // 50, 100, chance),
        "price": int(10 ** (chance.random() * 6) * 100),
        "channel": channel,
        "url": url,
        "date_time": at,
        "extra": _extra(chance),
    }


def _near(newest: int, distance: int, chance: random.Random) -> int:
    return max(0, newest - chance.randrange(distance))


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghij_", k=chance.randrange(1, 6)))


def _extra(chance: random.Random) -> str:
    return "".join(chance.choices("abcdeé ", k=chance.randrange(12)))
