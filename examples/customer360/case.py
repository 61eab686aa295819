"""Customer 360: seven systems, three of them databases, one row for each customer."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from play import Answer, Event, File, Line, Posted, Row, Sql, Step, clock, moment

NEEDS = {
    "CRM_URL": "postgres:crm",
    "BILLING_URL": "mariadb:billing",
    "HELPDESK_URL": "jdbc:helpdesk",
    "HELPDESK_PASSWORD": "password",
    "APP_LOG_ADDRESS": "port:",
}
BEGIN = datetime(2026, 6, 1, 8, tzinfo=UTC)
PAGES = ("/", "/sale", "/shoes", "/contact")
CUSTOMERS = range(1, 13)


def events(seed: int) -> list[Step]:
    """A day in all systems, a few of each; customers change their mind, and their address."""
    choose = random.Random(seed)
    times = iter(
        clock(BEGIN + timedelta(minutes=n, seconds=choose.randrange(60))) for n in range(999)
    )

    def somebody() -> int:
        return choose.choice(CUSTOMERS)

    happened: list[Step] = []
    for number in range(10, 20):
        bill = (
            f"INSERT INTO invoices VALUES ({number}, {somebody()}, {choose.randrange(9999)}, false)"
        )
        happened.append(Sql("billing", bill))
        state = choose.choice(("open", "closed"))
        happened.append(Sql("helpdesk", _ticket(number, somebody(), state)))
        happened.append(Sql("helpdesk", _ticket(choose.randrange(10, number + 1), None, "closed")))
        happened += [_view(somebody(), choose.choice(PAGES), next(times)) for _ in range(9)]
        action = choose.choice(("subscribe", "subscribe", "unsubscribe"))
        posted = {"email": f"c{somebody()}@example.com", "action": action, "at": next(times)}
        happened.append(Posted("newsletter", posted))
    happened.append(Sql("billing", "UPDATE invoices SET paid = true WHERE id % 3 = 0"))
    happened.append(Sql("crm", "UPDATE customers SET email = 'new@example.com' WHERE id = 4"))
    posted = {"email": "new@example.com", "action": "subscribe", "at": next(times)}
    happened.append(Posted("newsletter", posted))
    happened.append(Sql("crm", "DELETE FROM customers WHERE id = 12"))
    for store in ("north", "south"):
        rows = [f"card-{somebody()},{choose.randrange(5000)},{next(times)}" for _ in range(15)]
        happened.append(File(f"data/stores/{store}.csv", "\n".join(["card,cents,at", *rows, ""])))
    lines = [f"<14>1 {next(times)} app-1 shop 1 - - login customer={somebody()}" for _ in range(20)]
    happened.append(Line("APP_LOG_ADDRESS", "".join(f"{line}\n" for line in lines)))
    return happened


def answer(events: list[Step]) -> Answer:
    """What each system ended up with, customer by customer."""
    invoices = {1: [1, 1000], 2: [2, 2500], 3: [2, 400]}
    tickets = {1: [3, "open"], 2: [3, "closed"]}
    subscribed: dict[str, tuple[str, str]] = {}
    cards: dict[str, list[int]] = {}
    logins: dict[int, str] = {}
    views: dict[int, list[tuple[str, str]]] = {}
    for step in events:
        match step:
            case Sql("billing", text) if text.startswith("INSERT"):
                number, customer, cents, _ = text[text.index("(") + 1 : -1].split(", ")
                invoices[int(number)] = [int(customer), int(cents)]
            case Sql("helpdesk", text) if text.startswith("INSERT"):
                number, customer, state = text[text.index("VALUES (") + 8 : -1].split(", ")
                tickets[int(number)] = [int(customer), state.strip("'")]
            case Sql("helpdesk", text):
                tickets[int(text.split()[-1])][1] = "closed"
            case Posted(_, body):
                said = (body["at"], body["action"])
                subscribed[body["email"]] = max(said, subscribed.get(body["email"], said))
            case File(_, text):
                for row in text.splitlines()[1:]:
                    card, cents, _ = row.split(",")
                    cards.setdefault(card, []).append(int(cents))
            case Line(_, text):
                for line in text.splitlines():
                    at, customer = line.split()[1], int(line.partition("customer=")[2])
                    logins[customer] = max(at, logins.get(customer, at))
            case Event(_, row):
                views.setdefault(row["customer"], []).append((row["at"], row["page"]))
    owed = [one for number, one in invoices.items() if number % 3 and number != 1]
    rows: list[Row] = []
    for id in CUSTOMERS[:-1]:
        email = "new@example.com" if id == 4 else f"c{id}@example.com"
        bought, seen = cards.get(f"card-{id}", []), sorted(views.get(id, []))
        rows.append(
            {
                "id": id,
                "name": f"Customer {id}",
                "email": email,
                "owed": sum(cents for customer, cents in owed if customer == id),
                "open_tickets": sum(ticket == [id, "open"] for ticket in tickets.values()),
                "subscribed": subscribed.get(email, ("", ""))[1] == "subscribe",
                "purchases": len(bought),
                "store_cents": sum(bought),
                "last_login": moment(logins[id]) if id in logins else None,
                "page_views": len(seen),
                "last_page": seen[-1][1] if seen else None,
            }
        )
    return {"customer_360": rows}


def remark(ask: Callable[[str], list[list[Any]]]) -> str:
    """What the person at the telephone sees."""
    [row] = ask("SELECT * FROM customer_360 WHERE id = 4")
    return f"looked up by key, customer 4: {', '.join(map(str, row))}"


def _ticket(number: int, customer: int | None, state: str) -> str:
    if customer is None:
        return (
            f"UPDATE tickets SET state = '{state}', changed_at = clock_timestamp()"
            f" WHERE id = {number}"
        )
    return f"INSERT INTO tickets (id, customer, state) VALUES ({number}, {customer}, '{state}')"


def _view(customer: int, page: str, at: str) -> Event:
    return Event("page_views", {"customer": customer, "page": page, "at": at})
