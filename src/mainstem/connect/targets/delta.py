"""Rows of a sink into a Delta table, exactly once: `lake` says in which steps.

The position of each partition is an application transaction of the table: its app id names sink,
topic and partition, its version is the next offset. Delta keeps the last version of each, in the
same commit as the rows, and refuses a commit whose app id another one has used meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.lake import (
    STAGING,
    Conflict,
    LakeCommitter,
    LakeTable,
    StagedPart,
    key_in,
)
from mainstem.connect.targets.lake_schema import (
    check_columns,
    check_partitions,
    missing_from,
    partitions_of,
    schema_of,
)
from mainstem.connect.targets.object_store import S3, check_folder, check_place, delta_options
from mainstem.connect.targets.target import GONE, Form, Shape, mismatch, refused, unreachable

GUARANTEE = "exactly once: rows and offsets are one commit of the Delta table for each batch"
KEYED = True

_TARGET_BYTES = 128 * 1024 * 1024
_BAD_NAME = re.compile(r"[ ,;{}()\n\t=]")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m|↳")
_AWAY = re.compile(r"error sending request|timed out|dns error|connect error", re.IGNORECASE)


def form(options: Mapping[str, Any]) -> Form:
    """Columns with their types."""
    return Form.COLUMNS


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the place can be reached, and a table that is there takes the rows."""
    check_place("folder", options["folder"])
    check_partitions(options, shape)
    table = DeltaLake(options, shape, "")
    with _told(table.what):
        there = table.load()
        if there is None:
            if not options["folder"].startswith(S3):
                check_folder(table.what, Path(options["folder"]))
            return
        check_columns(_schema(there), table.wanted, table.what)
        if there.metadata().partition_columns != list(partitions_of(options["partition_by"])):
            raise mismatch(
                table.what,
                f"it is divided by {', '.join(there.metadata().partition_columns) or 'nothing'}",
                "Choose partition_by to fit, or another folder.",
            )
        for name in there.metadata().configuration:
            if name.startswith("delta.constraints."):
                raise mismatch(
                    table.what,
                    f"it has a constraint, {name}, and one row could stop a whole batch",
                    "Remove it there, and have the rule in CREATE STREAM.",
                )


def open_target(options: Mapping[str, Any], shape: Shape) -> StagedPart:
    """The target for one task."""
    return StagedPart(options, shape)


def open_committer(options: Mapping[str, Any], shape: Shape, sink: str) -> LakeCommitter:
    """The driver's part."""
    return LakeCommitter(DeltaLake(options, shape, sink), options, shape, sink)


class DeltaLake(LakeTable):
    """One table, as it was when it was last looked at."""

    def __init__(self, options: Mapping[str, Any], shape: Shape, sink: str) -> None:
        self._folder = str(options["folder"]).rstrip("/")
        self._by = partitions_of(options["partition_by"])
        self._storage = delta_options(options) if self._folder.startswith(S3) else {}
        self._shape = shape
        self._sink = sink
        self._table: Any = None
        self.what = f"Delta table {self._folder}"
        self.wanted = schema_of(shape, options["partition_by"], self.what)
        for name in self.wanted.names:
            if _BAD_NAME.search(name):
                advice = "Give the column another name: TRANSFORM (rename(...))."
                raise mismatch(self.what, f'"{name}" is no name for a column there', advice)

    @property
    def place(self) -> str:
        """Beside the table's files."""
        return f"{self._folder}/{STAGING}"

    def load(self) -> Any:
        """The table; None when there is none."""
        library = _library()
        try:
            return library.DeltaTable(self._folder, storage_options=self._storage)
        except library.exceptions.TableNotFoundError:
            return None

    def prepare(self) -> pa.Schema:
        """Makes the table, or adds columns."""
        library = _library()
        with _told(self.what):
            self._table = self.load()
            if self._table is None:
                self._table = library.DeltaTable.create(
                    self._folder,
                    self.wanted,
                    mode="ignore",
                    partition_by=list(self._by) or None,
                    storage_options=self._storage,
                )
            missing = missing_from(_schema(self._table), self.wanted)
            if missing:
                fields = library.Schema.from_arrow(pa.schema(missing)).fields
                self._table.alter.add_columns(fields)
                self._table.update_incremental()
            return _schema(self._table)

    def positions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The versions of the application transactions."""
        with _told(self.what):
            self._table.update_incremental()
            return {id_: self._table.transaction_version(self._app(id_)) or 0 for id_ in ids}

    def append(self, rows: pa.Table, positions: Mapping[str, int]) -> None:
        """Adds files."""
        with _told(self.what):
            _library().write_deltalake(
                self._table, rows, mode="append", commit_properties=self._commit(positions)
            )

    def merge(self, rows: pa.Table, gone: pa.Table, positions: Mapping[str, int]) -> None:
        """Rewrites the files that have the keys."""
        marked = pa.concat_tables(
            [
                rows.append_column(GONE, pa.repeat(False, rows.num_rows)),
                gone.append_column(GONE, pa.repeat(True, gone.num_rows)),
            ]
        )
        keys = [
            f"(t.{_quoted(name)} {_same(marked[name])} s.{_quoted(name)})"
            for name in key_in(self._shape.key, rows)
        ]
        values = {_quoted(name): f"s.{_quoted(name)}" for name in rows.column_names}
        gone_mark = f"s.{_quoted(GONE)}"
        with _told(self.what):
            (
                self._table.merge(
                    marked,
                    " AND ".join(keys) or "true",
                    source_alias="s",
                    target_alias="t",
                    commit_properties=self._commit(positions),
                )
                .when_matched_delete(gone_mark)
                .when_matched_update(values)
                .when_not_matched_insert(values, f"NOT {gone_mark}")
                .execute()
            )

    def compact(self) -> None:
        """Delta packs the small files of each partition."""
        self._table.update_incremental()
        self._table.optimize.compact(target_size=_TARGET_BYTES)

    def _app(self, id_: str) -> str:
        return f"mainstem.{self._sink}.{id_}"

    def _commit(self, positions: Mapping[str, int]) -> Any:
        library = _library()
        moved = [library.Transaction(self._app(id_), at) for id_, at in positions.items()]
        return library.CommitProperties(app_transactions=moved)


def _same(column: pa.ChunkedArray) -> str:
    """How keys are compared; equality lets Delta pass files over, and NULL is equal to nothing."""
    return "IS NOT DISTINCT FROM" if column.null_count else "="


def _schema(table: Any) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _library() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        problem = "the package deltalake is not installed"
        raise refused("Delta", problem, "Run: pip install 'mainstem[lake]'") from None
    return deltalake


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Delta's errors as ours."""
    exceptions = _library().exceptions
    try:
        yield
    except exceptions.CommitFailedError as error:
        raise Conflict(str(error)) from None
    except (exceptions.DeltaError, OSError) as error:
        problem = " ".join(_COLOURS.sub("", str(error)).split())[:300]
        if _AWAY.search(problem):
            raise unreachable(what, problem) from None
        raise refused(what, problem or type(error).__name__) from None
