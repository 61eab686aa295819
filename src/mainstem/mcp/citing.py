"""Where an answer comes from, in a sentence and in figures, so that a claim can be checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def tables_cited(freshness: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Of an answer from served tables: its age, offsets and lag of each, and how to have it again.

    All records of a table's topic before its offsets are in the answer, and none behind.
    """
    as_of = str(freshness["as_of"])
    age = max(0.0, (now - datetime.fromisoformat(as_of)).total_seconds())
    tables: Mapping[str, Any] = freshness["tables"]
    told = ", ".join(
        f"table {name} ({_places(at['offsets'])}; {_behind(at.get('lag_records'))})"
        for name, at in tables.items()
    )
    again = [
        f"{name} AS OF OFFSETS '{json.dumps(at['offsets'])}'"
        for name, at in tables.items()
        if at["offsets"]
    ]
    return {
        "citation": f"From {told or 'no table'} as of {as_of}, {age:.1f} s ago.",
        "age_seconds": round(age, 3),
        "again": again,
    }


def log_cited(read: Sequence[Mapping[str, Any]], now: datetime) -> dict[str, Any]:
    """Of an answer from the log: how much of it was read, and tables at which moment."""
    told = ", ".join(
        f"{one['records']:,} of {one['of']:,} records of {one['stream']}"
        + (f" as of {one['at']}" if one.get("at") else "")
        for one in read
    )
    moment = now.astimezone(UTC).isoformat(timespec="seconds")
    return {"citation": f"From the log, read at {moment}: {told or 'no records'}."}


def row_cited(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of the events behind a row: the row's own place, and whether these are all and no more."""
    tree = told["tree"]
    place = f"offset {tree['offset']} of partition {tree['partition']} of topic {tree['topic']}"
    sure = "exactly these events" if told["exact"] else "not exactly known events; see the notes"
    sentence = f"The row of {tree['object']} was written at {tree['time']}, {place}, from {sure}."
    return {"citation": sentence}


def _places(offsets: Mapping[str, int]) -> str:
    places = ", ".join(f"{partition}:{offset}" for partition, offset in offsets.items())
    return f"offsets {places}" if places else "no offsets"


def _behind(records: int | None) -> str:
    if records is None:
        return "how far behind is not known"
    # of the table's own topic: a flow that writes it may be late, which `status` says
    return f"{records:,} record{'' if records == 1 else 's'} of its topic behind"
