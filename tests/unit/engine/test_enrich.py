"""How the batches of a stream that is joined to tables are divided, also when they run again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse
from mainstem.engine import enrich
from mainstem.engine.enrich import Enrichment
from mainstem.engine.writer import Split
from mainstem.errors import MainstemError

SQL = """
CREATE STREAM orders (id BIGINT, customer BIGINT);
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING);
CREATE STREAM rich AS SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id;
"""


class Notes:
    """Stands for the checkpoint folder of a flow."""

    def __init__(self, noted: str | None, *, settled: bool) -> None:
        self.noted = noted
        self._settled = settled

    def settled(self, _: str) -> bool:
        return self._settled

    def read_note(self, *_: Any) -> str | None:
        return self.noted

    def delete_note(self, *_: Any) -> None:
        self.noted = None

    def write_note(self, *given: Any) -> None:
        assert self.noted is None, "a note may not be written over"
        self.noted = given[-1]


def split(monkeypatch: pytest.MonkeyPatch, notes: Notes, *, apart: bool) -> Split:
    orders, customers, rich = (s.definition for s in parse(SQL) if isinstance(s, Create))
    monkeypatch.setattr(enrich, "keeps_partitions", lambda _: apart)
    monkeypatch.setattr(Enrichment, "_outline", lambda *_: None)
    nothing: Any = SimpleNamespace()
    stand_in: Any = notes
    entry = Entry(rich, "own.inputs.options")
    return Enrichment(entry, [orders, customers], nothing, stand_in, "", nothing).split(nothing)


@pytest.mark.parametrize(
    ("noted", "settled", "apart", "found"),
    [
        (None, True, True, Split.BY_INPUT),
        (None, True, False, Split.WHOLE),
        ("whole", True, True, Split.BY_INPUT),
        ("by input", True, False, Split.WHOLE),
        ("by input", False, True, Split.BY_INPUT),
        ("whole", False, True, Split.WHOLE),
        (None, False, True, Split.WHOLE),
    ],
)
def test_a_batch_that_may_run_again_is_divided_as_it_was(
    monkeypatch: pytest.MonkeyPatch, noted: str | None, settled: bool, apart: bool, found: Split
) -> None:
    notes = Notes(noted, settled=settled)
    assert split(monkeypatch, notes, apart=apart) is found
    if settled:
        assert notes.noted == found.value


def test_a_batch_that_cannot_be_divided_as_it_was_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MainstemError) as error:
        split(monkeypatch, Notes("by input", settled=False), apart=False)
    assert error.value.code == "BATCH_BEGUN_OTHERWISE"
