"""A fitness tracker's GPS points turned into place, speed and distance."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import cos, hypot, radians

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 2, 7, tzinfo=UTC)
PLACES = {
    "Zoo": (52.5079, 13.3376),
    "Victory Column": (52.5145, 13.3501),
    "Brandenburg Gate": (52.5163, 13.3777),
    "Bellevue": (52.5175, 13.3532),
    "Potsdamer Platz": (52.5096, 13.3759),
}
RUNNERS = ("ann", "bob", "chloé", "dmitri", "eve")


def events(seed: int) -> list[Event]:
    """The places, then runs through the park: points a few seconds and some metres apart."""
    choose = random.Random(seed)
    happened = [
        Event("places", {"place": place, "lat": lat, "lon": lon})
        for place, (lat, lon) in PLACES.items()
    ]
    at = BEGIN
    where = {runner: choose.choice(list(PLACES.values())) for runner in RUNNERS}
    toward = {runner: choose.choice(list(PLACES.values())) for runner in RUNNERS}
    seen = dict.fromkeys(RUNNERS, BEGIN)
    for _ in range(800):
        at += timedelta(milliseconds=choose.randrange(500, 1500))
        runner = choose.choice(RUNNERS)
        here, goal = where[runner], toward[runner]
        steps = choose.uniform(2, 4) * (at - seen[runner]).total_seconds()
        left = _metres(here, goal)
        if left <= steps:
            toward[runner] = choose.choice(list(PLACES.values()))
        part = min(1.0, steps / left) if left else 0.0
        where[runner] = (
            round(here[0] + part * (goal[0] - here[0]), 6),
            round(here[1] + part * (goal[1] - here[1]), 6),
        )
        seen[runner] = at
        lat, lon = where[runner]
        row = {"runner": runner, "lat": lat, "lon": lon, "at": clock(at)}
        happened.append(Event("gps", row))
    return happened


def answer(events: list[Event]) -> Answer:
    """Each runner's whole track, looked back over at every point."""
    tracks: dict[str, list[Row]] = defaultdict(list)
    rows = []
    for event in events:
        if event.stream != "gps":
            continue
        track = tracks[event.row["runner"]]
        track.append(event.row)
        ten = track[-10:]
        seconds = (moment(ten[-1]["at"]) - moment(ten[0]["at"])).total_seconds()
        place = min(PLACES, key=lambda name: _metres(_where(track[-1]), PLACES[name]))
        rows.append(
            {
                "runner": event.row["runner"],
                "at": moment(event.row["at"]),
                "place": place,
                "kmh": _length(ten) / seconds * 3.6 if seconds else 0.0,
                "metres_last_ten": _length(ten),
                "metres_total": _length(track),
            }
        )
    latest = {row["runner"]: row for row in rows}
    fastest: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        fastest[row["runner"], row["place"]].append(row["kmh"])
    return {
        "runners": list(latest.values()),
        "fastest": [
            {"runner": runner, "place": place, "kmh": max(speeds), "points": len(speeds)}
            for (runner, place), speeds in fastest.items()
        ],
        "track": rows,
    }


def _where(row: Row) -> tuple[float, float]:
    return row["lat"], row["lon"]


def _length(points: list[Row]) -> float:
    return sum((_metres(_where(a), _where(b)) for a, b in pairwise(points)), 0.0)


def _metres(a: tuple[float, float], b: tuple[float, float]) -> float:
    degree = 111_195
    return hypot((b[0] - a[0]) * degree, (b[1] - a[1]) * degree * cos(radians((a[0] + b[0]) / 2)))
