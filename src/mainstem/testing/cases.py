"""Golden cases: a YAML file of SQL, events in and rows out, or the expected error.

A file is a list of cases:

    - name: filter keeps matching rows
      sql: |
        CREATE STREAM s (id BIGINT, amount INT) WITH (key = 'id');
        CREATE STREAM big AS SELECT * FROM s WHERE amount > 10;
      functions: |                             # the text of functions/case.py
        from mainstem import function
        ...
      python: |                                # the text of pipeline/case.py
        from mainstem import stream, table
        ...
      schemas:                                 # with their first record; Protobuf is a text
        new: {type: record, name: s2, fields: [{name: id, type: long}]}
      events:
        - s: {id: 1, amount: 5}
        - s: {id: 2, amount: 50}
        - run                                  # a micro-batch ends here; one comes at the end, too
        - {to: s, raw: "{broken", key: k}      # bytes as they are
        - {topic: nyc.red.chat, row: {id: 4}}  # to a topic, which is made if there is none
        - {to: s, schema: new, row: {id: 5}}   # written by a schema of the case
        - delete_topic: nyc.red.chat
        - insert: INSERT INTO s VALUES (3, 7)
        - apply_late: visits                   # APPLY LATE visits
        - apply: |                             # definitions change while data is there
            CREATE STREAM big AS SELECT id FROM s WHERE amount > 20;
        - project: |                           # the same, and what is missing in it is dropped
            CREATE STREAM s (id BIGINT, amount INT) WITH (key = 'id');
        - {apply: ..., functions: ..., python: ...}  # both take Python; functions stay without
      rows:
        big: [{id: 2, amount: 50}]             # a stream: in any order; a table: its present rows
      keys:
        big: ["2"]                             # the keys of all records, tombstones too
      columns:
        big: {id: bigint, amount: int}
      history:
        - sql: SELECT count(*) FROM s
          rows: [[2]]
          ordered: true                        # the order of the rows counts; false when absent
      quarantine: 1                            # how many records were put aside
      unlike_batch: late                       # why the batch answer differs, one of REASONS
      uncut: late                              # why the input is not cut any further
      late:                                    # starts of the windows that waiting records missed
        visits: [["2026-01-01T09:00:00.000000Z"]]
      plan: [create s, create big]             # the steps of the last apply
    - name: unknown column
      sql: ...
      error: {code: UNKNOWN_COLUMN, at: "2:31", suggests: amount}

Numbers compare by value, so `5` equals `5.0`; time stamps are texts as the log holds them.

Each case is answered three times: by its `rows`; by its flows, whose input is cut into
micro-batches at random places; and by a batch job for each flow, over all that the flow has read.
The answers must be the same, unless the case says why not.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from pyspark.errors import PySparkException

from mainstem.catalog.plan import Plan
from mainstem.definitions.model import InsertValues, Select
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.testing.batch import Pair
from mainstem.testing.driver import Driver, Event

REASONS = {
    "late": "what comes too late is left out",
    "open": "what can still change is not written yet",
    "moment": "a record meets the tables as they were when it was processed",
    "expired": "rows of old windows are deleted",
    "first": "of several records only the first counts",
    "latest": "the flow starts behind what was there",
    "redefined": "the definitions change between the events",
    "deleted": "a topic is deleted between the events",
    "failed": "records for which a function fails are put aside",
    "together": "which records come in one micro-batch counts",
    "writes": "each write is counted, and every micro-batch writes",
}
_A_PART = {"open", "first", "expired"}
"""Reasons for which the batch answer has all that the flow has written, and more."""


@dataclass(frozen=True)
class Case:
    """One case of a file."""

    name: str
    sql: str
    functions: str | None = None
    python: str | None = None
    schemas: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[Any] = ()
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    keys: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    quarantine: int | None = None
    late: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    plan: Sequence[str] | None = None
    error: Mapping[str, str] | None = None
    unlike_batch: str | None = None
    uncut: str | None = None
    file: str = ""

    @property
    def has_data(self) -> bool:
        """False for a case of definitions only, whose flows need not run."""
        definitions = {"apply", "project"}
        sent = any(event == "run" or not definitions & set(event) for event in self.events)
        return bool(sent or self.rows or self.keys)

    def __str__(self) -> str:
        return f"{Path(self.file).stem}: {self.name}"


_STEPS = {"apply", "apply_late", "project", "delete_topic", "insert"}
_KNOWN = set(Case.__dataclass_fields__) - {"file"}


def load_cases(folder: Path) -> Iterator[Case]:
    """All cases of all files in a folder."""
    names = set()
    for file in sorted(folder.glob("*.yaml")):
        for document in yaml.safe_load(file.read_text("utf-8")):
            unknown = set(document) - _KNOWN
            if unknown:
                message = f"{file.name}: {document.get('name')}: unknown keys {sorted(unknown)}"
                raise ValueError(message)
            case = Case(file=str(file), **document)
            for reason in (case.unlike_batch, case.uncut):
                if reason not in (None, *REASONS):
                    message = f"{case}: {reason!r} is none of {', '.join(REASONS)}"
                    raise ValueError(message)
            if str(case) in names:
                message = f"{file.name}: two cases are called {case.name!r}"
                raise ValueError(message)
            names.add(str(case))
            yield case


def run_case(case: Case, driver: Driver, pieces: random.Random | None = None) -> None:
    """Runs a case; raises AssertionError when something is not as it says.

    With `pieces` the input is cut into micro-batches at random places.
    """
    driver.pieces = pieces if case.uncut is None else None
    if driver.pieces is not None and "watermark" in case.sql:
        driver.partitions = 1  # what is late depends on the order, which only a partition keeps
    if case.error is not None:
        _expect_error(case, driver)
        return
    plan = play(case, driver)
    for name, columns in case.columns.items():
        found = [[c.name, c.type] for c in driver.entry(name).definition.columns]
        _same(f"columns of {name}", found, [list(pair) for pair in columns.items()])
    for name, rows in case.rows.items():
        _same(f"rows of {name}", _sorted(driver.rows(name)), _sorted(rows))
    for name, keys in case.keys.items():
        _same(f"keys of {name}", _sorted(driver.keys(name)), _sorted(keys))
    for question in case.history:
        answer, wanted = _ask(driver, question["sql"]), question["rows"]
        if question.get("ordered"):
            _same(question["sql"], _plain(answer), _plain(wanted))
        else:
            _same(question["sql"], _sorted(answer), _sorted(wanted))
    for name, missed in case.late.items():
        starts = [[start for start, _ in entry["windows"]] for entry in driver.late(name)]
        _same(f"windows missed of {name}", _sorted(starts), _sorted(missed))
    if case.quarantine is not None:
        _same("records in quarantine", len(driver.quarantine()), case.quarantine)
    if case.plan is not None:
        taken = [f"{change.step} {change.function.name}()" for change in plan.functions]
        taken += [f"{step.step} {step.entry.name}" for step in plan.steps]
        _same("plan", taken, list(case.plan))
    if case.has_data:
        _compare_with_batch(case, driver)


def play(case: Case, driver: Driver) -> Plan:
    """Applies the definitions, lets the events happen; returns the plan of the last apply."""
    plan = driver.apply(case.sql, functions=case.functions, python=case.python)
    waiting: list[Event] = []
    for item in _cut(case.events, driver):
        if item != "run" and not _STEPS & set(item):
            waiting.append(_event(item, case.schemas))
            continue
        driver.send(waiting)
        waiting.clear()
        match item:
            case "run":
                driver.run()
            case {"apply": sql}:
                plan = driver.apply(sql, **_python_of(item))
            case {"project": sql}:
                plan = driver.apply(sql, **_python_of(item), drop_missing=True)
            case {"delete_topic": topic}:
                driver.delete_topic(topic)
            case {"apply_late": name}:
                driver.apply_late(name)
            case {"insert": sql}:
                statement = parse_one(sql)
                assert isinstance(statement, InsertValues)
                driver.insert(statement)
    driver.send(waiting)
    if case.has_data:
        driver.run()
    return plan


def _python_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"functions": item.get("functions"), "python": item.get("python")}


def _cut(events: Sequence[Any], driver: Driver) -> Sequence[Any]:
    """The events with one run more where a table is made of tables.

    Such a flow takes all that is new at once, however much it is.
    """
    inside = [i for i in range(1, len(events)) if "run" not in events[i - 1 : i + 1]]
    if driver.pieces is None or not inside or not driver.has_table_flows():
        return events
    place = driver.pieces.choice(inside)
    return [*events[:place], "run", *events[place:]]


def _compare_with_batch(case: Case, driver: Driver) -> None:
    """Each flow against its query over the whole of its input."""
    different = []
    for flow in filter(driver.has_batch_answer, driver.flows()):
        try:
            asked = Counter(driver.batch(flow.name))
        except PySparkException:
            if case.unlike_batch != "failed":
                raise
            different.append(flow.name)
            continue
        written = Counter(driver.pairs(flow.name))
        if written == asked:
            continue
        different.append(flow.name)
        only_written, only_asked = written - asked, asked - written
        if case.unlike_batch is None or (only_written and case.unlike_batch in _A_PART):
            message = (
                f"{flow.name} is unlike its batch answer\n  written only {_pairs(only_written)}"
            )
            raise AssertionError(f"{message}\n  in the batch only {_pairs(only_asked)}")
    if case.unlike_batch is not None and not different:
        message = f"unlike_batch: {case.unlike_batch}, but every flow is like its batch answer"
        raise AssertionError(message)


def _pairs(pairs: Counter[Pair]) -> list[str]:
    return [
        f"{(key or b'').decode()}: {value.decode(errors='backslashreplace')}"
        for key, value in pairs.elements()
    ]


def _ask(driver: Driver, sql: str) -> list[list[Any]]:
    statement = parse_one(sql, functions=driver.catalog.functions)
    assert isinstance(statement, Select)
    return driver.history(statement)


def _expect_error(case: Case, driver: Driver) -> None:
    assert case.error is not None
    try:
        play(case, driver)
        for question in case.history:
            _ask(driver, question["sql"])
    except MainstemError as error:
        assert error.code == case.error["code"], error.render()
        if "at" in case.error:
            place = error.location
            found = None if place is None else f"{place.line}:{place.column}"
            assert found == case.error["at"], error.render()
        if "suggests" in case.error:
            assert f'"{case.error["suggests"]}"' in error.hint, error.render()
        assert error.hint, "an error without a hint"
        return
    message = f"no error, though {case.error['code']} was expected"
    raise AssertionError(message)


def _event(item: Mapping[str, Any], schemas: Mapping[str, Any]) -> Event:
    if "to" in item or "topic" in item:
        raw = item.get("raw")
        return Event(
            stream=item.get("to", ""),
            topic=item.get("topic"),
            row=item.get("row"),
            raw=raw.encode() if isinstance(raw, str) else raw,
            key=item.get("key"),
            timestamp=item.get("timestamp"),
            schema=json.dumps(schemas[item["schema"]]) if "schema" in item else None,
        )
    [(stream, row)] = item.items()
    return Event(stream=stream, row=row)


def _same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        message = f"{what}\n  found    {_text(found)}\n  expected {_text(expected)}"
        raise AssertionError(message)


def _sorted(rows: Sequence[Any]) -> list[Any]:
    """Rows in an order that does not depend on where they came from, numbers made equal."""
    return sorted((_plain(row) for row in rows), key=_text)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_number)


def _number(value: Decimal) -> str:
    """One text for equal numbers, with all digits."""
    whole = value == value.to_integral_value()
    return str(value.to_integral_value()) if whole else f"{value:f}".rstrip("0")


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() | float():
            return Decimal(repr(value))  # not float: it takes neighbours of large numbers for equal
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value
