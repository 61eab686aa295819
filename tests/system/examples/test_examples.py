"""Every example of the repository, played on one stack: applied, checked by itself, dropped."""

from __future__ import annotations

import pytest

from compare import compare
from play import case, names
from run import SEED, check
from stage import stack

PATIENCE_SECONDS = 240.0


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples") / "examples"
    folder.mkdir()
    (folder / "mainstem.toml").write_text('name = "examples"\n\n[kafka]\npartitions = 2\n')
    with stack(folder) as (client, _):
        yield client


@pytest.mark.parametrize("name", names())
def test_an_example_comes_to_its_own_answer(client, name, capsys):
    assert check(client, name, patience=PATIENCE_SECONDS), capsys.readouterr()
    for wrong, rows in _wrong_answers(name):
        assert not compare(client, wrong, rows).equal
    nothing = client.plan([])
    client.apply([], nothing["digest"], nothing["revision"])
    for made_by_statement in client.objects():
        client.drop(made_by_statement["name"], cascade=True)


def _wrong_answers(name):
    """The answer with a row too few, and with one that is twice there."""
    example = case(name)
    table, rows = next(iter(example.answer(example.events(SEED)).items()))
    return [(table, rows[1:] or [dict.fromkeys(rows[0])]), (table, [*rows, rows[0]])]
