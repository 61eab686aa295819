"""Searches joined to clicks: which search led to which click, and which led to none."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from play import Answer, Event, Row, clock, moment

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
PAGES = {
    "lamp": ["/lamps", "/lamps/desk", "/lamps/floor"],
    "chair": ["/chairs", "/chairs/desk", "/sale"],
    "desk": ["/lamps/desk", "/chairs/desk", "/desks"],
    "gift": ["/sale", "/cards"],
}
TEN_MINUTES = timedelta(minutes=10)


def events(seed: int) -> list[Event]:
    """Two hours of searches and clicks; two hours later, one more of each."""
    choose = random.Random(seed)
    arrived: list[tuple[datetime, Event]] = []

    def send(at: datetime, stream: str, row: Row) -> None:
        arrives = at + timedelta(seconds=choose.uniform(0, 20))
        arrived.append((arrives, Event(stream, row | {"at": clock(at)})))

    def search(at: datetime, number: int, user: str, query: str) -> None:
        row: Row = {"search_id": f"s{number}", "user_id": user, "query": query}
        send(at, "searches", row | {"shown": PAGES[query]})

    def click(at: datetime, user: str, page: str) -> None:
        send(at, "clicks", {"user_id": user, "page": page})

    for number in range(500):
        at = BEGIN + timedelta(milliseconds=choose.randrange(2 * 3600 * 1000))
        user, query = f"u{choose.randrange(60)}", choose.choice(list(PAGES))
        search(at, number, user, query)
        for _ in range(choose.choice((0, 1, 1, 2))):
            # most clicks come soon, some after the ten minutes; some are on a page not shown
            waits = timedelta(seconds=choose.uniform(0, choose.choice((60, 300, 1200))))
            click(at + waits, user, choose.choice([*PAGES[query], "/help"]))

    # this pair takes the watermarks on, so that the searches before it are settled
    end = BEGIN + timedelta(hours=4)
    search(end, 500, "u0", "lamp")
    click(end + timedelta(seconds=5), "u0", "/lamps")
    arrived.sort(key=lambda item: item[0])
    return [event for _, event in arrived]


def answer(events: list[Event]) -> Answer:
    """Every search beside every click: slow, and plainly right."""
    searches = [e.row for e in events if e.stream == "searches"]
    clicks = [e.row for e in events if e.stream == "clicks"]
    attributed = [
        {
            "search_id": search["search_id"],
            "user_id": search["user_id"],
            "query": search["query"],
            "page": click["page"] if click else None,
            "searched_at": moment(search["at"]),
            "clicked_at": moment(click["at"]) if click else None,
        }
        for search in searches
        for click in _clicks_of(search, clicks) or [None]
    ]
    by_query: dict[str, list[Row]] = defaultdict(list)
    for row in attributed:
        by_query[row["query"]].append(row)
    return {
        "query_quality": [_quality(*item) for item in by_query.items()],
        "attributed": attributed,
    }


def _clicks_of(search: Row, clicks: list[Row]) -> list[Row | None]:
    return [click for click in clicks if _led_to(search, click)]


def _led_to(search: Row, click: Row) -> bool:
    waited = moment(click["at"]) - moment(search["at"])
    return (
        click["user_id"] == search["user_id"]
        and click["page"] in search["shown"]
        and timedelta(0) <= waited <= TEN_MINUTES
    )


def _quality(query: str, rows: list[Row]) -> Row:
    waited = [(r["clicked_at"] - r["searched_at"]).total_seconds() for r in rows if r["page"]]
    return {
        "query": query,
        "clicks": len(waited),
        "abandoned": len(rows) - len(waited),
        "seconds_to_click": sum(waited) / len(waited),
    }
