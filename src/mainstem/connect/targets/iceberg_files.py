"""Upkeep of Iceberg tables: small files become larger ones, old snapshots go."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

_SMALL = 32 * 1024 * 1024
_FEW = 8
"""So many small files of a partition may stay as they are."""
_MOST = 128 * 1024 * 1024
"""Bytes that are rewritten at once: a second or two, in which the sink waits."""


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
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    metadata = table.metadata
    metadata.properties["commit.retry.num-retries"] = "0"
    with table.transaction() as change, change.update_snapshot().overwrite() as files:
        for group in groups:
            scan = ArrowScan(metadata, table.io, table.schema(), AlwaysTrue())
            rows = scan.to_table(group)
            for task in group:
                files.delete_data_file(task.file)
            for new in _dataframe_to_data_files(metadata, rows, table.io):
                files.append_data_file(new)
