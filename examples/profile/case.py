"""A profile update reaches search index and database."""

from __future__ import annotations

import random

from play import Answer, Row, Sql

NEEDS = {
    "APP_URL": "postgres:app",
    "MARKETING_URL": "postgres:marketing",
    "SEARCH_URL": "opensearch",
}
CITIES = ("Oslo", "Rome", "Lima", "Kyoto")
INTERESTS = ("books", "chess", "music", "rowing")


def events(seed: int) -> list[Sql]:
    """People join, move, find other interests, and leave; each time in one transaction."""
    choose = random.Random(seed)
    there = set(range(1, 21))
    happened = []
    for number in range(21, 61):
        person = choose.choice(sorted(there))
        match choose.choice(("join", "join", "move", "move", "like", "like", "leave")):
            case "join":
                there.add(number)
                text = (
                    f"INSERT INTO profiles VALUES ({number}, 'Person {number}',"
                    f" 'person-{number}@example.com', '{choose.choice(CITIES)}', 'secret');"
                    f"INSERT INTO interests VALUES ({number}, '{choose.choice(INTERESTS)}')"
                )
            case "move":
                city = choose.choice(CITIES)
                text = f"UPDATE profiles SET city = '{city}' WHERE id = {person}"
            case "like":
                text = (
                    f"DELETE FROM interests WHERE profile_id = {person} AND interest = 'chess';"
                    f"INSERT INTO interests VALUES ({person}, '{choose.choice(INTERESTS)}')"
                    " ON CONFLICT DO NOTHING"
                )
            case _:
                there.remove(person)
                text = f"DELETE FROM profiles WHERE id = {person}"
        happened.append(Sql("app", text))
    return happened


def answer(events: list[Sql]) -> Answer:
    """The same in dictionaries, by the words of the statements."""
    profiles: dict[int, Row] = {}
    interests: dict[int, set[str]] = {}
    for number in range(1, 21):
        email = f"person-{number}@example.com"
        profiles[number] = {
            "id": number, "name": f"Person {number}", "email": email, "city": "Oslo",
        }  # fmt: skip
        interests[number] = {"chess"} if number % 2 else set()
    for statement in (s.strip() for event in events for s in event.text.split(";")):
        words = statement.replace("(", " ").replace(")", " ").replace(",", " ").split()
        quoted = statement.split("'")[1::2]
        match words:
            case ["INSERT", "INTO", "profiles", "VALUES", id, *_]:
                name, email, city, _ = quoted
                profiles[int(id)] = {"id": int(id), "name": name, "email": email, "city": city}
                interests[int(id)] = set()
            case ["INSERT", "INTO", "interests", "VALUES", id, *_]:
                interests[int(id)].add(quoted[0])
            case ["UPDATE", *_, id]:
                profiles[int(id)]["city"] = quoted[0]
            case ["DELETE", "FROM", "interests", _, _, _, id, *_]:
                interests[int(id)].discard(quoted[0])
            case [*_, id]:
                del profiles[int(id)], interests[int(id)]
    documents = [
        {**profile, "interests": sorted(interests[id]) or None} for id, profile in profiles.items()
    ]
    contacts = [
        {column: profile[column] for column in ("id", "name", "email")}
        for profile in profiles.values()
    ]
    return {"opensearch:profiles": documents, "postgres:marketing.contacts": contacts}
