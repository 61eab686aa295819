"""How long inputs wait for late records, and which metadata they must have for it."""

from __future__ import annotations

import pytest

from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.streamed import metadata_needed, patient


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


@pytest.mark.parametrize(
    ("watermark", "within", "expected"),
    [
        ("10 minutes", None, "10 minutes"),
        (None, None, None),
        (None, "1 hour", "1 hour"),
        ("10 minutes", "1 hour", "1 hour"),
        ("2 hours", "90 minutes", "2 hours"),
        ("90 seconds", "1 minute", "90 seconds"),
    ],
)
def test_duplicates_are_remembered_for_the_longer_time(
    watermark: str | None, within: str | None, expected: str | None
) -> None:
    options = f"WITH (watermark = '{watermark}')" if watermark else ""
    source = made(f"CREATE STREAM s (id INT) {options}")
    more = f", within = '{within}'" if within else ""
    flow = made(f"CREATE STREAM t WITH (deduplicate = 'id'{more}) AS SELECT id FROM s")
    assert patient(flow, source).watermark == expected


def test_a_watermark_over_the_records_own_time_needs_that_time() -> None:
    query = made("CREATE STREAM t AS SELECT a.id, a._offset FROM a JOIN b ON a.id = b.id").query
    assert query is not None
    plain = made("CREATE STREAM a (id INT)")
    timed = made("CREATE STREAM b (id INT) WITH (watermark = '1 minute')")
    own = made("CREATE STREAM b (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 d')")
    assert metadata_needed(query, [plain, own], stateful=True) == ("_offset",)
    assert metadata_needed(query, [plain, timed], stateful=True) == ("_offset", "_timestamp")
    assert metadata_needed(query, [plain, timed], stateful=False) == ("_offset",)
