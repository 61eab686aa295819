"""An alarm for a sensor that has been too hot for a minute, raised once, and cleared."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainstem import State, Timer, stateful

TOO_HOT = 90.0
PATIENCE = timedelta(minutes=1)


@dataclass
class Reading:
    sensor: str
    celsius: float
    at: datetime


@dataclass
class Heat:
    since: datetime
    raised: bool


@dataclass
class Alarm:
    sensor: str
    what: str
    at: datetime
    hot_since: datetime


@stateful(stream="readings", key="sensor")
def alarms(reading: Reading | None, state: State[Heat], timer: Timer) -> Iterator[Alarm]:
    """The timer rings although a sensor says nothing more: it may have burned through."""
    heat = state.value
    due = heat is not None and (reading is None or reading.at >= heat.since + PATIENCE)
    if heat is not None and due and not heat.raised:
        heat.raised = True
        timer.clear()
        yield Alarm(state.key, "raised", heat.since + PATIENCE, heat.since)
    if reading is None:
        return
    if reading.celsius > TOO_HOT:
        if heat is None:
            state.value = Heat(reading.at, raised=False)
            timer.set(reading.at + PATIENCE)
    elif heat is not None:
        if heat.raised:
            yield Alarm(state.key, "cleared", reading.at, heat.since)
        state.clear()
        timer.clear()
