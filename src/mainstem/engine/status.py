"""What is known of a flow at a moment, as it goes to the status topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class FlowState(StrEnum):
    """Where a flow stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    """It stopped with an error and waits for its next try."""
    RETRYING = "retrying"
    """A sink whose target does not take its rows, or a source that gets none: it keeps its place,
    and tries again."""
    STOPPED = "stopped"


@dataclass(slots=True)
class FlowStatus:
    """One flow's numbers; changed by the flow only."""

    flow: str
    generation: int
    lane: str
    fingerprint: str = ""
    """Of the definition that it runs: what is said of another is no word of this one."""
    state: FlowState = FlowState.STARTING
    input_rate: float = 0.0
    process_rate: float = 0.0
    batch_id: int | None = None
    batch_seconds: float | None = None
    batch_split: dict[str, float] = field(default_factory=dict)
    """The same by what it went into (`progress.PARTS`), as far as Spark tells."""
    rows_in_total: int = 0
    rows_out_total: int = 0
    lag_records: int | None = None
    lag_seconds: float | None = None
    watermark: str | None = None
    event_time: str | None = None
    state_rows: int = 0
    state_bytes: int = 0
    quarantined: int = 0
    late_dropped: int = 0
    """Rows that Spark dropped for being late, since the engine started."""
    late_waiting: int = 0
    """Records in the ledger of late data that APPLY LATE would take in."""
    late_sample: dict[str, Any] | None = None
    """The newest of them: where it is, and which windows it missed."""
    restarts: int = 0
    error: dict[str, Any] | None = None
    next_retry: str | None = None
    updated_at: str = ""
    backfill: dict[str, Any] | None = None
    """How far a backfill is that is on its way."""
    source: dict[str, Any] | None = None
    """Of a source: how far it is, in the words of its connector."""
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stream with a watermark: what it was seen to hold, and since when it is silent."""
    positions: dict[str, dict[str, int]] = field(default_factory=dict)
    began: dict[str, dict[str, int]] = field(default_factory=dict)
    """Where the flow of a stream began; a backfill adds what lies before."""

    def to_json(self, now: float) -> dict[str, Any]:
        """The value of the status record."""
        self.updated_at = iso(now)
        return asdict(self)


def iso(seconds: float) -> str:
    """A time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def offsets_in(text: str | None) -> dict[str, dict[int, int]]:
    """Spark's offset document -> topic -> partition -> offset; empty for none."""
    if not text or text in ("null", "None"):  # the first batch starts from nowhere
        return {}
    return offsets_from(json.loads(text))


def offsets_from(document: Any) -> dict[str, dict[int, int]]:
    """The same from the document itself; what is no place in a topic is left out."""
    if not isinstance(document, Mapping):
        return {}
    return {
        topic: {int(partition): int(offset) for partition, offset in places.items()}
        for topic, places in document.items()
        if isinstance(places, Mapping) and all(map(str.isdecimal, places))
    }
