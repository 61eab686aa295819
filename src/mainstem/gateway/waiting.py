"""Why a window has not closed: what holds the watermark, and until when, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.late import WindowSteps, window_steps
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.options import milliseconds
from mainstem.definitions.state import keeps_state

_NONE = "1970-01-01"


def why_open(
    definition: Definition, inputs: Sequence[Definition], status: Mapping[str, Any], now: float
) -> list[str]:
    """What a flow with a watermark waits for, by its last status; empty for any other flow.

    `now` is the clock's time, for which the silence of a stream is told.
    """
    timed = [s for s in inputs if s.kind is Kind.STREAM and s.watermark is not None]
    query = definition.query
    if not timed or query is None or not keeps_state(definition, inputs):
        return []
    if count_window_of(query) is not None:  # it waits for events, whatever their time
        return []
    said = str(status.get("watermark") or "")
    watermark = None if not said or said.startswith(_NONE) else _milliseconds(said)
    if watermark is None:
        lines = ["no watermark yet: windows close when all streams had records"]
    else:
        lines = [f"the watermark is {_iso(watermark)}: windows that end by then are closed"]
    seen: Mapping[str, dict[str, Any]] = status.get("streams") or {}
    slowest = _slowest({s.name: seen.get(s.name, {}).get("watermark") for s in timed})
    lines += [_stream(s, seen.get(s.name, {}), s.name in slowest, now) for s in timed]
    steps = window_steps(definition, inputs)
    if steps is not None and watermark is not None:
        lines.append(_next(steps, watermark, timed))
    return lines


def _slowest(watermarks: Mapping[str, int | None]) -> list[str]:
    """The streams that hold the others; none when there is but one."""
    if len(watermarks) < 2:
        return []
    unknown = [name for name, at in watermarks.items() if at is None]
    known = [at for at in watermarks.values() if at is not None]
    return unknown or [name for name, at in watermarks.items() if at == min(known)]


def _stream(source: Definition, seen: Mapping[str, Any], holds: bool, now: float) -> str:
    newest, arrived = seen.get("event_time"), seen.get("arrived_at")
    silent = None if arrived is None else max(0, round(now - arrived))
    words = f"{source.name}: "
    if newest is None:
        words += "no record since the flow was started"
    else:
        words += (
            f"newest event time {_iso(newest)}, of any partition; may be {source.watermark} late"
        )
    if silent is not None:
        words += f"; silent for {silent} s"
    if holds:
        words += "; holds the watermark"
    timeout = milliseconds(source.idle_timeout) if source.idle_timeout else None
    if timeout is None:
        return words + "; while it is silent, nothing closes (no idle_timeout)"
    left = None if silent is None else timeout // 1000 - silent
    if left is not None and left <= 0:
        return words + "; its time goes on with the clock"
    return words + f"; its time goes on with the clock after {source.idle_timeout} of silence"


def _next(steps: WindowSteps, watermark: int, timed: Sequence[Definition]) -> str:
    end = steps.next_end(watermark)
    needed = [
        f"{_iso(end + (milliseconds(source.watermark or '') or 0))} in {source.name}"
        for source in timed
    ]
    return (
        f"the next window to close is {_iso(end - steps.size)} to {_iso(end)}: "
        f"it waits for an event time of {' and '.join(needed)}"
    )


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _iso(milliseconds_: int) -> str:
    moment = datetime.fromtimestamp(milliseconds_ / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
