"""Flows rest when there are more batches than cores, and only then."""

from __future__ import annotations

from mainstem.engine.pacing import Pacer


class _Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _rests(pacer: Pacer, flows: int, seconds: float, rounds: int = 5) -> list[float]:
    """The rests of the last round."""
    rests: list[float] = []
    for _ in range(rounds):
        rests = [pacer.rest(f"flow {n}", seconds, behind=False) for n in range(flows)]
    return rests


def test_few_flows_do_not_rest() -> None:
    """Two cores carry two flows whose batches follow each other at once."""
    assert _rests(Pacer(2, _Time()), 2, 0.2) == [0.0, 0.0]


def test_many_flows_share_the_cores() -> None:
    """With its rest, each flow takes its part of the time of all cores."""
    [rest, *others] = _rests(Pacer(2, _Time()), 20, 0.2)
    assert 0 < rest < 4
    assert others == [rest] * 19
    busy = 20 * 0.3 / (0.3 + rest)
    assert abs(busy - 2) < 0.01


def test_a_rest_has_an_end() -> None:
    """However many flows there are, each is asked again after a few seconds."""
    assert max(_rests(Pacer(2, _Time()), 500, 0.2)) < 4


def test_who_is_behind_or_slow_does_not_rest() -> None:
    """A rest would only make it later."""
    pacer = Pacer(2, _Time())
    _rests(pacer, 20, 0.2)
    assert pacer.rest("flow 0", 0.2, behind=True) == 0
    assert pacer.rest("slow", 30.0, behind=False) == 0


def test_who_asked_for_its_own_trigger_keeps_it() -> None:
    """It counts as load for the others all the same."""
    pacer = Pacer(2, _Time())
    rests = _rests(pacer, 20, 0.2)
    for _ in range(5):
        assert pacer.rest("asked", 0.2, behind=False, asked=True) == 0
    assert pacer.rest("flow 0", 0.2, behind=False) > rests[0]


def test_a_long_batch_leaves_the_other_core_free() -> None:
    """It takes one core, however long it is."""
    pacer = Pacer(2, _Time())
    for _ in range(3):
        pacer.rest("slow", 30.0, behind=False)
        assert pacer.rest("quick", 0.2, behind=False) == 0


def test_idle_flows_do_not_count() -> None:
    """What had no batch for a while costs nothing, and one batch is no load."""
    time = _Time()
    pacer = Pacer(2, time)
    assert _rests(pacer, 20, 0.2, rounds=1) == [0.0] * 20
    assert max(_rests(pacer, 20, 0.2)) > 0
    time.now = 60.0
    assert pacer.rest("flow 0", 0.2, behind=False) == 0
