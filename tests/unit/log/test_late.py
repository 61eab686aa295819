"""The ledger of late data, read back: what waits for a flow, and what was taken in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem.log import late
from mainstem.log.late import Ledger, applied_entry, late_entry
from mainstem.vocabulary import LATE_TOPIC, Record

WINDOWS = [("2026-01-01T09:00:00.000000Z", "2026-01-01T10:00:00.000000Z")]


class Log:
    """A topic of one partition."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, value: bytes | None) -> None:
        self.records.append(Record(LATE_TOPIC, 0, len(self.records), None, value, 0))

    def all_begin_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: 0} for topic in topics}

    def all_end_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: len(self.records)} for topic in topics}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()

    def read(_: Any, topic: str, start: dict[int, int], end: dict[int, int]) -> Any:
        yield log.records[start[0] : end[0]]

    monkeypatch.setattr(late, "read_range", read)
    return log


def entry(flow: str, offset: int, value: bytes = b"{}") -> bytes:
    record = Record("s", 1, offset, None, value, 5)
    return late_entry(record, flow, "t", WINDOWS, "2026-01-01T11:00:00.000+00:00")


def test_what_waits_until_it_is_taken_in(log: Log) -> None:
    ledger = Ledger(None, log)  # type: ignore[arg-type]
    log.write(entry("t.1", 3))
    log.write(entry("u.1", 3))
    log.write(entry("t.1", 4))
    ledger.refresh()
    assert [offset for offset, _ in ledger.of("t.1").entries] == [0, 2]
    assert ledger.of("t.1").windows == set(WINDOWS)
    sample = ledger.of("t.1").sample
    assert sample is not None
    assert (sample["topic"], sample["partition"], sample["offset"]) == ("s", 1, 4)
    assert "value" not in sample
    log.write(entry("t.1", 5))
    log.write(applied_entry("t.1", 3).value)
    ledger.refresh()
    assert [offset for offset, _ in ledger.of("t.1").entries] == [3]
    assert len(ledger.of("u.1").entries) == 1
    assert ledger.of("t.2").sample is None


def test_bytes_that_are_no_text_and_foreign_records(log: Log) -> None:
    ledger = Ledger(None, log)  # type: ignore[arg-type]
    log.write(entry("t.1", 3, b"\xff"))
    log.write(None)
    log.write(b"{}")
    ledger.refresh()
    assert len(ledger.of("t.1").entries) == 1
    assert json.loads(entry("t.1", 3, b"\xff"))["value"] == "base64:/w=="
    assert json.loads(entry("t.1", 3, "ü".encode()))["value"] == "ü"
