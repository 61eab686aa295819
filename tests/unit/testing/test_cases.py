"""What a golden case insists on, with a driver that is told what its flows have written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.testing.cases import Case, load_cases, run_case

Pairs = list[tuple[bytes | None, bytes]]


@dataclass
class Double:
    """Notes what it is asked to do."""

    written: Pairs = field(default_factory=list)
    asked: Pairs = field(default_factory=list)
    over_tables: bool = False
    pieces: random.Random | None = None
    partitions: int = 2
    did: list[Any] = field(default_factory=list)

    def apply(self, sql: str, **_: Any) -> None:
        self.did.append("apply")

    def send(self, events: list[Any]) -> None:
        self.did += [event.row["id"] for event in events]

    def run(self) -> None:
        self.did.append("run")

    def flows(self) -> list[Any]:
        return [SimpleNamespace(name="t")]

    def has_table_flows(self) -> bool:
        return self.over_tables

    def has_batch_answer(self, flow: Any) -> bool:
        return True

    def pairs(self, name: str) -> Pairs:
        return self.written

    def batch(self, name: str) -> Pairs:
        return self.asked


def case(**more: Any) -> Case:
    return Case("a case", "CREATE ...", events=[{"s": {"id": n}} for n in range(4)], **more)


ONE, TWO = (None, b'{"id":1}'), (None, b'{"id":2}')


def test_a_flow_that_is_like_its_batch_answer_passes() -> None:
    run_case(case(), Double([ONE, TWO], [TWO, ONE]))


@pytest.mark.parametrize(
    ("written", "asked"), [([ONE], [ONE, TWO]), ([ONE, ONE], [ONE]), ([ONE], [TWO])]
)
def test_a_flow_that_is_not_fails(written: Pairs, asked: Pairs) -> None:
    with pytest.raises(AssertionError, match="t is unlike its batch answer"):
        run_case(case(), Double(written, asked))


def test_a_reason_must_be_needed() -> None:
    run_case(case(unlike_batch="late"), Double([ONE], [TWO]))
    with pytest.raises(AssertionError, match="every flow is like its batch answer"):
        run_case(case(unlike_batch="late"), Double([ONE], [ONE]))


def test_what_is_not_written_yet_is_a_part_of_the_batch_answer() -> None:
    run_case(case(unlike_batch="open"), Double([ONE], [ONE, TWO]))
    with pytest.raises(AssertionError, match="t is unlike its batch answer"):
        run_case(case(unlike_batch="open"), Double([ONE], [TWO]))


def test_flows_over_tables_run_once_more_at_a_place_that_the_seed_chooses() -> None:
    def played(seed: int, **more: Any) -> list[Any]:
        driver = Double(over_tables=True)
        run_case(case(**more), driver, random.Random(seed))
        return driver.did

    assert {tuple(played(seed)) for seed in range(40)} == {
        ("apply", 0, "run", 1, 2, 3, "run"),
        ("apply", 0, 1, "run", 2, 3, "run"),
        ("apply", 0, 1, 2, "run", 3, "run"),
    }
    assert played(7) == played(7)
    assert played(7, uncut="writes") == ["apply", 0, 1, 2, 3, "run"]


def test_a_reason_that_is_not_known_is_refused(tmp_path) -> None:
    (tmp_path / "x.yaml").write_text("- {name: a, sql: '', uncut: because}\n")
    with pytest.raises(ValueError, match="'because' is none of late, open"):
        list(load_cases(tmp_path))
