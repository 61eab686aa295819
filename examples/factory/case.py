"""Factory sensors that run hot: final minutes, and an alarm that rings once and clears."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 2, 6, tzinfo=UTC)
END = BEGIN + timedelta(minutes=10)
LATE = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)
SENSORS = 6


def events(seed: int) -> list[Event]:
    """Ten minutes of readings every two seconds; a last round five minutes later."""
    choose = random.Random(seed)
    happened: list[tuple[datetime, Event]] = []
    for sensor in range(SENSORS):
        celsius = choose.uniform(60, 80)
        goal = celsius
        for second in range(0, 600, 2):
            if second % 50 == 0:
                goal = choose.choice((65, 75, 98, 105))
            celsius += 0.3 * (goal - celsius) + choose.gauss(0, 1)
            if sensor == 0 and second > 400 and goal > 90 and celsius > 95:
                break  # burned through
            happened.append(_reading(sensor, celsius, BEGIN + timedelta(seconds=second)))
    happened += [_reading(s, 50, END + 5 * MINUTE) for s in range(1, SENSORS)]
    # each press has a line of its own, the slowest takes five seconds
    happened.sort(key=lambda item: item[0] + timedelta(seconds=int(item[1].row["sensor"][-1])))
    return [event for _, event in happened]


def _reading(sensor: int, celsius: float, at: datetime) -> tuple[datetime, Event]:
    row = {"sensor": f"press-{sensor}", "celsius": round(celsius, 2), "at": clock(at)}
    return at, Event("readings", row)


def answer(events: list[Event]) -> Answer:
    """Each sensor's readings in the order of their times."""
    by_sensor: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    for event in events:
        by_sensor[event.row["sensor"]].append((moment(event.row["at"]), event.row["celsius"]))
    newest = max(at for readings in by_sensor.values() for at, _ in readings)
    hot, alarms = [], []
    for sensor, readings in by_sensor.items():
        readings.sort()
        hot += _hot_minutes(sensor, readings, closed=newest - LATE)
        alarms += _alarms(sensor, readings, now=newest - LATE)
    board = {alarm["sensor"]: alarm for alarm in alarms}
    return {
        "alarm_board": [{k: a[k] for k in ("sensor", "what", "at")} for a in board.values()],
        "alarms": alarms,
        "hot_minutes": hot,
    }


def _hot_minutes(
    sensor: str, readings: list[tuple[datetime, float]], closed: datetime
) -> list[Row]:
    minutes: dict[datetime, list[float]] = defaultdict(list)
    for at, celsius in readings:
        minutes[at.replace(second=0, microsecond=0)].append(celsius)
    return [
        {
            "sensor": sensor,
            "minute": minute,
            "average": sum(values) / len(values),
            "highest": max(values),
            "readings": len(values),
        }
        for minute, values in minutes.items()
        if minute + MINUTE <= closed and sum(values) / len(values) > 90
    ]


def _alarms(sensor: str, readings: list[tuple[datetime, float]], now: datetime) -> list[Row]:
    alarms: list[Row] = []
    since: datetime | None = None

    def tell(what: str, at: datetime) -> None:
        alarms.append({"sensor": sensor, "what": what, "at": at, "hot_since": since})

    for at, celsius in readings:
        if celsius > 90:
            since = since or at
        elif since is not None:
            if at >= since + MINUTE:
                tell("raised", since + MINUTE)
                tell("cleared", at)
            since = None
    if since is not None and since + MINUTE < now:
        tell("raised", since + MINUTE)
    return alarms
