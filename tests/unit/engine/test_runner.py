"""How the engine goes from one catalog to the next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.engine import runner as module
from mainstem.engine.runner import Runner

TEXTS = {
    "source": "CREATE STREAM source WITH (format = 'avro')",
    "behind": "CREATE STREAM behind AS SELECT * FROM first",
    "first": "CREATE STREAM first AS SELECT * FROM source",
    "named": "CREATE STREAM named AS SELECT id FROM source",
}


def catalog(**fingerprints: str) -> Catalog:
    entries = {}
    for name, text in TEXTS.items():
        statement = parse_one(text)
        assert isinstance(statement, Create)
        entries[name] = Entry(statement.definition, fingerprints.get(name, "a.b.c"))
    return Catalog(entries, 1)


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    done: list[tuple[str, str]] = []

    class FakeFlow:
        def __init__(self, entry: Entry, inputs: Any, services: Any) -> None:
            self.entry, self.inputs = entry, inputs
            self.waits = [source.name for source in inputs if source.follows]

        def start(self) -> None:
            done.append(("start", self.entry.name))

        def stop(self) -> None:
            done.append(("stop", self.entry.name))

    monkeypatch.setattr(module, "Flow", FakeFlow)
    monkeypatch.setattr(
        module, "Backfills", lambda *_: SimpleNamespace(flows=(), reconcile=lambda _: None)
    )
    return done


def made(catalogs: list[Catalog]) -> Runner:
    services: Any = SimpleNamespace(
        clock=SimpleNamespace(now=lambda: 0.0), keeper=SimpleNamespace(forget=lambda _: None)
    )
    statuses: Any = SimpleNamespace(write=lambda *_, **__: None)
    return Runner(services, lambda: catalogs[-1], statuses, lambda *_: None)


def test_what_changes_ends_before_the_first_begins_again(acts: list[tuple[str, str]]) -> None:
    catalogs = [catalog()]
    runner = made(catalogs)
    runner.reconcile()
    acts.clear()
    runner.reconcile()
    assert acts == []
    catalogs.append(catalog(first="a.x.c", behind="a.x.c"))
    runner.reconcile()
    assert sorted(acts[:2]) == [("stop", "behind"), ("stop", "first")]
    assert sorted(acts[2:]) == [("start", "behind"), ("start", "first")]


def test_only_who_takes_all_columns_waits_for_new_ones(acts: list[tuple[str, str]]) -> None:
    runner = made([catalog()])
    runner.reconcile()
    flows: dict[str, Any] = dict(runner._flows)
    assert {name: flow.waits for name, flow in flows.items()} == {
        "behind": [], "first": ["source"], "named": [],
    }  # fmt: skip
