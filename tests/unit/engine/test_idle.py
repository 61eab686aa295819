"""The time of a stream that has gone quiet goes on with the clock."""

from __future__ import annotations

from mainstem.definitions.parse import parse_one
from mainstem.engine.idle import StreamTimes
from mainstem.engine.offset_log import readable

MINUTE = 60_000
BEGIN = 1_000.0


def times(*idle: str | None) -> StreamTimes:
    """Streams a, b, ... with a watermark of ten seconds."""
    made = []
    for name, timeout in zip("ab", idle, strict=False):
        more = f", idle_timeout = '{timeout}'" if timeout else ""
        text = f"CREATE STREAM {name} (x INT) WITH (watermark = '10 seconds'{more})"
        made.append(parse_one(text).definition)  # type: ignore[union-attr]
    return StreamTimes.of(made, BEGIN)


def test_without_a_time_out_nothing_moves() -> None:
    seen = times(None)
    seen.saw("a", 5 * MINUTE, BEGIN)
    assert not seen.can_idle
    assert seen.watermark(0, BEGIN + 1000, {"a"}) is None


def test_time_goes_on_behind_the_time_out_in_steps() -> None:
    seen = times("1 minute")
    seen.saw("a", 5 * MINUTE, BEGIN)
    now = 5 * MINUTE - 10_000  # Spark's own watermark
    assert seen.watermark(now, BEGIN + 59, {"a"}) is None
    assert seen.watermark(now, BEGIN + 61, {"a"}) == now + 61_000
    assert seen.watermark(now + 61_000, BEGIN + 90, {"a"}) is None
    assert seen.watermark(now + 61_000, BEGIN + 121, {"a"}) == now + 121_000
    seen.saw("a", 4 * MINUTE, BEGIN + 122)  # older than what came before
    assert seen.watermark(now + 121_000, BEGIN + 150, {"a"}) is None


def test_records_that_were_not_read_are_no_silence() -> None:
    seen = times("1 minute")
    seen.saw("a", 5 * MINUTE, BEGIN)
    assert seen.watermark(0, BEGIN + 1000, set()) is None


def test_a_silent_stream_does_not_hold_the_other() -> None:
    seen = times(None, "1 minute")
    seen.saw("b", 5 * MINUTE, BEGIN)
    assert seen.watermark(0, BEGIN + 100, {"a", "b"}) is None  # nobody knows where a is
    seen.saw("a", 9 * MINUTE, BEGIN + 240)
    current = 5 * MINUTE - 10_000
    assert seen.watermark(current, BEGIN + 240, {"a", "b"}) == 9 * MINUTE - 10_000
    assert seen.watermark(current, BEGIN + 90, {"a", "b"}) == current + 90_000


def test_a_stream_that_never_had_a_record_holds_nobody() -> None:
    seen = times(None, "1 minute")
    seen.saw("a", 9 * MINUTE, BEGIN)
    assert seen.watermark(0, BEGIN + 30, {"a", "b"}) is None
    assert seen.watermark(0, BEGIN + 60, {"a", "b"}) == 9 * MINUTE - 10_000


def test_after_a_restart_time_goes_on_from_the_watermark() -> None:
    seen = times("1 minute")
    assert seen.watermark(0, BEGIN + 100, {"a"}) is None
    assert seen.watermark(7 * MINUTE, BEGIN + 100, {"a"}) == 7 * MINUTE + 100_000


def test_a_batch_can_run_again_while_the_log_holds_it() -> None:
    start, end = {"s": {0: 5, 1: 7}}, {"s": {0: 9, 1: 7}, "new": {0: 2}}
    assert readable(start, end, {"s": {0: 5, 1: 0}, "new": {0: 0}})
    assert readable(start, end, {"s": {0: 5, 1: 8}, "new": {0: 0}})  # nothing was read of that one
    assert not readable(start, end, {"s": {0: 6, 1: 0}, "new": {0: 0}})
    assert not readable(start, end, {"s": {0: 5, 1: 0}, "new": {0: 1}})
    assert not readable(start, end, {"s": {0: 5, 1: 0}})
