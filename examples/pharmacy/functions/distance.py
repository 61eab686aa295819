"""How far it is from here to there."""

from math import asin, cos, radians, sin, sqrt

from mainstem import function

EARTH_KM = 6371.0


@function
def km(lat: float, lon: float, to_lat: float, to_lon: float) -> float:
    """Along the great circle. With a NULL among the arguments, SQL gets NULL."""
    north, east = radians(to_lat - lat) / 2, radians(to_lon - lon) / 2
    part = sin(north) ** 2 + cos(radians(lat)) * cos(radians(to_lat)) * sin(east) ** 2
    return 2 * EARTH_KM * asin(sqrt(part))
