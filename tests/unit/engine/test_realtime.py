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
        ("protobuf", "CREATE STREAM t WITH (format = 'protobuf') AS SELECT id FROM a"),
        ("", "CREATE STREAM t WITH (format = 'json_schema') AS SELECT id FROM a"),
        ("", "CREATE STREAM t AS SELECT DISTINCT id FROM a"),
        ("", "CREATE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id HAVING count(*) > 1"),
    ],
)
def test_obstacles(monkeypatch: pytest.MonkeyPatch, words: str, text: str) -> None:
    monkeypatch.setattr(realtime, "streaming_complaint", lambda *_, **__: None)
    found = realtime.obstacles(parse_one(text).definition, (), None)  # type: ignore
    assert len(found) == (1 if words else 0), found
    assert not words or words in found[0]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("json_schema needs Python", "format = 'json_schema'"),
        ("avro", ""),
        ("json_schema and protobuf", "format = 'json_schema', key_format = 'protobuf'"),
    ],
)
def test_formats_that_need_python(
    monkeypatch: pytest.MonkeyPatch, words: str, options: str
) -> None:
    monkeypatch.setattr(realtime, "streaming_complaint", lambda *_, **__: None)
    told = options or "format = 'avro'"
    source = parse_one(f"CREATE STREAM a (id INT) WITH (key = 'id', {told})").definition  # type: ignore
    flow = parse_one("CREATE STREAM t AS SELECT id FROM a").definition  # type: ignore
    found = realtime.obstacles(flow, (source,), None)  # type: ignore
    assert found == [] if words == "avro" else words in found[0]
