"""Counts of broken rules: added up, written and read back."""

from __future__ import annotations

from mainstem.log.rule_counts import RuleCounts, counted, counted_for, read_counted, writer_of
from mainstem.vocabulary import Record


def test_counts_add_up_and_come_back_as_they_were() -> None:
    counts = (
        RuleCounts().and_more({"a": 2}, {"t": {0: 5}}).and_more({"a": 1, "b": 1}, {"t": {0: 9}})
    )
    assert counts == RuleCounts({"a": 3, "b": 1}, {"t": {0: 9}})
    sent = counted("orders", counts)
    assert read_counted(Record("c", 0, 0, sent.key, sent.value, 0)) == ("orders", counts)


def test_a_topic_that_was_made_anew_is_told() -> None:
    counts = RuleCounts({"a": 3}, {"t": {0: 9, 1: 4}})
    assert counts.of_another({"t": {0: 9, 1: 3}})
    assert counts.of_another({"other": {0: 20, 1: 20}})
    assert not counts.of_another({"t": {0: 9, 1: 4}})
    assert not counts.of_another({"t": {0: 12, 1: 4}, "u": {0: 0}})


def test_a_flow_counts_under_names_of_its_own() -> None:
    assert writer_of("good", "good.2") != writer_of("good", "good.1") != "good"
    assert counted_for("shop.good") == ("shop.good", None)
    assert counted_for(writer_of("shop.good", "shop.good.2")) == ("shop.good", "shop.good.2")
    assert counted_for(writer_of("t", "t.2", "late")) == ("t", "t.2")
