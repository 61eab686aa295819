"""A model for each machine that learns on the stream and predicts before it learns."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
MACHINES = {"mill": (12.0, 20.0, 1.5), "lathe": (4.0, 9.0, 0.5), "pump": (7.0, 3.0, -2.0)}


def events(seed: int) -> list[Event]:
    """Power that hangs on load and warmth, with some noise, and now and then something wrong."""
    choose = random.Random(seed)
    happened = []
    for number in range(1500):
        machine = choose.choice(list(MACHINES))
        idle, per_load, per_warmth = MACHINES[machine]
        load, ambient = choose.random(), choose.uniform(5, 35)
        power = idle + per_load * load + per_warmth * (ambient - 20) / 10 + choose.gauss(0, 0.3)
        if choose.random() < 0.01:
            power += choose.choice((-9, 9))
        row = {"machine": machine, "load": round(load, 3), "ambient": round(ambient, 1)}
        row |= {"power": round(power, 3), "at": clock(BEGIN + timedelta(seconds=10 * number))}
        happened.append(Event("power_readings", row))
    return happened


def answer(events: list[Event]) -> Answer:
    """The same steps, one after the other."""
    learned: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    counted: dict[str, int] = defaultdict(int)
    forecasts: list[Row] = []
    for row in (event.row for event in events):
        machine = row["machine"]
        base, for_load, for_warmth = learned[machine]
        warmth = (row["ambient"] - 20) / 10
        predicted = base + for_load * row["load"] + for_warmth * warmth
        step = 0.05 * (row["power"] - predicted)
        learned[machine] = [base + step, for_load + step * row["load"], for_warmth + step * warmth]
        counted[machine] += 1
        forecasts.append(
            {
                "machine": machine,
                "number": counted[machine],
                "at": moment(row["at"]),
                "predicted": predicted,
                "power": row["power"],
            }
        )
    hundreds: dict[tuple[str, int], list[float]] = defaultdict(list)
    for f in forecasts:
        error = abs(f["power"] - f["predicted"])
        hundreds[f["machine"], (f["number"] - 1) // 100].append(error)
    return {
        "learning_curve": [
            {"machine": machine, "hundred": hundred, "mean_error": sum(errors) / len(errors)}
            for (machine, hundred), errors in hundreds.items()
        ],
        "unusual": [
            f for f in forecasts if f["number"] > 200 and abs(f["power"] - f["predicted"]) > 5
        ],
        "forecasts": forecasts,
    }
