"""Every example of the repository, played on one stack: applied, checked by itself, dropped.

Those that need servers around Mainstem are applied together: one Connect worker is started for all.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from compare import asking, compare
from play import case, names
from run import SEED, check
from stage import stack
from world import NotHereError, world

PATIENCE_SECONDS = 240.0
TOGETHER = [name for name in names() if hasattr(case(name), "NEEDS")]


@pytest.fixture(scope="module")
def around():
    """The servers, or why there are none."""
    with ExitStack() as ending:
        try:
            yield ending.enter_context(world(TOGETHER))
        except NotHereError as missing:
            yield missing


@pytest.fixture(scope="module")
def stage(tmp_path_factory, around):
    folder = tmp_path_factory.mktemp("examples") / "examples"
    (folder / "data" / "stores").mkdir(parents=True)
    (folder / "mainstem.toml").write_text('name = "examples"\n\n[kafka]\npartitions = 2\n')
    with stack(folder) as stage:
        yield stage


@pytest.mark.parametrize("name", [name for name in names() if name not in TOGETHER])
def test_an_example_comes_to_its_own_answer(stage, around, name, capsys):
    assert check(stage, around, name, patience=PATIENCE_SECONDS), capsys.readouterr()
    _refuses_wrong_answers(stage, around, name)
    _drop_all(stage.client)


def test_examples_with_servers_around_them_come_to_their_own_answers(stage, around, capsys):
    if isinstance(around, NotHereError):
        pytest.skip(str(around))
    assert check(stage, around, *TOGETHER, patience=PATIENCE_SECONDS), capsys.readouterr()
    for name in TOGETHER:
        _refuses_wrong_answers(stage, around, name)
    _drop_all(stage.client)


def _refuses_wrong_answers(stage, around, name):
    """The answer with a row too few, and with one that is twice there."""
    example = case(name)
    ask = asking(stage.client, around)
    table, rows = next(iter(example.answer(example.events(SEED)).items()))
    assert not compare(ask, table, rows[1:] or [dict.fromkeys(rows[0])]).equal
    assert not compare(ask, table, [*rows, rows[0]]).equal


def _drop_all(client):
    nothing = client.plan([])
    client.apply([], nothing["digest"], nothing["revision"])
    for made_by_statement in client.objects():
        client.drop(made_by_statement["name"], cascade=True)
