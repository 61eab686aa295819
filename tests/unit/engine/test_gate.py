"""A flow is held between two whole batches, or not at all."""

from __future__ import annotations

import threading

import pytest

from mainstem.engine.gate import Gate


def test_a_flow_is_held_when_no_batch_is_on_its_way() -> None:
    gate = Gate(settled=True)
    gate.enter()
    assert not gate.hold()
    gate.leave(whole=True)
    assert gate.hold()


def test_a_run_that_may_have_a_batch_to_do_again_is_held_behind_it() -> None:
    gate = Gate(settled=False)
    assert not gate.hold()
    gate.enter()  # it was not held: else nobody could ever get behind it
    gate.leave(whole=True)
    assert gate.hold()


def test_behind_a_batch_that_failed_nothing_is_sure() -> None:
    gate = Gate(settled=True)
    gate.enter()
    gate.leave(whole=False)
    assert not gate.hold()


def test_a_batch_waits_until_it_is_let_in() -> None:
    gate = Gate(settled=True)
    assert gate.hold()
    inside = threading.Event()
    waiting = threading.Thread(target=lambda: (gate.enter(), inside.set()), daemon=True)
    waiting.start()
    assert not inside.wait(0.05)
    gate.release()
    assert inside.wait(60)
    assert not gate.hold()


def test_a_batch_that_waits_when_the_flow_stops_is_not_written() -> None:
    gate = Gate(settled=True)
    gate.hold()
    gate.close()
    with pytest.raises(RuntimeError):
        gate.enter()
