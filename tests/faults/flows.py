"""The pipeline that must survive, and what each of its flows must have made of its input.

In `make soak` it has all kinds of flow, else those without state, with state, and over a table:
each costs time whenever the engine starts.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from mainstem.config import Project, load_project
from mainstem.testing.load import Numbered

KILLS = int(os.environ.get("MAINSTEM_KILLS", "8"))
FULL = KILLS >= 30
RATE = 1_000 if FULL else 250
"""Records a second of the even load."""
TRIGGER = "200 milliseconds" if FULL else "1 second"
"""Between two batches: a death needs one, and what comes between two deaths only costs time."""

PIPELINE = """
CREATE STREAM numbers (k STRING, seq BIGINT, id STRING)
  WITH (key = 'k', event_time = 'timestamp_seconds(1767225600 + seq)', watermark = '12 hours');
CREATE STREAM copied AS SELECT k, seq, id FROM numbers;
CREATE TABLE totals AS
  SELECT k, count(*) AS n, sum(seq) AS total, max(seq) AS last FROM numbers GROUP BY k;
CREATE TABLE summary AS
  SELECT right(k, 1) AS digit, count(*) AS n, sum(total) AS total, max(last) AS last
  FROM totals GROUP BY right(k, 1);
"""
FUNCTIONS = """
from dataclasses import dataclass
from mainstem import State, stateful

@dataclass
class Numbered:
    k: str
    seq: int
    id: str

@dataclass
class Sum:
    n: int
    total: int

@dataclass
class Counted:
    k: str
    seq: int
    id: str
    n: int
    total: int

@stateful(stream="numbers", key="k")
def counted(number: Numbered, state: State[Sum]) -> list[Counted]:
    kept = state.value = state.value or Sum(0, 0)
    kept.n += 1
    kept.total += number.seq
    return [Counted(number.k, number.seq, number.id, kept.n, kept.total)]
"""
MORE = """
CREATE TABLE minutes AS
  SELECT k, window.start AS minute, count(*) AS n, sum(seq) AS total, max(seq) AS last
  FROM numbers GROUP BY k, window(_event_time, '1 minute');
CREATE STREAM paired AS
  SELECT a.k, a.seq, a.id, b.id AS later FROM numbers a JOIN numbers b
    ON a.k = b.k AND a.seq + 40 = b.seq
    AND b._event_time BETWEEN a._event_time AND a._event_time + INTERVAL 1 MINUTE
  WHERE a.seq % 10 = 0 AND b.seq % 10 = 0;
CREATE TABLE labels (k STRING PRIMARY KEY, label STRING);
CREATE STREAM joined AS
  SELECT n.k, n.seq, n.id, l.label FROM numbers n LEFT JOIN labels l ON n.k = l.k;
"""
COPIED, TOTALS, JOINED, SUMMARY = "copied.1", "totals.1", "joined.1", "summary.1"
COUNTED, MINUTES, PAIRED = "counted.1", "minutes.1", "paired.1"
FLOWS: tuple[str, ...] = (COPIED, TOTALS)
READS = {"copied": "numbers", "totals": "numbers", "summary": "totals"}
if FULL:
    FLOWS = (*FLOWS, JOINED, COUNTED, MINUTES, PAIRED)
    READS |= dict.fromkeys(("joined", "counted", "minutes", "paired"), "numbers")

# All steps of the writer. The first of a row hits a fresh batch, each other one the replay of that
# same batch. Behind a commit, no step that writes is passed again.
ROWS_ONE = (
    ("after_produce", "after_init", "before_write", "after_token"),
    ("after_commit", "after_token_read", "after_write"),
)
ROWS_TWO = (
    ("before_write", "after_token_read", "after_produce", "after_commit"),
    ("after_token", "after_init", "after_write"),
)
ROWS = (ROWS_ONE, ROWS_TWO)


def make_project(folder: Path) -> Project:
    settings = f'name = "faults"\n[kafka]\npartitions = 4\n[spark]\ntrigger = "{TRIGGER}"\n'
    (folder / "mainstem.toml").write_text(settings)
    (folder / "pipeline").mkdir()
    (folder / "pipeline" / "all.sql").write_text(PIPELINE)
    if FULL:
        (folder / "pipeline" / "more.sql").write_text(MORE)
        (folder / "functions").mkdir()
        (folder / "functions" / "all.py").write_text(FUNCTIONS)
    return load_project(folder)


def totals_of(source: dict[int, list[Numbered]]) -> dict[str, tuple[int, int, int]]:
    totals: dict[str, tuple[int, int, int]] = {}
    for records in source.values():
        for record in records:
            n, total, last = totals.get(record.k, (0, 0, -1))
            totals[record.k] = (n + 1, total + record.seq, max(last, record.seq))
    return totals


def minutes_of(source: dict[int, list[Numbered]]) -> dict[tuple[str, str], tuple[int, int, int]]:
    minutes: dict[tuple[str, str], tuple[int, int, int]] = {}
    for record in chain.from_iterable(source.values()):
        start = datetime.fromtimestamp(1767225600 + record.seq // 60 * 60, UTC)
        place = record.k, f"{start:%Y-%m-%dT%H:%M:%S.%fZ}"
        n, total, last = minutes.get(place, (0, 0, -1))
        minutes[place] = (n + 1, total + record.seq, max(last, record.seq))
    return minutes


def pairs_of(source: dict[int, list[Numbered]]) -> dict[str, int]:
    """Once each record that has a partner."""
    there = {(record.k, record.seq): record.id for record in chain.from_iterable(source.values())}
    return {name: 1 for (k, seq), name in there.items() if seq % 10 == 0 and (k, seq + 40) in there}


def summary_of(totals: dict[str, tuple[int, int, int]]) -> dict[str, tuple[int, int, int]]:
    summary: dict[str, tuple[int, int, int]] = {}
    for k, (_, total, last) in totals.items():
        n, sum_, highest = summary.get(k[-1], (0, 0, -1))
        summary[k[-1]] = (n + 1, sum_ + total, max(highest, last))
    return summary


def row_of(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["n"], row["total"], row["last"]
