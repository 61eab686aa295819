"""What keeps a flow over streams out of the real-time lane, though Spark's checker lets it pass."""

from __future__ import annotations

import pytest

from mainstem.definitions.parse import parse_one
from mainstem.engine import realtime


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            "EMIT FINAL",
            "CREATE TABLE t AS SELECT window, 1 FROM a GROUP BY window(x, '1 d') EMIT FINAL",
        ),
        ("no joins", "CREATE STREAM t AS SELECT a.id FROM a JOIN b ON a.id = b.id"),
        ("once only", "CREATE STREAM t AS SELECT id FROM a UNION ALL SELECT x FROM a"),
        ("within", "CREATE STREAM t WITH (deduplicate = 'id', within = '1 h') AS SELECT id FROM a"),
        ("", "CREATE STREAM t AS SELECT id FROM a UNION ALL SELECT id FROM b"),
        ("", "CREATE STREAM t AS SELECT DISTINCT id FROM a"),
        ("", "CREATE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id HAVING count(*) > 1"),
    ],
)
def test_obstacles(monkeypatch: pytest.MonkeyPatch, words: str, text: str) -> None:
    monkeypatch.setattr(realtime, "streaming_complaint", lambda *_, **__: None)
    found = realtime.obstacles(parse_one(text).definition, (), None)  # type: ignore
    assert len(found) == (1 if words else 0), found
    assert not words or words in found[0]
