"""From points to movement: what needs the points before, or a little geometry."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import cos, hypot, radians

from mainstem import State, function, stateful

LAST = 10


@dataclass
class Point:
    runner: str
    lat: float
    lon: float
    at: datetime


@dataclass
class Track:
    """What is kept for a runner."""

    points: list[Point]
    metres: float


@dataclass
class Movement:
    runner: str
    lat: float
    lon: float
    at: datetime
    kmh: float
    metres_last_ten: float
    metres_total: float


@stateful(stream="gps", key="runner")
def movements(point: Point, state: State[Track]) -> Iterator[Movement]:
    """Speed and distance over the runner's last ten points."""
    track = state.value or Track([], 0.0)
    if track.points:
        before = track.points[-1]
        track.metres += metres(before.lat, before.lon, point.lat, point.lon)
    track.points = [*track.points, point][-LAST:]
    state.value = track
    ran = sum((metres(a.lat, a.lon, b.lat, b.lon) for a, b in pairwise(track.points)), 0.0)
    seconds = (point.at - track.points[0].at).total_seconds()
    kmh = 3.6 * ran / seconds if seconds else 0.0
    yield Movement(point.runner, point.lat, point.lon, point.at, kmh, ran, track.metres)


@dataclass
class Place:
    place: str
    lat: float
    lon: float


@function
def nearest(lat: float, lon: float, places: list[Place]) -> str | None:
    """The name of the nearest place."""
    if not places:
        return None
    return min(places, key=lambda p: metres(lat, lon, p.lat, p.lon)).place


def metres(lat: float, lon: float, to_lat: float, to_lon: float) -> float:
    """As the crow flies; good enough within a city."""
    north = (to_lat - lat) * 111_195
    east = (to_lon - lon) * 111_195 * cos(radians((lat + to_lat) / 2))
    return hypot(north, east)
