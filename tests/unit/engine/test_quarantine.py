"""Why a record was put aside, and which ranges the keeper still has to look through."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse
from mainstem.engine.quarantine import Keeper, Report, _outgoing, diagnose_json
from mainstem.log.quarantine import read_quarantined
from mainstem.testing.clock import ManualClock
from mainstem.vocabulary import Column, Record

COLUMNS = (Column("id", "bigint"), Column("ok", "boolean"), Column("at", "timestamp"))


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (b"{oops", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1, 2]", "object"),
        (b"7", "object"),
        (b'{"id": "seven"}', '"id"'),
        (b'{"id": true}', '"id"'),
        (b'{"id": 7, "ok": "yes"}', '"ok"'),
        (b'{"id": 7, "at": []}', '"at"'),
        (b'{"id": 7, "at": "someday"}', "does not fit"),
    ],
)
def test_diagnosis_names_what_is_wrong(value: bytes, part: str) -> None:
    assert part in diagnose_json(value, COLUMNS)


@pytest.mark.parametrize("headers", [None, [SimpleNamespace(key="trace", value=b"\xff")]])
def test_a_bad_record_is_kept_with_its_headers(stream: Any, headers: Any) -> None:
    row = SimpleNamespace(
        topic="s", partition=1, offset=5, timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        key=None, value=b"bad", headers=headers, mistaken=None, broken=None,
    )  # fmt: skip
    sent = _outgoing(row, stream, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    entry = read_quarantined(Record("q", 0, 9, sent.key, sent.value, 0, sent.headers))
    assert entry.origin.headers == (() if headers is None else (("trace", b"\xff"),))
    assert (entry.place, entry.reader, entry.origin.value) == ("s/1/5", "s", b"bad")
    assert (entry.stage, entry.code) == ("decode", "RECORD_NOT_DECODED")


@pytest.mark.parametrize("value", [None, b"{}"])
def test_a_record_with_a_mistaken_time_says_so(stream: Any, value: bytes | None) -> None:
    row = SimpleNamespace(
        topic="s", partition=1, offset=5, timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        key=None, value=value, headers=None, mistaken="it is NULL", broken=None,
    )  # fmt: skip
    sent = _outgoing(row, stream, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    entry = read_quarantined(Record("q", 0, 9, sent.key, sent.value, 0, sent.headers))
    assert (entry.stage, entry.code) == ("time", "EVENT_TIME_OUT_OF_BOUNDS")
    assert "it is NULL" in entry.cause
    assert entry.origin.value == value


class Log:
    """Offsets of one topic with two partitions, and what was committed."""

    def __init__(self, saved: dict[int, int]) -> None:
        self.saved = saved
        self.committed: list[dict[int, int]] = []
        self.gone: set[str] = set()

    def all_begin_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: 0, 1: 0} for topic in topics if topic not in self.gone}

    def all_end_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: 100, 1: 100} for topic in topics if topic not in self.gone}

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        return self.saved

    def commit_offsets(self, group: str, offsets: dict[str, dict[int, int]]) -> None:
        self.committed.append(dict(offsets["s"]))


@pytest.fixture
def stream() -> Any:
    [statement] = parse("CREATE STREAM s (id BIGINT)")
    assert isinstance(statement, Create)
    return statement.definition


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    fencing = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr("mainstem.engine.quarantine.TransactionalProducer", lambda *_: fencing)


def handled(log: Log, stream: Any, *reports: tuple[dict[int, int], dict[int, int], int | None]):
    keeper = Keeper(SimpleNamespace(), SimpleNamespace(), log, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    scanned: list[tuple[dict[int, int], dict[int, int]]] = []
    keeper._keep = lambda _, part, start, end, there: (
        scanned.append((dict(start["s"]), dict(end["s"]))) is None
    )  # type: ignore[method-assign]
    for start, end, bad in reports:
        keeper._handle(Report(stream, {"s": start}, {"s": end}, bad))
    return scanned


def test_clean_batches_are_never_read_again(stream: Any) -> None:
    log = Log({})
    assert (
        handled(log, stream, ({0: 0, 1: 0}, {0: 5, 1: 5}, 0), ({0: 5, 1: 5}, {0: 9, 1: 9}, 0)) == []
    )
    assert log.committed == [{0: 5, 1: 5}]


def test_a_batch_with_bad_records_is_read_again_once(stream: Any) -> None:
    reports = [({0: 0, 1: 0}, {0: 5, 1: 5}, 2)] * 2
    assert handled(Log({}), stream, *reports) == [({0: 0, 1: 0}, {0: 5, 1: 5})]


def test_what_another_engine_has_kept_is_not_kept_again(stream: Any) -> None:
    """Its position was not to be seen yet when this one read it, or it went on meanwhile."""
    log = Log({0: 5, 1: 0})
    keeper = Keeper(SimpleNamespace(), SimpleNamespace(), log, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    scanned = []

    def keep(_: Any, part: Any, start: Any, end: Any, there: Any) -> bool:
        log.saved = {0: 12, 1: 0}
        if keeper._is_kept(part, start, there):
            return False
        scanned.append((dict(start["s"]), dict(end["s"])))
        return True

    keeper._keep = keep  # type: ignore[method-assign]
    keeper._handle(Report(stream, {"s": {0: 0, 1: 0}}, {"s": {0: 10, 1: 3}}, None))
    keeper._handle(Report(stream, {"s": {0: 10, 1: 3}}, {"s": {0: 20, 1: 3}}, None))
    assert scanned == [({0: 12, 1: 0}, {0: 12, 1: 3}), ({0: 12, 1: 3}, {0: 20, 1: 3})]


def test_what_a_crash_left_out_is_covered_by_the_next_report(stream: Any) -> None:
    reports = [({0: 8, 1: 8}, {0: 9, 1: 9}, 0)]
    assert handled(Log({0: 3, 1: 8}), stream, *reports) == [({0: 3, 1: 8}, {0: 9, 1: 9})]


def test_a_position_from_an_older_topic_of_the_name_is_not_used(stream: Any) -> None:
    reports = [({0: 0, 1: 0}, {0: 5, 1: 5}, 1)]
    assert handled(Log({0: 4000, 1: 2}), stream, *reports) == [({0: 0, 1: 2}, {0: 5, 1: 5})]


def test_a_topic_made_anew_is_looked_through_from_its_beginning(stream: Any) -> None:
    log = Log({})
    keeper = Keeper(SimpleNamespace(), SimpleNamespace(), log, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    scanned: list[dict[int, int]] = []
    keeper._keep = lambda _, part, start, end, there: scanned.append(dict(start["s"])) is None  # type: ignore[method-assign]
    keeper.report(Report(stream, {}, {"s": {0: 5, 1: 5}}, 1))
    keeper.forget(stream)
    keeper.report(Report(stream, {}, {"s": {0: 2, 1: 2}}, 1))
    keeper.start()
    keeper.stop()
    assert scanned == [{0: 0, 1: 0}, {0: 0, 1: 0}]


def test_records_of_a_topic_that_was_made_again_are_not_waited_for(stream: Any) -> None:
    gone, new = ({0: 0, 1: 0}, {0: 5, 1: 200}, 1), ({0: 0, 1: 0}, {0: 7, 1: 7}, 1)
    assert handled(Log({}), stream, gone, new) == [({0: 0, 1: 0}, {0: 7, 1: 7})]


def test_streams_in_one_topic_look_for_their_own_and_together_for_the_nameless() -> None:
    made = []
    for name in "ab":
        options = f"topic = 's', format = 'avro', record = 'x.{name}'"
        [statement] = parse(f"CREATE STREAM {name} (id INT) WITH ({options})")
        assert isinstance(statement, Create)
        made.append(statement.definition)
    keeper = Keeper(
        SimpleNamespace(),
        SimpleNamespace(),
        Log({}),
        ManualClock(),
        SimpleNamespace(),  # type: ignore[arg-type]
    )
    scanned: list[Any] = []
    keeper._keep = lambda stream, part, start, end, there: (
        scanned.append((stream.name, part.group)) is None
    )  # type: ignore[method-assign]
    for stream in (*made, *made):
        keeper._handle(Report(stream, {"s": {0: 0}}, {"s": {0: 5}}, 1))
    assert scanned == [
        ("a", "mainstem.quarantine.s/x.a"),
        ("a", "mainstem.quarantine.s"),
        ("b", "mainstem.quarantine.s/x.b"),
    ]


def test_the_keeper_ends_when_the_log_is_away(stream: Any) -> None:
    log = Log({})
    keeper = Keeper(SimpleNamespace(), SimpleNamespace(), log, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    keeper.report(Report(stream, {}, {"s": {0: 5, 1: 5}}, 0))
    keeper.report(Report(stream, {}, {"s": {0: 6, 1: 6}}, 0))
    del log.committed  # every commit fails
    keeper.start()
    keeper.stop()
    assert not keeper._thread.is_alive()


def test_topics_of_a_wildcard_stream_join_and_leave() -> None:
    [statement] = parse("CREATE STREAM w FROM TOPICS '*.chat' (id BIGINT)")
    assert isinstance(statement, Create)
    wildcard, log = statement.definition, Log({})
    keeper = Keeper(SimpleNamespace(), SimpleNamespace(), log, ManualClock(), SimpleNamespace())  # type: ignore[arg-type]
    scanned: list[Any] = []
    keeper._keep = lambda _, part, start, end, there: scanned.append((start, end)) is None  # type: ignore[method-assign]

    def report(start: dict[str, int], end: dict[str, int]) -> None:
        keeper._handle(
            Report(
                wildcard,
                {topic: {0: at, 1: 0} for topic, at in start.items()},
                {topic: {0: at, 1: 0} for topic, at in end.items()},
                1,
            )
        )

    report({}, {"a.chat": 5})
    report({"a.chat": 5}, {"a.chat": 5, "b.chat": 2})
    log.gone = {"a.chat"}
    report({"a.chat": 5, "b.chat": 2}, {"b.chat": 3})
    log.gone = set()
    report({"b.chat": 3}, {"a.chat": 1, "b.chat": 3})
    assert scanned == [
        ({"a.chat": {0: 0, 1: 0}}, {"a.chat": {0: 5, 1: 0}}),
        ({"b.chat": {0: 0, 1: 0}}, {"b.chat": {0: 2, 1: 0}}),
        ({"b.chat": {0: 2, 1: 0}}, {"b.chat": {0: 3, 1: 0}}),
        ({"a.chat": {0: 0, 1: 0}}, {"a.chat": {0: 1, 1: 0}}),
    ]
