"""Batches of a shared scan in a flow's checkpoint, in Spark's own format."""

from __future__ import annotations

import json
from typing import cast

import pytest

from mainstem.engine.batch_log import BatchLog
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.status import offsets_in
from mainstem.vocabulary import Offsets

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"a":"b"}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


class FakeCheckpoints:
    """Notes in memory."""

    def __init__(self) -> None:
        self.notes: dict[tuple[str, int], str] = {}

    def last_batches(self, _: str) -> tuple[int | None, int | None]:
        begun, done = ([b for n, b in self.notes if n == name] for name in ("offsets", "commits"))
        return max(begun, default=None), max(done, default=None)

    def query_id(self, _: str) -> str:
        return "id"

    def read_note(self, _: str, name: str, batch: int) -> str | None:
        return self.notes.get((name, batch))

    def write_note(self, _: str, name: str, batch: int, text: str) -> None:
        self.notes[name, batch] = text

    def delete_notes(self, _: str, name: str, before: int) -> None:
        self.notes = {(n, b): t for (n, b), t in self.notes.items() if n != name or b >= before}

    def batch_end(self, _: str, batch: int) -> dict[str, Offsets]:
        return dict(offsets_in(self.notes["offsets", batch].split("\n")[2]))


@pytest.fixture
def checkpoints() -> FakeCheckpoints:
    """Batch 7 is done."""
    found = FakeCheckpoints()
    for batch, end in ((6, '{"s":{"0":5,"1":1}}'), (7, '{"s":{"0":9,"1":2}}')):
        found.notes["offsets", batch] = f"v1\n{SETTINGS}\n{end}"
        found.notes["commits", batch] = COMMIT
    return found


def opened(checkpoints: FakeCheckpoints) -> BatchLog:
    return BatchLog(cast("Checkpoints", checkpoints), "folder", "s")


def test_it_goes_on_behind_the_last_batch(checkpoints: FakeCheckpoints) -> None:
    log = opened(checkpoints)
    assert (log.last, log.position, log.begun) == (7, {0: 9, 1: 2}, None)
    log.begin({1: 2, 0: 12})
    version, settings, end = checkpoints.notes["offsets", 8].split("\n")
    assert (version, end) == ("v1", '{"s":{"0":12,"1":2}}')
    assert json.loads(settings)["conf"] == {"a": "b"}
    assert json.loads(settings)["batchTimestampMs"] > 1700000000000
    assert ("commits", 8) not in checkpoints.notes
    log.done()
    assert checkpoints.notes["commits", 8] == COMMIT
    assert (log.last, log.position, log.begun) == (8, {0: 12, 1: 2}, None)


def test_a_batch_that_was_begun_is_known(checkpoints: FakeCheckpoints) -> None:
    checkpoints.notes["offsets", 8] = f'v1\n{SETTINGS}\n{{"s":{{"0":10,"1":3}}}}'
    log = opened(checkpoints)
    assert (log.next, log.position, log.begun) == (8, {0: 9, 1: 2}, {0: 10, 1: 3})
    log.done()
    assert opened(checkpoints).position == {0: 10, 1: 3}


def test_old_batches_are_forgotten(checkpoints: FakeCheckpoints) -> None:
    log = opened(checkpoints)
    for offset in range(10, 110):
        log.begin({0: offset, 1: 2})
        log.done()
    for name in ("offsets", "commits"):
        kept = sorted(batch for n, batch in checkpoints.notes if n == name)
        assert kept[-1] == log.last
        assert 20 <= len(kept) <= 41


def test_what_spark_has_not_begun_well_is_left_to_spark(checkpoints: FakeCheckpoints) -> None:
    with pytest.raises(ValueError, match="done"):
        opened(FakeCheckpoints())
    checkpoints.notes["offsets", 7] = f'v1\n{SETTINGS}\n{{"other":{{"0":10}}}}'
    with pytest.raises(ValueError, match="other"):
        opened(checkpoints)
