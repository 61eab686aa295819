"""The check of the examples sees what is wrong, and only that."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

import run
from compare import asking, compare, troubles, wait_for
from play import Event, Line, Sql, Statement, case, clock, moment, names, play
from stage import Stage
from world import NotHereError

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ROWS = [
    {"city": "rome", "at": None, "total": 2.5, "sold": 11},
    {"city": "oslo", "at": NOON, "total": 0.1 + 0.2, "sold": 2},
]
HELD = [["oslo", "2026-03-02T12:00:00Z", 0.3, 2], ["rome", None, 2.5, 11]]


class World:
    """Servers around Mainstem that hold what they hold."""

    def holds(self, name, columns):
        return [[name, *columns]]


WORLD = World()


class Gateway:
    """Answers as a gateway would, and remembers what it was told."""

    def __init__(self, rows=(), **status) -> None:
        self.rows = [list(row) for row in rows]
        self.told: list[object] = []
        self.flow = {"flow": "sums", "lag_records": 0, **status}

    def sql(self, sql):
        self.told.append(sql)
        return {"rows": self.rows}

    def write(self, stream, body):
        self.told.append((stream, body.count(b'"value"')))

    def quarantine(self, filters):
        return {"records": [{"stage": "decode", "value": filters["stream"]}]}

    def connectors(self):
        return {"connectors": [{"name": "shop", "state": "running"}]}

    def status(self):
        return {"flows": [self.flow, {"flow": "another", "lag_records": 9}]}


def test_the_right_rows_in_any_order():
    gateway = Gateway(HELD)
    compared = compare(asking(gateway, WORLD), "sums", ROWS)
    assert compared.equal
    assert gateway.told == ["SELECT city, at, total, sold FROM sums"]


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, 0, "bern"), (0, 1, "2026-03-02T12:00:01Z"), (0, 2, 0.30001), (1, 1, HELD[0][1]),
     (1, 3, 12), (0, 2, None)],
)  # fmt: skip
def test_one_wrong_value(row, column, value):
    held = [list(r) for r in HELD]
    held[row][column] = value
    compared = compare(asking(Gateway(held), WORLD), "sums", ROWS)
    assert not compared.equal
    assert [pair for pair in compared.pairs if None in pair] == compared.pairs[:2]


@pytest.mark.parametrize("held", [[], HELD[:1], [*HELD, HELD[0]], [HELD[0], HELD[0]]])
def test_missing_and_doubled_rows(held):
    assert not compare(asking(Gateway(held), WORLD), "sums", ROWS).equal


def test_nothing_may_be_expected():
    assert compare(asking(Gateway(), WORLD), "sums", []).equal
    assert not compare(asking(Gateway([[1]]), WORLD), "sums", []).equal


@pytest.mark.parametrize("lag", [None, 3])
def test_what_is_not_read_yet_is_waited_for(lag, monkeypatch):
    gateway = Gateway(HELD, lag_records=lag)
    read_all = lambda _: gateway.flow.update(lag_records=0)  # noqa: E731
    monkeypatch.setattr("compare.time", SimpleNamespace(**vars(time) | {"sleep": read_all}))
    assert all(
        c.equal
        for c in wait_for(gateway, asking(gateway, WORLD), {"sums": ROWS}, ["sums"], seconds=30)
    )
    assert len(gateway.told) == 2


def test_patience_ends():
    gateway = Gateway()
    ask = asking(gateway, WORLD)
    assert not wait_for(gateway, ask, {"sums": ROWS}, ["sums"], seconds=0)[0].equal


def test_other_servers_are_asked_by_their_names():
    ask = asking(Gateway(), WORLD)
    assert ask("postgres:crm.contacts", ["id"]) == [["postgres:crm.contacts", "id"]]
    assert ask("quarantine:sums", ["stage"]) == [["decode"]]


def test_troubles_of_flows():
    error = {"title": "FUNCTION_FAILED", "detail": "no such city"}
    gateway = Gateway(error=error, quarantined=2, late_dropped=1, late_waiting=3)
    assert list(troubles(gateway, ["sums"])) == [
        "sums: FUNCTION_FAILED: no such city",
        "sums: 2 records are in quarantine",
        "sums: 4 records came too late",
    ]


def test_what_happens_keeps_its_order():
    gateway = Gateway()
    steps = [Event("cities", {}), Event("sums", {}), Event("cities", {}), Statement("DROP"),
             *[Event("sums", {})] * 501]  # fmt: skip
    steps += [Sql("shop", "INSERT"), Event("sums", {}), Line("LOG", "text")]
    play(gateway, steps, gateway.told.append)
    assert gateway.told == [
        ("cities", 2), ("sums", 1), "DROP", ("sums", 500), ("sums", 1),
        Sql("shop", "INSERT"), ("sums", 1), Line("LOG", "text"),
    ]  # fmt: skip


@pytest.mark.parametrize(("right", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_it_is_right(right, code, monkeypatch, tmp_path):
    stage = nullcontext(Stage(Gateway(), SimpleNamespace(gateway_url=""), tmp_path))
    monkeypatch.setattr(run, "stack", lambda folder: stage)
    monkeypatch.setattr(run, "check", lambda stage, around, name, seed: right)
    monkeypatch.setattr("sys.argv", ["run.py", "searches"])
    assert run.main() == code


def test_a_server_that_is_not_here_is_named(monkeypatch, capsys):
    def world(names):
        raise NotHereError("apt-get install it")

    monkeypatch.setattr(run, "world", world)
    monkeypatch.setattr("sys.argv", ["run.py", "customer360"])
    assert run.main() == 1
    assert "customer360 cannot run here: apt-get install it" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1]])
def test_an_example_is_right_or_wrong(rows, monkeypatch, capsys, tmp_path):
    example = SimpleNamespace(events=lambda seed: [], answer=lambda events: {"sums": rows})
    monkeypatch.setattr(run, "case", lambda name: example)
    monkeypatch.setattr(run, "apply", lambda client, folder: {"sums": 1})
    monkeypatch.setattr(run, "wait_for_flows", lambda *_: None)
    stage = Stage(Gateway(HELD), SimpleNamespace(gateway_url=""), tmp_path)
    assert run.check(stage, WORLD, "sums", patience=0) is (rows is ROWS)
    out, err = capsys.readouterr()
    assert f"{len(rows)} rows computed from the events, 2 in Mainstem" in out
    assert ("WRONG" in err) is (rows is not ROWS)


@pytest.mark.parametrize("name", names())
def test_examples_are_the_same_each_time(name):
    example = case(name)
    first = example.events(1)
    assert first == example.events(1) != example.events(2)
    assert all(example.answer(first).values()), "an answer without rows proves little"


def test_times_of_events():
    assert clock(NOON) == "2026-03-02T12:00:00.000Z"
    assert moment(clock(NOON)) == NOON


def test_the_list(capsys):
    run.list_examples()
    listed = capsys.readouterr().out
    assert all(line in listed for line in ("searches     Searches", "forecast     A model"))
