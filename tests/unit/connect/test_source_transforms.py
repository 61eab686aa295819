"""Transforms of a source: what is told to the system that captures, and what is refused."""

from __future__ import annotations

import pytest

from mainstem.connect.source_transforms import check_table, check_tables, place_of, told_columns
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse
from mainstem.errors import MainstemError

TEXTS = {"id": False, "email": True, "age": False}


def source(transforms: str, connector: str = "postgres-cdc") -> Definition:
    text = f"CREATE SOURCE shop WITH (connector = '{connector}')\nTRANSFORM ({transforms})"
    [statement] = parse(text, "p.sql")
    made: Definition = statement.definition  # type: ignore[union-attr]
    return made


def refusal(transforms: str, connector: str = "postgres-cdc") -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        told_columns(source(transforms, connector))
    return caught.value


def test_columns_are_told_with_schema_and_table() -> None:
    made = source("drop(orders.note, sales.items.price), mask(people.email, redact)")
    assert told_columns(made) == {
        "drop": ("public.orders.note", "sales.items.price"),
        "redact": ("public.people.email",),
    }
    assert str(place_of(made, "public.people.email")) == "p.sql:2:55"
    assert place_of(made, "public.people.name") is None


@pytest.mark.parametrize(
    ("transforms", "place"),
    [
        ("drop(orders.note),\n drop(note)", 7),
        ("mask(people.email, hash)", 12),
        ("mask(people.email, hash, '${env:SALT}')", 12),
        ("mask(people.email, partial, 4)", 12),
        ("keep(people.id)", 12),
        ("rename(people.id, no)", 12),
        ("cast(people.id, STRING)", 12),
        ("filter(id > 0)", 19),
        ("drop(people.`a,b`)", 17),
    ],
)
def test_what_a_source_cannot_do_is_told_at_its_place(transforms: str, place: int) -> None:
    error = refusal(transforms)
    assert error.code == "INVALID_TRANSFORM"
    assert error.location is not None
    assert error.location.column == place


def test_other_sources_have_none() -> None:
    assert "SQL" in refusal("drop(orders.note)", "syslog").hint


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"drop": ("public.people.mail",)}, "UNKNOWN_COLUMN"),
        ({"drop": ("public.people.id",)}, "INVALID_TRANSFORM"),
        ({"redact": ("public.people.id",)}, "INVALID_TRANSFORM"),
        ({"redact": ("public.people.age",)}, "INVALID_TRANSFORM"),
    ],
)
def test_columns_are_checked_against_the_table(
    options: dict[str, tuple[str, ...]], code: str
) -> None:
    with pytest.raises(MainstemError) as caught:
        check_table(options, "public.people", TEXTS, ("id",))
    assert caught.value.code == code
    [[column]] = options.values()
    assert caught.value.params["column"] == column


def test_what_can_be_done_is_let_through() -> None:
    options = {"drop": ("public.people.age", "a.b.c"), "redact": ("public.people.email",)}
    check_table(options, "public.people", TEXTS, ("id",))
    check_tables(options, ["public.people", "a.b"])
    with pytest.raises(MainstemError) as caught:
        check_tables(options, ["public.people"])
    assert caught.value.params["column"] == "a.b.c"
