"""What lists of records show of personal data."""

from __future__ import annotations

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse
from mainstem.gateway.contracts import Hidden, hidden

SQL = """
CREATE STREAM orders (id STRING, email STRING PII) WITH (key = 'id');
CREATE STREAM people (email STRING PII) WITH (key = 'email');
CREATE STREAM open (id STRING);
"""


@pytest.fixture
def catalog() -> Catalog:
    entries = [Entry(s.definition, "f") for s in parse(SQL) if isinstance(s, Create)]
    return Catalog({entry.name: entry for entry in entries})


def test_only_what_is_tagged_is_masked(catalog: Catalog) -> None:
    found = hidden(catalog)
    assert found == {
        "orders": Hidden(frozenset({"email"})),
        "people": Hidden(frozenset({"email"}), key=True),
    }
    assert found["orders"].of_key(b"7") == b"7"
    assert found["people"].of_key(b"a@b.c") == b"***"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b'{"id": 7, "Email": "a@b.c"}', b'{"id":7,"Email":"***"}'),
        (b'{"id": 7, "email": null}', b'{"id":7,"email":null}'),
        (b'{"id": 7, "email": "a@b', b"***"),
        (b"[1]", b"***"),
        (b"\xff", b"***"),
        (None, None),
    ],
)
def test_a_value_that_cannot_be_read_is_masked_as_a_whole(
    value: bytes | None, shown: bytes | None
) -> None:
    assert Hidden(frozenset({"email"})).of_value(value) == shown
    assert Hidden().of_value(value) == value
