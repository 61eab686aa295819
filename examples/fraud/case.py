"""A scikit-learn model that scores payments on the stream."""

from __future__ import annotations

import random
import runpy
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from play import Answer, Event, clock, moment

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HERE = Path(__file__).parent


def events(seed: int) -> list[Event]:
    """A day of payments, made up as those that the model learned from."""
    payment = runpy.run_path(str(HERE / "train.py"))["payment"]
    choose = random.Random(seed)
    happened = []
    for number in range(1500):
        amount, hour, away, new = payment(choose, fraud=choose.random() < 0.1)
        at = BEGIN + timedelta(hours=hour, milliseconds=choose.randrange(3_600_000))
        row = {"payment": f"p{number}", "card": f"c{choose.randrange(300)}", "amount": amount}
        row |= {"km_from_home": away, "new_card": bool(new), "at": clock(at)}
        happened.append(Event("payments", row))
    return sorted(happened, key=lambda event: event.row["at"])


def answer(events: list[Event]) -> Answer:
    """The same model, asked for all payments at once."""
    model = runpy.run_path(str(HERE / "functions" / "fraud.py"))["model"]()
    rows = [event.row for event in events]
    features = [
        [row["amount"], moment(row["at"]).hour, row["km_from_home"], row["new_card"]]
        for row in rows
    ]
    scores = model.predict_proba(features)[:, 1]
    scored = [
        {k: row[k] for k in ("payment", "card", "amount")} | {"score": float(score)}
        for row, score in zip(rows, scores, strict=True)
    ]
    hours: dict[int, list[float]] = defaultdict(list)
    for event, row in zip(events, scored, strict=True):
        hours[moment(event.row["at"]).hour].append(row["score"])
    return {
        "held_payments": [row for row in scored if row["score"] > 0.8],
        "risk_by_hour": [
            {"hour": hour, "payments": len(scores), "average_score": sum(scores) / len(scores)}
            for hour, scores in hours.items()
        ],
        "scored": scored,
    }
