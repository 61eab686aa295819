"""A shopper seen on the mall's Wi-Fi gets a promotion within a minute, once a visit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from play import Answer, Event, clock, moment

BEGIN = datetime(2026, 3, 7, 9, tzinfo=UTC)
CATEGORIES = ("shoes", "books", "coffee", "games")
ENTRANCES = ("north", "south", "garage")
HALF_AN_HOUR = timedelta(minutes=30)


def events(seed: int) -> list[Event]:
    """Members and promotions, then a Saturday of phones that come, stay and come again."""
    choose = random.Random(seed)
    happened = [
        Event(
            "members",
            {
                "device": f"phone-{number}",
                "member": f"member-{number}",
                "likes": choose.choice(CATEGORIES),
                "wants_mail": choose.random() < 0.8,
            },
        )
        for number in range(40)
    ]
    for number, category in enumerate(CATEGORIES):
        begins = BEGIN + timedelta(hours=2 * number)
        row = {
            "promotion": f"promotion-{number}",
            "category": category,
            "offer": f"{category} -20%",
        }
        row |= {"begins": clock(begins), "ends": clock(begins + timedelta(hours=5))}
        happened.append(Event("promotions", row))
    seen = []
    for phone in range(80):  # half of them belong to nobody whom the mall knows
        for _ in range(choose.randrange(1, 4)):
            at = BEGIN + timedelta(seconds=choose.randrange(9 * 3600))
            for _ in range(choose.randrange(2, 12)):
                seen.append((at, f"phone-{phone}", choose.choice(ENTRANCES)))
                at += timedelta(seconds=choose.randrange(1, 300))
    seen.sort()
    for at, device, entrance in seen:
        row = {"device": device, "entrance": entrance, "at": clock(at)}
        happened.append(Event("sightings", row))
    return happened


def answer(events: list[Event]) -> Answer:
    """Sighting by sighting."""
    members = {e.row["device"]: e.row for e in events if e.stream == "members"}
    promotions = [e.row for e in events if e.stream == "promotions"]
    last_seen: dict[str, datetime] = {}
    messages = []
    for row in (e.row for e in events if e.stream == "sightings"):
        device, at = row["device"], moment(row["at"])
        arrived = device not in last_seen or at - last_seen[device] > HALF_AN_HOUR
        last_seen[device] = at
        member = members.get(device)
        if not arrived or member is None or not member["wants_mail"]:
            continue
        messages += [
            {
                "member": member["member"],
                "promotion": promotion["promotion"],
                "offer": promotion["offer"],
                "entrance": row["entrance"],
                "arrived": at,
            }
            for promotion in promotions
            if promotion["category"] == member["likes"]
            and moment(promotion["begins"]) <= at < moment(promotion["ends"])
        ]
    counted = Counter(message["promotion"] for message in messages)
    results = [{"promotion": name, "messages": number} for name, number in counted.items()]
    return {"promotion_results": results, "messages": messages}


def remark(ask: Callable[[str], list[list[Any]]]) -> str:
    """How long it took from the phone's record in the log to the message's."""
    seen = {
        (device, moment(at)): moment(logged)
        for device, at, logged in ask("SELECT device, at, _timestamp FROM sightings")
    }
    waited = sorted(
        (moment(logged) - seen[member.replace("member", "phone"), moment(at)]).total_seconds()
        for member, at, logged in ask("SELECT member, arrived, _timestamp FROM messages")
    )
    middle = waited[len(waited) // 2]
    return f"from sighting to message: {middle:.1f} s in the middle, {waited[-1]:.1f} s at most"
