"""Large values that changes leave out, put in where the changes pass by in their order.

PostgreSQL does not send a large value that an update leaves as it was. It is what the row had
before: in the last change that told it, or, before the first one of the batch, in the table. A row
whose key was changed had it under its old key, which goes just before. If there is a row with the
new key already, a snapshot has read it that is newer than the change: then that one counts, for of
the old key's nothing may ever have been told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.engine import whole_input
from mainstem.vocabulary import HIDDEN_PREFIX

KEPT = HIDDEN_PREFIX + "kept"
"""False for a row that goes, of which there is only the key."""
ORDER = HIDDEN_PREFIX + "order"
"""Where in the changes a row is from; below zero: in the table before them."""
GAPS = HIDDEN_PREFIX + "gaps"
"""Names of the columns whose values were left out; NULL when there are none."""
MOVED = HIDDEN_PREFIX + "moved"
"""True for a row that had another key, which is that of the row before it."""

Parts = Iterator[pa.RecordBatch]
_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Filling:
    """Which values are put in; a plain value, so that it travels to the workers."""

    key: Sequence[str]
    columns: Sequence[str]
    """Those whose values may be left out."""
    wanted: Collection[_Key]
    """The keys under which values are looked for; no others are kept."""

    def function(self) -> Callable[[Parts], Parts]:
        """For rows in their order, those of the table first: the rows of the changes, whole.

        What was never told is NULL.
        """

        def fill(parts: Parts) -> Parts:
            whole_input.require_installed()
            return map(Filler(self).fill, parts)

        return fill


class Filler:
    """What the rows were before the next change."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._known: dict[_Key, dict[str, Any]] = {}
        self._gone: dict[str, Any] | None = None
        """What the row had that has just gone."""

    def fill(self, part: pa.RecordBatch) -> pa.RecordBatch:
        """The next rows, with the values that were left out; without those of the table."""
        found: dict[str, dict[int, Any]] = {name: {} for name in self._filling.columns}
        marks = (part.column(name).to_pylist() for name in (KEPT, MOVED, GAPS))
        of_row = zip(*marks, keys_of(part, self._filling.key), strict=True)
        for at, (kept, moved, gaps, key) in enumerate(of_row):
            if not kept:
                self._gone = self._known.pop(key, None)
                continue
            before = self._known.get(key)
            if before is None and moved:
                before = self._gone
            self._gone = None
            for name in gaps or ():
                found[name][at] = None if before is None else before.get(name)
            if key in self._filling.wanted:
                self._known[key] = {
                    name: found[name][at] if name in (gaps or ()) else part.column(name)[at].as_py()
                    for name in self._filling.columns
                }
        for name, values in found.items():
            if values:
                part = _with(part, name, values)
        shown = [name for name in part.schema.names if name not in (ORDER, MOVED, GAPS)]
        of_table = pc.and_(pc.less(part.column(ORDER), 0), part.column(KEPT))
        return part.filter(pc.invert(of_table)).select(shown)


def keys_of(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> list[_Key]:
    """The key of each row."""
    return list(zip(*(rows.column(name).to_pylist() for name in key), strict=True))


def _with(part: pa.RecordBatch, name: str, values: dict[int, Any]) -> pa.RecordBatch:
    """The rows with other values at some places of a column."""
    column = part.column(name)
    more = pa.array(values.values(), column.type)
    places = list(range(part.num_rows))
    for number, at in enumerate(values):
        places[at] = part.num_rows + number
    made = pa.concat_arrays([column, more]).take(pa.array(places))
    return part.set_column(part.schema.get_field_index(name), part.schema.field(name), made)
