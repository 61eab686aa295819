"""Records that are made up: what makes them, and that they are the same each time."""

import re
from pathlib import Path

import pytest

from mainstem.connect.captures import capture_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening.column_list import read_columns
from mainstem.connect.listening.made_values import row_maker
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError

NOW = 1_763_272_800.5


def rows(columns, count=200, seed=1, first=0):
    make = row_maker(read_columns(columns, made=True), seed)
    return [make(number, NOW) for number in range(first, first + count)]


def values(made, count=200):
    return [row["x"] for row in rows(f"x {made}", count)]


MADE = {
    "sequence": ("BIGINT AS sequence()", lambda v: v == list(range(1, 201))),
    "sequence with a step": ("INT AS sequence(10, -2)", lambda v: v[:3] == [10, 8, 6]),
    "large numbers keep their digits": (
        "BIGINT AS sequence(4611686018427387904)",
        lambda v: v[1] == 2**62 + 1,
    ),
    "uniform, whole": ("INT AS uniform(1, 3)", lambda v: set(v) == {1, 2, 3}),
    "uniform, real": (
        "DOUBLE AS uniform(-1, 1)",
        lambda v: all(-1 <= x <= 1 for x in v) and len(set(v)) == 200,
    ),
    "uniform, decimal": (
        "DECIMAL(5,2) AS uniform(0, 99999)",
        lambda v: all(x <= 999.99 and x == round(x, 2) for x in v),
    ),
    "normal": ("DOUBLE AS normal(100, 1)", lambda v: 99 < sum(v) / 200 < 101),
    "normal, within the type": (
        "TINYINT AS normal(0, 1000)",
        lambda v: set(v) >= {-128, 127} and all(-128 <= x <= 127 for x in v),
    ),
    "chance": ("BOOLEAN AS chance(0.5)", lambda v: set(v) == {True, False}),
    "never": ("BOOLEAN AS chance(0)", lambda v: set(v) == {False}),
    "pick": ('STRING AS pick(a, b, "c d")', lambda v: set(v) == {"a", "b", "c d"}),
    "pick numbers": ("INT AS pick(-1, 7)", lambda v: set(v) == {-1, 7}),
    "text": ("STRING AS text(5)", lambda v: all(re.fullmatch("[a-z0-9]{5}", x) for x in v)),
    "numbered": (
        'STRING AS numbered("user-", 3)',
        lambda v: set(v) == {"user-1", "user-2", "user-3"},
    ),
    "uuid": ("STRING AS uuid()", lambda v: len({x for x in v if len(x) == 36}) == 200),
    "now": ("TIMESTAMP AS now()", lambda v: set(v) == {"2025-11-16T06:00:00.500000Z"}),
    "today": ("DATE", lambda v: set(v) == {"2025-11-16"}),
    "by the type": ("STRING", lambda v: len(set(v)) == 200),
}
REFUSED = [
    "x BIGINT AS squence()",
    "x BIGINT AS uniform(1)",
    "x BIGINT AS uniform(3, 1)",
    "x BIGINT AS uniform(1, 2.5)",
    "x TINYINT AS uniform(0, 1000)",
    "x STRING AS uniform(1, 2)",
    "x STRING AS text(0)",
    "x STRING AS text(many)",
    "x STRING AS numbered(a)",
    "x INT AS pick(1, two)",
    "x STRING AS pick()",
    "x STRING AS now()",
    "x ARRAY<INT>",
    "x BINARY",
    "x INT AS uniform(1, 2",
    "x INT AS",
]


@pytest.mark.parametrize(("made", "good"), MADE.values(), ids=MADE)
def test_values(made, good):
    found = values(made)
    assert good(found), found[:10]


def test_a_record_is_the_same_whenever_it_is_made():
    columns = "id BIGINT AS sequence(), a DOUBLE, b STRING, c STRING AS uuid()"
    assert rows(columns, 100)[60:] == rows(columns, 40, first=60)
    assert rows(columns, seed=1) != rows(columns, seed=2)


def options(**written):
    return spec_of(Role.SOURCE, "generator").resolve(written, Secrets(Path("/nowhere"), {}))


@pytest.mark.parametrize("columns", REFUSED)
def test_columns_that_cannot_be_made_are_refused(columns):
    with pytest.raises(MainstemError) as caught:
        capture_of("generator").look("load", options(columns=columns))
    assert caught.value.code == "INVALID_OPTION"
    assert caught.value.params["option"] == "columns"


def test_the_stream_that_it_brings():
    given = options(
        columns="id BIGINT AS sequence(), user STRING, at TIMESTAMP",
        key="user",
        event_time="at",
        partitions="3",
        retention="1 day",
        watermark="10 Minutes",
    )
    [captured] = capture_of("generator").look("load", given)
    assert (captured.topic, captured.key) == ("load_events", ("user",))
    assert [c.type for c in captured.columns] == ["bigint", "string", "timestamp"]
    how = captured.events
    assert (how.event_time, how.partitions, how.retention) == ("at", 3, "1 day")
    assert how.watermark == "10 minutes"
