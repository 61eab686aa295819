"""Insurance quotes as events: commands that are decided upon what was seen, and a read model."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from play import Answer, Append, Row, clock

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
AGENTS = ("ann", "bob", "cem")
QUOTES = 60


def decide(history: list[Row], choose: random.Random) -> Row | None:
    """A command: what an agent makes of a quote, by its events; None: there is nothing to do."""
    kinds = [event["kind"] for event in history]
    premium = f"{choose.randrange(10_000, 90_000) / 100:.2f}"
    if not kinds:
        return {"kind": "asked", "premium": None}
    if "accepted" in kinds:
        return None
    if kinds[-1] == "asked":
        return {"kind": "priced", "premium": premium}
    last = next(e["premium"] for e in reversed(history) if e["premium"] is not None)
    return choose.choice(
        [{"kind": "corrected", "premium": premium}, {"kind": "accepted", "premium": last}]
    )


def events(seed: int) -> list[Append]:
    """Agents who work on the same quotes, and sometimes decide upon what is no longer so."""
    choose = random.Random(seed)
    history: dict[str, list[Row]] = defaultdict(list)
    seen: dict[tuple[str, str], int] = Counter()
    steps = []
    for number in range(900):
        quote, agent = f"q{choose.randrange(QUOTES)}", choose.choice(AGENTS)
        if choose.random() < 0.7:  # otherwise the agent's screen shows what it showed before
            seen[agent, quote] = len(history[quote])
        known = seen[agent, quote]
        decided = decide(history[quote][:known], choose)
        if decided is None:
            continue
        row = {**decided, "agent": agent, "at": clock(BEGIN + timedelta(seconds=number))}
        steps.append(Append("quote_events", quote, known, row))
        if known == len(history[quote]):
            history[quote].append(row)
    return steps


def answer(events: list[Append]) -> Answer:
    """Only what was decided upon the newest version counts."""
    history = defaultdict(list)
    for quote, row in _accepted(events):
        history[quote].append(row)
    sold = Counter(row["agent"] for _, row in _accepted(events) if row["kind"] == "accepted")
    return {
        "quotes": [_quote(*item) for item in history.items()],
        "agents": [
            {"agent": agent, "sold": sold[agent]}
            for agent in {row["agent"] for _, row in _accepted(events)}
        ],
    }


def _accepted(events: list[Append]) -> Iterator[tuple[str, Row]]:
    versions = Counter[str]()
    for step in events:
        if step.seen == versions[step.key]:
            versions[step.key] += 1
            yield step.key, step.row


def _quote(quote: str, rows: list[Row]) -> Row:
    premiums = [row["premium"] for row in rows if row["premium"] is not None]
    kinds = [row["kind"] for row in rows]
    return {
        "quote_id": quote,
        "version": len(rows),
        "premium": float(premiums[-1]) if premiums else None,
        "corrections": kinds.count("corrected"),
        "accepted": "accepted" in kinds,
    }
