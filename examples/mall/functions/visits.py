"""A visit begins when a phone is seen that was not seen for half an hour."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainstem import State, stateful

AWAY = timedelta(minutes=30)


@dataclass
class Sighting:
    device: str
    entrance: str
    at: datetime


@dataclass
class Arrival:
    device: str
    entrance: str
    at: datetime


@stateful(stream="sightings", key="device")
def arrivals(seen: Sighting, last_seen: State[datetime]) -> Iterator[Arrival]:
    """One row for each visit, at once: nobody waits for a window to close."""
    before = last_seen.value
    last_seen.value = seen.at
    if before is None or seen.at - before > AWAY:
        yield Arrival(seen.device, seen.entrance, seen.at)
