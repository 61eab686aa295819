"""Holds what EXPLAIN ROW says against the flows: a row from the named events alone.

The events that are named are written to topics of a pipeline of their own, which has never seen any
other; it has to come to the same row. Without one of them it must not.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mainstem.definitions.model import Definition, ExplainRow, Kind
from mainstem.definitions.parse import parse_one
from mainstem.engine.least import same_row
from mainstem.testing.cases import Case, play
from mainstem.testing.driver import Driver, Event

_COMPUTED = re.compile(r"CREATE TABLE [^;]*?\sAS\s+(SELECT|WITH)\b", re.IGNORECASE)
_STEPS = {"apply", "apply_late", "project", "delete_topic", "insert"}


@dataclass(frozen=True, slots=True)
class Held:
    """What became of one row."""

    table: str
    notes: tuple[str, ...]
    """Why it is not exact; none: it was held against the flows."""


def can_be_held(case: Case) -> bool:
    """True for a case with tables whose rows depend on its events, and on nothing else."""
    steps = any(event != "run" and _STEPS & set(event) for event in case.events)
    alone = case.error is None and case.unlike_batch is None and not steps
    # what is written again has other offsets, and no event behind it that closes a window
    words = ("_offset", "_partition", "_timestamp", "EMIT FINAL")
    elsewhere = any(word in case.sql for word in words)
    computed = _COMPUTED.search(case.sql) or "@table" in (case.python or "")
    return alone and bool(computed) and case.has_data and not elsewhere


def hold(case: Case, driver: Driver, chance: random.Random) -> list[Held]:
    """Explains a row of each computed table of a case, and holds it against the flows."""
    play(case, driver)
    held = []
    tables = [e.definition for e in driver.flows() if e.definition.kind is Kind.TABLE]
    for table in tables:
        rows = driver.rows(table.name)
        condition = _condition(table, row := chance.choice(rows)) if rows else None
        if condition is None:
            held.append(Held(table.name, ("it has no row, or a key without literals",)))
            continue
        statement = parse_one(f"EXPLAIN ROW {table.name} WHERE {condition}")
        assert isinstance(statement, ExplainRow)
        told = driver.explain_row(statement.query)
        assert _same(told["tree"]["payload"], _whole(table, row)), (told["tree"], row)
        notes = tuple(_notes(told["tree"]))
        assert bool(notes) is not told["exact"]
        held.append(Held(table.name, notes))
        if notes:
            continue
        leaves = sorted({_place(leaf): leaf for leaf in _leaves(told["tree"])}.items())
        nodes = [leaf for _, leaf in leaves]
        again = _again(case, driver, nodes, "again", table)
        assert _has(again, row), (table.name, row, again)
        missing = chance.choice(nodes)
        fewer = [node for node in nodes if node is not missing]
        without = _again(case, driver, fewer, "without", table)
        assert not _has(without, row), (table.name, row, "without", missing)
    return held


def _again(
    case: Case, driver: Driver, nodes: list[Mapping[str, Any]], name: str, table: Definition
) -> list[dict[str, Any]]:
    """The rows of a table of the same pipeline, which has these events only."""
    folder = Path(driver.folder) / f"{name}-{table.name}"
    folder.mkdir()
    other = Driver(
        driver.spark,
        driver.connection,
        driver.admin,
        folder,
        clock=driver.clock,
        partitions=driver.partitions,
        producer=driver.producer,
        registry=driver.registry,
    )
    try:
        other.apply(case.sql, functions=case.functions, python=case.python)
        for kind in (Kind.TABLE, Kind.STREAM):  # streams meet tables as they are
            some = [node for node in nodes if node["kind"] == kind]
            other.send(_event(driver, node) for node in some)
            other.run()
        return other.rows(table.name)
    finally:
        other.close()


def _event(driver: Driver, node: Mapping[str, Any]) -> Event:
    records = driver.records(node["topic"])
    place = (node["partition"], node["offset"])
    record = next(r for r in records if (r.partition, r.offset) == place)
    topic = node["topic"].removeprefix(driver.prefix)
    return Event(topic=topic, raw=record.value, key=record.key, timestamp=record.timestamp)


def _has(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    return any(_same(found, row) for found in rows)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return same_row(json.dumps(one, default=float), json.dumps(other, default=float))


def _whole(table: Definition, row: Mapping[str, Any]) -> dict[str, Any]:
    return {column.name: row.get(column.name) for column in table.columns}


def _condition(table: Definition, row: Mapping[str, Any]) -> str | None:
    """The row by its key; None for keys that have no literals."""
    parts = ["true"]
    for name in table.key:
        column, value = table.column(name), row.get(name)
        assert column is not None
        if isinstance(value, (dict, list)):
            return None
        text = "true" if value is True else "false" if value is False else str(value)
        quoted = text.replace("\\", "\\\\").replace("'", "\\'")
        is_null = f"`{name}` IS NULL"
        parts.append(is_null if value is None else f"`{name}` = CAST('{quoted}' AS {column.type})")
    return " AND ".join(parts)


def _leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not node["inputs"]:
        yield node
    for child in node["inputs"]:
        yield from _leaves(child)


def _notes(node: Mapping[str, Any]) -> Iterator[str]:
    if node["note"] is not None:
        yield node["note"]
    for child in node["inputs"]:
        yield from _notes(child)


def _place(node: Mapping[str, Any]) -> tuple[str, int, int]:
    return node["topic"], node["partition"], node["offset"]
