"""The task that writes what a source brings: records to its stream, and what is none aside.

Its input are records as `COLUMNS` says. What cannot be a record goes to the quarantine in the
transaction of the others, so each is here or there, once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.engine.aside import quarantine_rows
from mainstem.errors import MainstemError
from mainstem.log.producer import Outgoing
from mainstem.log.quarantine import quarantined
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.vocabulary import Record

STAGE = "source"
COLUMNS = {
    "key": "binary",
    "value": "binary",
    "place": "string",
    "cause": "string",
    "at": "bigint",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Key, value, time stamp in milliseconds and headers of a record; where it is from, in words; and
why it is none: then the value is what was found there. Not NULL and empty: whoever writes it aside
finds out (`SourceWork.diagnose`)."""
_LONGEST_KEPT = 65_536
_NOWHERE = -1
_ROOM = 4_096
"""What a record takes beside its key and value, or less."""

Diagnose = Callable[[bytes], str]


def records_of(rows: DataFrame) -> DataFrame:
    """Rows that have some of the columns of records, with all of them."""
    there = set(rows.columns)
    return rows.select(
        *(
            F.col(name) if name in there else F.lit(None).cast(kind).alias(name)
            for name, kind in COLUMNS.items()
        )
    )


@dataclass(frozen=True, slots=True)
class SourceWork:
    """What the driver tells the tasks of one batch; plain values, so that it travels to workers."""

    source: str
    topic: str
    """Of its stream, which is called as the stream itself."""
    now: float
    largest: int
    """As many bytes the log takes as one record."""
    diagnose: Diagnose | None = None

    def task(self, task: TaskWrite, number: int) -> SourceTask:
        """The task of a part of the input."""
        return SourceTask(self, task)


class SourceTask:
    """One task of one batch."""

    def __init__(self, work: SourceWork, task: TaskWrite) -> None:
        self._work = work
        self._flow = task.flow
        self.made = 0
        """Records that it has written."""
        self._aside = 0

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        """The records, and what goes aside."""
        for batch in batches:
            named = dict(zip(batch.schema.names, batch.columns, strict=True))
            keys, values = named["key"].to_pylist(), named["value"].to_pylist()
            places, causes = named["place"].to_pylist(), named["cause"].to_pylist()
            times = named["at"].to_pylist()
            headers = _headers(named["headers"])
            good, aside = [], []
            for index, cause in enumerate(causes):
                problem = self._problem(keys[index], values[index], cause)
                if problem is None:
                    good.append(index)
                else:
                    place = places[index] or "a record"
                    aside.append(self._kept(keys[index], values[index], place, problem))
            self.made += len(good)
            self._aside += len(aside)
            if not aside:
                yield Rows(None, keys, values, times, headers=headers)
                continue
            kept_headers = None if headers is None else [headers[index] for index in good]
            good_keys, good_values, good_times = (
                [column[index] for index in good] for column in (keys, values, times)
            )
            yield Rows(None, good_keys, good_values, good_times, headers=kept_headers)
            yield quarantine_rows(aside)

    def done(self, result: TaskResult) -> str | None:
        """The batch is in the log: what the driver should know."""
        if result.skipped:
            self.made = 0
            return None
        return json.dumps({"aside": self._aside})

    def _problem(self, key: bytes | None, value: bytes | None, cause: str | None) -> str | None:
        if cause:
            return cause
        size = len(key or b"") + len(value or b"") + _ROOM
        if cause == "" and self._work.diagnose is not None:
            return self._work.diagnose(value or b"")
        if size > self._work.largest:
            return f"it is larger than a record may be ({self._work.largest} bytes)"
        return None

    def _kept(self, key: bytes | None, value: bytes | None, place: str, problem: str) -> Outgoing:
        """As it goes to the quarantine; of what is very large, only the beginning."""
        work = self._work
        if value is not None and len(value) > _LONGEST_KEPT:
            problem = f"{problem} (of {len(value)} bytes the first {_LONGEST_KEPT} are kept)"
            value = value[:_LONGEST_KEPT]
        error = MainstemError("NOT_A_RECORD", place=place, name=work.source, problem=problem)
        record = Record(work.topic, _NOWHERE, _NOWHERE, key, value, int(work.now * 1000))
        return quarantined(
            record,
            stage=STAGE,
            reader=work.topic,
            code=error.code,
            cause=error.message,
            at=work.now,
            flow=self._flow,
        )


def _headers(column: pa.Array) -> list[Any] | None:
    if column.null_count == len(column):
        return None
    return [
        None if found is None else [(header["key"], header["value"]) for header in found]
        for found in column.to_pylist()
    ]
