"""Connected cars: all of it is processed in the region, only exceptions are sent on."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 2, 16, tzinfo=UTC)
CARS, SECONDS = 15, 120


def events(seed: int) -> list[Event]:
    """Two minutes of traffic, a record a second from each car."""
    choose = random.Random(seed)
    engine = {car: choose.uniform(85, 100) for car in range(CARS)}
    fuel = {car: choose.uniform(5, 60) for car in range(CARS)}
    happened = []
    for second in range(SECONDS):
        for car in range(CARS):
            engine[car] += choose.gauss(0.2 if car % 7 == 0 else 0, 0.8)
            fuel[car] -= choose.uniform(0, 0.01)
            row = {
                "car": f"car-{car}",
                "kmh": round(choose.uniform(0, 130), 1),
                "engine_celsius": round(engine[car], 1),
                "braking": round(choose.expovariate(0.4), 2),
                "fuel": round(fuel[car], 2),
                "at": clock(BEGIN + timedelta(seconds=second, milliseconds=60 * car)),
            }
            happened.append(Event("telemetry", row))
    return happened


def answer(events: list[Event]) -> Answer:
    """Sorted into minutes, and into ten seconds."""
    rows = [event.row for event in events]
    minutes = [
        {
            "car": car,
            "minute": begin,
            "records": len(group),
            "kmh": sum(r["kmh"] for r in group) / len(group),
            "engine_celsius": max(r["engine_celsius"] for r in group),
            "fuel": min(r["fuel"] for r in group),
        }
        for (car, begin), group in _grouped(rows, lambda at: at.replace(second=0, microsecond=0))
    ]
    tens = [
        {
            "car": car,
            "since": begin,
            "engine_celsius": max(r["engine_celsius"] for r in group),
            "hard_stops": sum(r["braking"] > 8 for r in group),
            "fuel": min(r["fuel"] for r in group),
        }
        for (car, begin), group in _grouped(
            rows, lambda at: at.replace(second=at.second // 10 * 10, microsecond=0)
        )
    ]
    wrong = [t for t in tens if t["engine_celsius"] > 115 or t["hard_stops"] >= 2]
    return {"car_minutes": minutes, "exceptions": wrong}


def _grouped(
    rows: list[Row], begin: Callable[[datetime], datetime]
) -> list[tuple[tuple[str, datetime], list[Row]]]:
    groups: dict[tuple[str, datetime], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["car"], begin(moment(row["at"]))].append(row)
    return list(groups.items())


def remark(ask: Callable[[str], list[list[Any]]]) -> str:
    """How little leaves the region."""
    [[arrived]] = ask("SELECT count(*) FROM telemetry")
    [[sent]] = ask("SELECT count(*) FROM exceptions")
    return f"{arrived} records stayed in the region, {sent} were sent to headquarters"
