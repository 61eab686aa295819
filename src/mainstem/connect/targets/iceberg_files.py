"""Files of Iceberg tables: rewritten for keys, packed, and forgotten with old snapshots.

The library has an upsert and a delete of its own. They take conditions with a literal for each key,
which costs a second for ten thousand of them; here Arrow compares columns.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_SMALL = 32 * 1024 * 1024
_FEW = 8
"""So many small files of a partition may stay as they are."""
_MOST = 128 * 1024 * 1024
"""Bytes that are rewritten at once: a second or two, in which the sink waits."""


_FEW_KEYS = 200
"""So many keys are looked for one by one when files are chosen; Iceberg itself takes no more."""


def files_with(table: Any, keys: pa.Table) -> list[Any]:
    """The files that may have rows with the keys, by what the table knows of its files."""
    import pyiceberg.expressions as library

    made: Any = library  # its types know less than its constructors take
    conditions = []
    for name in keys.column_names:
        values = pc.unique(keys[name]).drop_null()
        if len(values) <= _FEW_KEYS:
            some = made.In(name, set(values.to_pylist()))
        else:
            bounds = pc.min_max(values).as_py()
            some = made.And(
                made.GreaterThanOrEqual(name, bounds["min"]),
                made.LessThanOrEqual(name, bounds["max"]),
            )
        if keys[name].null_count:
            some = made.Or(some, made.IsNull(name))
        conditions.append(some)
    condition = reduce(made.And, conditions) if conditions else made.AlwaysTrue()
    return list(table.scan(row_filter=condition).plan_files())


def replace_rows(table: Any, change: Any, old: list[Any], keys: pa.Table, rows: pa.Table) -> None:
    """Writes files anew without the rows that have one of the keys, and new rows behind them."""
    with change.update_snapshot().overwrite() as files:
        for task in old:
            there = _read(table, [task])
            stay = there.filter(pc.invert(_has(there, keys)))
            if stay.num_rows == there.num_rows:
                continue
            files.delete_data_file(task.file)
            _add(table, files, stay)
        _add(table, files, rows)


def _has(rows: pa.Table, keys: pa.Table) -> pa.Array | pa.ChunkedArray:
    """Which rows have one of the keys; NULL is a value as any other."""
    names = keys.column_names
    if not names:
        return pa.repeat(True, rows.num_rows)
    each = (
        pc.is_in(rows[name], value_set=keys[name].cast(rows[name].type).combine_chunks())
        for name in names
    )
    found = reduce(pc.and_, each)
    if len(names) == 1:
        return found
    # of several columns each has a value of some key, but maybe not all of the same
    wanted = set(zip(*(keys[name].to_pylist() for name in names), strict=True))
    given = rows.filter(found).select(names)
    exact = iter([key in wanted for key in zip(*given.to_pydict().values(), strict=True)])
    return pa.array([maybe and next(exact) for maybe in found.to_pylist()], pa.bool_())


def _read(table: Any, tasks: list[Any]) -> pa.Table:
    """The rows of some files."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    return scan.to_table(tasks)


def _add(table: Any, files: Any, rows: pa.Table) -> None:
    """Writes rows to new files, which become part of a commit."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    if rows.num_rows:
        for new in _dataframe_to_data_files(table.metadata, rows, table.io):
            files.append_data_file(new)


def compact_files(table: Any) -> int:
    """Makes the small files of a partition one, for as many as may be; says how many went.

    In one commit on top of the table's state: a conflict means that nothing has happened.
    """
    groups: dict[str, list[Any]] = defaultdict(list)
    for task in table.scan().plan_files():
        if task.file.file_size_in_bytes < _SMALL and not task.delete_files:
            groups[repr(task.file.partition)].append(task)
    chosen: list[list[Any]] = []
    size = 0
    for group in groups.values():
        if len(group) <= _FEW:
            continue
        taken = []
        for task in group:
            size += task.file.file_size_in_bytes
            if size > _MOST:
                break
            taken.append(task)
        if len(taken) > 1:
            chosen.append(taken)
    if chosen:
        _rewrite(table, chosen)
    return sum(map(len, chosen))


def expire_snapshots(table: Any, keep_ms: int) -> None:
    """Forgets snapshots that are older: each commit writes the list of all of them."""
    before = datetime.now(UTC) - timedelta(milliseconds=keep_ms)
    oldest = min((s.timestamp_ms for s in table.snapshots()), default=None)
    if oldest is not None and oldest < before.timestamp() * 1000:
        table.maintenance.expire_snapshots().older_than(before.replace(tzinfo=None)).commit()


def _rewrite(table: Any, groups: list[list[Any]]) -> None:
    table.metadata.properties["commit.retry.num-retries"] = "0"
    with table.transaction() as change, change.update_snapshot().overwrite() as files:
        for group in groups:
            for task in group:
                files.delete_data_file(task.file)
            _add(table, files, _read(table, group))
