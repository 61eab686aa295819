"""Rows of a sink into an Iceberg table, exactly once: `lake` says in which steps.

The position of each partition is a property of the table, which changes in the same commit as its
snapshot. (A property of the snapshot would be lost when snapshots expire, or be behind those of
other writers.) The catalog takes the commit only on top of the snapshot that was looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.iceberg_files import (
    compact_files,
    expire_snapshots,
    files_with,
    replace_rows,
)
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
from mainstem.connect.targets.object_store import S3, check_folder, check_place, iceberg_options
from mainstem.connect.targets.target import Form, Shape, mismatch, refused, unreachable
from mainstem.errors import MainstemError

GUARANTEE = "exactly once: rows and offsets are one commit of the Iceberg table for each batch"
KEYED = True

_POSITION = "mainstem.position."
_NEW = {
    # else each commit leaves a file of metadata and a manifest that all later ones carry on
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "commit.manifest-merge.enabled": "true",
}
_FILE = "catalog.db"
_RETRIES = "commit.retry.num-retries"


def form(options: Mapping[str, Any]) -> Form:
    """Columns with their types."""
    return Form.COLUMNS


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the catalog can be reached, and a table that is there takes the rows."""
    _check_options(options)
    check_partitions(options, shape)
    table = IcebergLake(options, shape, "")
    with _told(table.what):
        if not _catalog_is_there(options):
            check_folder(table.what, Path(options["warehouse"]))
            return
        there = table.load()
        if there is None:
            return
        check_columns(_schema(there), table.wanted, table.what)
        by = [field.name for field in there.spec().fields]
        if by != list(partitions_of(options["partition_by"])):
            raise mismatch(
                table.what,
                f"it is divided by {', '.join(by) or 'nothing'}",
                "Choose partition_by to fit, or another table.",
            )


def open_target(options: Mapping[str, Any], shape: Shape) -> StagedPart:
    """The target for one task."""
    return StagedPart(options, shape)


def open_committer(options: Mapping[str, Any], shape: Shape, sink: str) -> LakeCommitter:
    """The driver's part."""
    return LakeCommitter(IcebergLake(options, shape, sink), options, shape, sink)


class IcebergLake(LakeTable):
    """One table, as it was when it was last looked at."""

    def __init__(self, options: Mapping[str, Any], shape: Shape, sink: str) -> None:
        self._options = options
        self._shape = shape
        self._sink = sink
        self._by = partitions_of(options["partition_by"])
        namespace, dot, name = (options["table"] or shape.name).rpartition(".")
        self._namespace = namespace if dot else "default"
        self._name = f"{self._namespace}.{name}"
        self._catalog: Any = None
        self._table: Any = None
        self.what = f"Iceberg table {self._name}"
        self.wanted = schema_of(shape, options["partition_by"], self.what)

    @property
    def place(self) -> str:
        """Beside the table's data."""
        return f"{_plain(self._table.location())}/{STAGING}"

    def load(self) -> Any:
        """The table; None when there is none."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if self._catalog is None:
            self._catalog = _catalog(self._options)
        try:
            return self._catalog.load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def prepare(self) -> pa.Schema:
        """Makes the table, or adds columns."""
        with _told(self.what):
            if not _catalog_is_there(self._options):
                Path(self._options["warehouse"]).mkdir(parents=True, exist_ok=True)
            self._table = self.load()
            if self._table is None:
                self._create()
                self._table = self.load()
            missing = missing_from(_schema(self._table), self.wanted)
            if missing:
                with self._table.update_schema() as change:
                    change.union_by_name(pa.schema(missing))
            return _schema(self._table)

    def positions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The properties of the table."""
        with _told(self.what):
            self._table.refresh()
            kept = self._table.properties
            return {id_: int(kept.get(self._property(id_), 0)) for id_ in ids}

    def append(self, rows: pa.Table, positions: Mapping[str, int]) -> None:
        """Adds files."""
        with self._commit(positions) as change:
            change.append(rows)

    def merge(self, rows: pa.Table, gone: pa.Table, positions: Mapping[str, int]) -> None:
        """Rewrites the files that have the keys."""
        keys = pa.concat_tables([rows, gone]).select(key_in(self._shape.key, rows))
        with _told(self.what):
            old = files_with(self._table, keys)
        if not old and not rows.num_rows:
            return  # keys that are not there: the table and its positions stay as they are
        with self._commit(positions) as change:
            replace_rows(self._table, change, old, keys, rows)

    def compact(self) -> None:
        """Small files of each partition become larger ones, and old snapshots go."""
        self._table.refresh()
        compact_files(self._table)
        self._table.refresh()
        expire_snapshots(self._table, self._options["keep_snapshots"])

    @contextmanager
    def _commit(self, positions: Mapping[str, int]) -> Iterator[Any]:
        with _told(self.what):
            # the library would put the same rows on top of another commit, without looking at the
            # positions that it has written
            self._table.metadata.properties[_RETRIES] = "0"
            with self._table.transaction() as change:
                yield change
                noted = {self._property(id_): str(at) for id_, at in positions.items()}
                change.set_properties(noted)

    def _property(self, id_: str) -> str:
        return f"{_POSITION}{self._sink}.{id_}"

    def _create(self) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.transforms import IdentityTransform

        self._catalog.create_namespace_if_not_exists(self._namespace)
        try:
            with (
                self._catalog.create_table_transaction(
                    self._name, self.wanted, properties=_NEW
                ) as new,
                new.update_spec() as spec,
            ):
                for name in self._by:
                    spec.add_field(name, IdentityTransform(), name)
        except TableAlreadyExistsError:
            return


def _check_options(options: Mapping[str, Any]) -> None:
    if not _is_rest(options):
        check_place("warehouse", options["warehouse"])
    if options["catalog"] is not None or _is_local(options):
        return
    raise MainstemError(
        "INVALID_OPTION",
        option="catalog",
        value="nothing",
        problem="only a warehouse in a folder has its catalog there",
        advice="Name the catalog: the URL of a REST catalog, or sqlite:////path/catalog.db.",
    )


def _is_rest(options: Mapping[str, Any]) -> bool:
    return str(options["catalog"]).startswith(("http://", "https://"))


def _is_local(options: Mapping[str, Any]) -> bool:
    return not _is_rest(options) and not options["warehouse"].startswith(S3)


def _catalog_is_there(options: Mapping[str, Any]) -> bool:
    return options["catalog"] is not None or Path(options["warehouse"], _FILE).is_file()


def _catalog(options: Mapping[str, Any]) -> Any:
    from pyiceberg.catalog import load_catalog

    warehouse = options["warehouse"]
    given = {"warehouse": warehouse, **iceberg_options(options)}
    if _is_rest(options):
        given |= {"type": "rest", "uri": options["catalog"], "token": options["token"]}
    else:
        where = options["catalog"] or f"sqlite:///{warehouse.rstrip('/')}/{_FILE}"
        given |= {"type": "sql", "uri": where}
        if _is_local(options):
            given["warehouse"] = f"file://{warehouse}"
    return load_catalog("mainstem", **{name: v for name, v in given.items() if v is not None})


def _schema(table: Any) -> pa.Schema:
    return table.schema().as_arrow()


def _plain(location: str) -> str:
    return location.removeprefix("file://").rstrip("/")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """The library's errors as ours, and none of its warnings: a delete may find nothing."""
    try:
        import pyiceberg.exceptions as problems
        import requests
        import sqlalchemy.exc
    except ImportError:
        problem = "the package pyiceberg is not installed"
        raise refused(what, problem, "Run: pip install 'mainstem[lake]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except problems.CommitFailedException as error:
        raise Conflict(str(error)) from None
    except (requests.ConnectionError, requests.Timeout, problems.ServiceUnavailableError) as error:
        raise unreachable(what, _short(error)) from None
    except sqlalchemy.exc.OperationalError as error:
        raise unreachable(what, _short(error)) from None
    except (problems.UnauthorizedError, problems.ForbiddenError) as error:
        raise refused(what, _short(error), "Correct the token, or its rights.") from None
    except (problems.RESTError, sqlalchemy.exc.SQLAlchemyError, OSError) as error:
        raise refused(what, _short(error)) from None


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
