"""What a target is: takes the rows of a sink in order, and changes nothing when they come again.

A module of this package is the target of the connector of its name. It has three functions:

form(options)                 how it wants its rows
check(options, shape)         called while a plan is made: raises what would keep it from writing
open_target(options, shape)   the target, for one task of one batch

One that takes a batch as a whole (`Committer`) has a fourth:

open_committer(options, shape, sink)   brings what the tasks have staged into the target

`options` are those of the connector's description (`connectors`), secrets filled in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.transform_effects import Rows, after_all
from mainstem.definitions.transforms import Transform
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import HIDDEN_PREFIX, Column

TOPIC = HIDDEN_PREFIX + "topic"
PARTITION = HIDDEN_PREFIX + "partition"
OFFSET = HIDDEN_PREFIX + "offset"
TIME = HIDDEN_PREFIX + "time"
"""The event time of a stream's record; the record's own time of a table's."""
GONE = HIDDEN_PREFIX + "gone"
"""True: the row is deleted, and of its columns only those of the key say something."""
ID = HIDDEN_PREFIX + "id"
"""The key as a text: a JSON object of its columns."""
ROW = HIDDEN_PREFIX + "row"
"""All columns as a JSON object; NULL when the row is gone."""
REFUSED = HIDDEN_PREFIX + "refused"
"""Which transform the row could not go through; NULL: it comes to the target. No target sees it."""
DELETED = "_deleted"
"""What a row says of itself where upserts and deletes are all rows."""
PLACE = (TOPIC, PARTITION, OFFSET)
OWN_LOG = "own log"
"""Among the options of an open target: how the log is reached that the rows come from."""


class Form(StrEnum):
    """How the columns of a row come to a target."""

    COLUMNS = "columns"
    """As they are."""
    FLAT = "flat"
    """Arrays, structs and maps as JSON text."""
    JSON = "json"
    """All in one text, `ROW`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows that a target is given."""

    name: str
    """Of the stream or table that they come from."""
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """Columns that tell a row from others. A table of one row has none."""
    upserts: bool = False
    """True: a row replaces an earlier one with its key. Else each is one more."""
    deletes: bool = False
    """True when rows may be gone."""
    nullable_key: bool = False
    """True when NULL is a value of the key as any other: groups of a query."""

    @staticmethod
    def of(
        options: Mapping[str, Any], source: Definition, transforms: Sequence[Transform] = ()
    ) -> Shape:
        """What a sink with these options makes of the rows that it reads.

        Refuses transforms that cannot be done, and a `key` that cannot be one: it names columns of
        what is read.
        """
        key: tuple[str, ...] = options.get("key") or ()
        if key:
            _check_key(key, source)
        table = source.kind is Kind.TABLE
        names = [
            found.name for name in (source.key if table else key) if (found := source.column(name))
        ]
        rows = after_all(Rows(source.columns, tuple(names)), transforms)
        if table:
            return Shape(source.name, rows.columns, rows.key, True, True, source.derived)
        return Shape(source.name, rows.columns, rows.key, bool(key))


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a micro-batch that one task hands over."""

    sink: str
    flow: str
    """The sink and its generation."""
    task: str
    batch: int
    epoch: str
    """Tells batches of one checkpoint from those of another, which have the same numbers."""
    run: str
    recovering: bool
    """True when it may have been handed over before: the first batch after a start."""
    topics: Mapping[str, str]
    """The ids of the topics that the sink reads. A topic that was made anew has another one, and
    offsets of the old one mean nothing."""
    prepared: str = ""
    """What the target's committer said to the tasks, if it has one."""


@dataclass(frozen=True, slots=True)
class Poison:
    """A row that the target will never take, and why; it goes to the quarantine."""

    topic: str
    partition: int
    offset: int
    cause: str


class Target(Protocol):
    """Takes the rows of one part of a batch. One thread, one part, methods in this order.

    A part that was handed over before, wholly or not, must leave the target as it is behind the
    first time; so must one that comes when later ones have been written. What a target finds wrong
    with itself, and not with a row, it raises: CONNECTOR_UNREACHABLE, TARGET_REFUSED. Then, or
    after a crash, the part comes again, until it is taken.
    """

    def open(self, part: Part) -> None:
        """Connects."""
        ...

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Takes some rows; those of one partition come in the order of their offsets."""
        ...

    def finish(self) -> Sequence[Poison]:
        """All rows of the part have come: when this returns, they are in the target for good."""
        ...

    def close(self) -> None:
        """Lets go of the connection; called in any case."""
        ...


@runtime_checkable
class Staging(Protocol):
    """A target whose parts become visible all at once, by the module's committer."""

    def staged(self) -> str:
        """What the committer needs to find the part; asked for behind `finish`.

        The commit token of the task carries it, so it is some hundred bytes and no more.
        """
        ...


class Committer(Protocol):
    """Makes the parts of a batch visible in one step. In the driver, for one run of a flow.

    `finish` of the target brings a part to a safe place, where no reader looks. When all tasks have
    written their tokens, `commit` is called with what they said. It is called again with the same
    after a crash, and must find out by itself what is in the target already.
    """

    def prepare(self) -> str:
        """Called before the first batch: makes what is missing; what it says goes to the tasks."""
        ...

    def commit(self, staged: Sequence[str]) -> None:
        """Brings the parts of one batch into the target; raises as a target does."""
        ...


class TargetModule(Protocol):
    """What a module of this package offers."""

    GUARANTEE: str
    """How often a row may be in the target, and why; for EXPLAIN."""
    KEYED: bool
    """True: of rows with one key it keeps the last. False: each change is one more."""

    def form(self, options: Mapping[str, Any]) -> Form:
        """How it wants its rows."""
        ...

    def check(self, options: Mapping[str, Any], shape: Shape) -> None:
        """Raises what would keep the target from writing; makes nothing. Errors have no place.

        CONNECTOR_UNREACHABLE, TARGET_REFUSED, TARGET_MISMATCH.
        """
        ...

    def open_target(self, options: Mapping[str, Any], shape: Shape) -> Target:
        """The target for one task."""
        ...


def module_of(connector: str) -> TargetModule:
    """The target of a connector that is known to be there (`catalogue`)."""
    return cast(TargetModule, import_module(f"{__package__}.{connector.replace('-', '_')}"))


def committer_of(
    connector: str, options: Mapping[str, Any], shape: Shape, sink: str
) -> Committer | None:
    """What makes the batches of a sink visible; None: its parts are so by themselves."""
    make = getattr(module_of(connector), "open_committer", None)
    return None if make is None else cast(Committer, make(options, shape, sink))


def check_target(
    connector: str,
    options: Mapping[str, Any],
    source: Definition,
    transforms: Sequence[Transform] = (),
) -> None:
    """Refuse a target that cannot take the rows of the object that is read; makes nothing."""
    module_of(connector).check(options, Shape.of(options, source, transforms))


def _check_key(key: tuple[str, ...], source: Definition) -> None:
    """Refuse a key by which rows would not come in order."""
    written = ", ".join(key)
    if source.kind is Kind.TABLE:
        raise MainstemError(
            "INVALID_OPTION",
            option="key",
            value=written,
            problem=f'the key of "{source.name}" is its primary key',
            advice="Leave the option out.",
        )
    for name in key:
        if source.column(name) is None:
            known = [column.name for column in source.columns]
            suggestion = did_you_mean(name, known)
            raise MainstemError(
                "UNKNOWN_COLUMN", column=name, known=", ".join(known), suggestion=suggestion
            )
    given = {name.lower() for name in key}
    if not source.key or not {name.lower() for name in source.key} <= given:
        by = f"by its own key ({', '.join(source.key)}) only" if source.key else "by no key"
        raise MainstemError(
            "INVALID_OPTION",
            option="key",
            value=written,
            problem=f'the records of "{source.name}" are in order {by}',
            advice=f"Read a stream of them that has the key: CREATE STREAM ... WITH (key = "
            f"'{written}') AS ...",
        )


def by_partition(rows: pa.Table) -> Iterator[tuple[str, int, pa.Table]]:
    """The rows of each topic and partition."""
    pairs = rows.select([TOPIC, PARTITION]).group_by([TOPIC, PARTITION]).aggregate([])
    if pairs.num_rows == 1:
        yield rows[TOPIC][0].as_py(), rows[PARTITION][0].as_py(), rows
        return
    for topic, partition in zip(*(column.to_pylist() for column in pairs.columns), strict=True):
        same = pc.and_(pc.equal(rows[TOPIC], topic), pc.equal(rows[PARTITION], partition))
        yield topic, partition, rows.filter(same)


def last_of_each(rows: pa.Table) -> pa.Table:
    """Of rows with one key the last one, in their order."""
    numbers = pa.array(range(rows.num_rows), pa.int64())
    last = pa.table({ID: rows[ID], "n": numbers}).group_by(ID).aggregate([("n", "max")])
    return rows.take(last["n_max"].sort())


def json_rows(rows: pa.Table, *, deletes: bool) -> list[str]:
    """The rows in the form `JSON`; where rows may be gone, each says whether it is."""
    if not deletes:
        texts: list[str] = rows[ROW].to_pylist()
        return texts
    objects = pc.coalesce(rows[ROW], rows[ID]).to_pylist()
    marks = ("true" if gone else "false" for gone in rows[GONE].to_pylist())
    return [
        text[:-1] + ("," if len(text) > 2 else "") + f'"{DELETED}":{mark}}}'
        for text, mark in zip(objects, marks, strict=True)
    ]


def key_text(id_: str) -> str:
    """The values of a key (`ID`) as one text: of one column the value itself, else a JSON array."""
    values = list(json.loads(id_, parse_float=str).values())  # as it is written
    if len(values) == 1 and isinstance(values[0], str):
        return str(values[0])
    return json.dumps(
        values[0] if len(values) == 1 else values, ensure_ascii=False, separators=(",", ":")
    )


def poison_at(rows: pa.Table, index: int, cause: str) -> Poison:
    """The row of that number as one that is not taken."""
    topic, partition, offset = (rows[name][index].as_py() for name in PLACE)
    return Poison(topic, partition, offset, cause)


def refused(
    what: str, problem: str, advice: str = "Correct it there; the sink goes on then."
) -> MainstemError:
    """TARGET_REFUSED: the target answers, but does not do what it is asked for."""
    return MainstemError("TARGET_REFUSED", what=what, problem=problem, advice=advice)


def unreachable(what: str, problem: str) -> MainstemError:
    """CONNECTOR_UNREACHABLE."""
    return MainstemError("CONNECTOR_UNREACHABLE", what=what, problem=problem)


def mismatch(what: str, problem: str, advice: str) -> MainstemError:
    """TARGET_MISMATCH: what is there cannot take such rows."""
    return MainstemError("TARGET_MISMATCH", what=what, problem=problem, advice=advice)
