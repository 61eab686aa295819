"""Game cities with a chat and a loot topic for each group; one more city opens meanwhile."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

from play import Answer, Event, Statement

GROUPS = (("nyc", "red"), ("nyc", "blue"), ("rome", "red"))
LATER = ("oslo", "green")
ITEMS = {"coin": 1, "ring": 20, "sword": 45, "crown": 300}
CLEAN = ("well played", "to the bridge!", "who has a sword?", "snoobs on the left")
RUDE = {
    "what a NOOB": "noob",
    "you n00b": "noob",
    "tr4sh, all of you": "trash",
    "Cheater!": "cheater",
}


def events(seed: int) -> list[Event | Statement]:
    """Some play, then a city opens, then all play."""
    choose = random.Random(seed)
    happened: list[Event | Statement] = [_one(choose, GROUPS) for _ in range(400)]
    city, team = LATER
    for kind, columns in (
        ("chat", "player STRING, text STRING"),
        ("loot", "player STRING, item STRING, gold INT"),
    ):
        options = f"WITH (topic = '{city}.{team}.{kind}', key = 'player')"
        happened.append(Statement(f"CREATE STREAM {city}_{team}_{kind} ({columns}) {options}"))
    return happened + [_one(choose, (*GROUPS, LATER)) for _ in range(400)]


def _one(choose: random.Random, groups: tuple[tuple[str, str], ...]) -> Event:
    city, team = choose.choice(groups)
    player = f"{city}-{team}-{choose.randrange(8)}"
    if choose.random() < 0.5:
        item = choose.choice(list(ITEMS))
        row = {"player": player, "item": item, "gold": ITEMS[item]}
        return Event(f"{city}_{team}_loot", row)
    text = choose.choice(list(RUDE) if choose.random() < 0.1 else CLEAN)
    return Event(f"{city}_{team}_chat", {"player": player, "text": text})


def answer(events: list[Event | Statement]) -> Answer:
    """Message by message, find by find."""
    removed = []
    book = []
    purses: Counter[str] = Counter()
    finds: Counter[str] = Counter()
    cities: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in events:
        if isinstance(event, Statement):
            continue
        city, team, kind = event.stream.split("_")
        row, player = event.row, event.row["player"]
        if kind == "chat":
            if row["text"] in RUDE:
                removed.append(
                    {
                        "city": city,
                        "team": team,
                        "player": player,
                        "word": RUDE[row["text"]],
                        "text": row["text"],
                    }
                )
            continue
        finds[player] += 1
        purses[player] += row["gold"]
        cities[city, team].append(row["gold"])
        book.append(
            {
                "player": player,
                "number": finds[player],
                "city": city,
                "item": row["item"],
                "purse": purses[player],
            }
        )
    rude = Counter(row["player"] for row in removed)
    return {
        "muted_players": [{"player": p, "removed": n} for p, n in rude.items() if n >= 3],
        "gold_of_cities": [
            {"city": city, "team": team, "finds": len(gold), "gold": sum(gold)}
            for (city, team), gold in cities.items()
        ],
        "loot_book": book,
        "removed_messages": removed,
    }
