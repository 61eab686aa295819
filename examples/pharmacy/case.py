"""Pharmacy visits against home, work and doctor: who collects a drug far from all of them?"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from math import acos, cos, radians, sin
from typing import Any

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
DRUGS = ("oxycodone", "fentanyl", "diazepam")
PATIENTS, DOCTORS, PHARMACIES, VISITS = 40, 6, 30, 1200


def events(seed: int) -> list[Event]:
    """People, doctors and pharmacies of a region, then two months of visits."""
    choose = random.Random(seed)

    def place(name: str = "") -> dict[str, float]:
        at = (choose.uniform(47.5, 49.5), choose.uniform(8.5, 12.5))
        return dict(zip((f"{name}lat", f"{name}lon"), map(_fine, at), strict=True))

    happened = [Event("doctors", {"doctor": f"d{n}", **place()}) for n in range(DOCTORS)]
    pharmacies: list[Row] = [{"pharmacy": f"f{n}", **place()} for n in range(PHARMACIES)]
    happened += [Event("pharmacies", pharmacy) for pharmacy in pharmacies]
    homes: dict[str, tuple[float, float]] = {}
    for number in range(PATIENTS):
        row: Row = {"patient": f"p{number}", "name": f"Patient {number}", **place("home_")}
        if choose.random() < 0.8:
            row |= place("work_")
        if choose.random() < 0.9:
            row["doctor"] = f"d{choose.randrange(DOCTORS)}"
        homes[row["patient"]] = (row["home_lat"], row["home_lon"])
        happened.append(Event("patients", row))
    at = BEGIN
    for number in range(VISITS):
        at += timedelta(seconds=choose.randrange(8400))
        patient = choose.choice(list(homes))
        # most go to the pharmacy next door; a few patients go anywhere
        near = min(pharmacies, key=lambda p: _km(homes[patient], (p["lat"], p["lon"])))
        roams = int(patient[1:]) % 10 == 0 or choose.random() < 0.05
        row = {"visit": f"v{number}", "patient": patient, "drug": choose.choice(DRUGS)}
        row |= {"pharmacy": (choose.choice(pharmacies) if roams else near)["pharmacy"]}
        happened.append(Event("visits", row | {"at": clock(at)}))
    return happened


def answer(events: list[Event]) -> Answer:
    """Look-ups in dictionaries, then a count."""
    known: dict[str, dict[str, Row]] = defaultdict(dict)
    for event in events:
        if event.stream != "visits":
            known[event.stream][next(iter(event.row.values()))] = event.row
    far: dict[tuple[Any, ...], list[tuple[str, float]]] = defaultdict(list)
    for visit in (e.row for e in events if e.stream == "visits"):
        patient = known["patients"][visit["patient"]]
        pharmacy = known["pharmacies"][visit["pharmacy"]]
        reasons = [(patient["home_lat"], patient["home_lon"])]
        if "work_lat" in patient:
            reasons.append((patient["work_lat"], patient["work_lon"]))
        if "doctor" in patient:
            doctor = known["doctors"][patient["doctor"]]
            reasons.append((doctor["lat"], doctor["lon"]))
        away = min(_km((pharmacy["lat"], pharmacy["lon"]), reason) for reason in reasons)
        if away > 50:
            month = moment(visit["at"]).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            key = (visit["patient"], patient["name"], visit["drug"], month)
            far[key].append((visit["pharmacy"], away))
    return {
        "suspects": [
            {
                "patient": patient,
                "name": name,
                "drug": drug,
                "month": month,
                "far_visits": len(visits),
                "pharmacies": len({pharmacy for pharmacy, _ in visits}),
                "farthest_km": max(away for _, away in visits),
            }
            for (patient, name, drug, month), visits in far.items()
            if len(visits) >= 3 and len({pharmacy for pharmacy, _ in visits}) >= 3
        ]
    }


def _fine(degrees: float) -> float:
    return round(degrees, 4)


def _km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """By the law of cosines: another formula than that of functions/distance.py."""
    (lat, lon), (to_lat, to_lon) = map(radians, a), map(radians, b)
    cosine = sin(lat) * sin(to_lat) + cos(lat) * cos(to_lat) * cos(to_lon - lon)
    return 6371.0 * acos(min(1.0, cosine))
