"""Transforms over rows, as Spark's expressions; `definitions.transform_effects` says their types.

A row for which a step fails (a cast, a condition, a time that cannot be read) is marked as refused
by that step, in words without its values, and stays so: whoever takes the rows puts it aside. The
steps after it see NULL there. Only the row decides, never the clock, so a batch that comes again is
the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.connect.targets.target import GONE, OFFSET, PARTITION, REFUSED, TIME, TOPIC
from mainstem.definitions.transform_effects import TIMES, Rows, after, base, fields_of
from mainstem.definitions.transforms import (
    Cast,
    Drop,
    Filter,
    Flatten,
    Insert,
    Keep,
    Mask,
    Masking,
    Rename,
    Timestamp,
    Transform,
    Unit,
)
from mainstem.engine.attempt import attempt
from mainstem.vocabulary import HIDDEN_PREFIX, Column

PASSED = HIDDEN_PREFIX + "passed"
"""False: a filter has left the row out."""
REDACTED = "***"
_STAR = "*"
_PLACES = {"_topic": TOPIC, "_partition": PARTITION, "_offset": OFFSET, "_event_time": TIME}
_FROM_NUMBER = {
    Unit.SECONDS: F.timestamp_seconds,
    Unit.MILLIS: F.timestamp_millis,
    Unit.MICROS: F.timestamp_micros,
}
_TO_NUMBER = {
    Unit.SECONDS: F.unix_seconds,
    Unit.MILLIS: F.unix_millis,
    Unit.MICROS: F.unix_micros,
}
Resolve = Callable[[str], str]
"""Fills references to secrets in."""


def transformed(
    rows: DataFrame,
    columns: Sequence[Column],
    transforms: Sequence[Transform],
    name: str,
    resolve: Resolve,
) -> DataFrame:
    """The rows with their new columns, the hidden ones, `REFUSED` and `PASSED`.

    They have the hidden columns of a target's rows (`connect.targets.target`), of which a row that
    is gone is left alone; `name` is that of the stream or table. A salt is in the plan: it may be
    asked of a batch, never be kept with a query.
    """
    hidden = [c for c in rows.columns if c.startswith(HIDDEN_PREFIX)]
    rows = rows.select("*", F.lit(None).cast("string").alias(REFUSED), F.lit(True).alias(PASSED))
    hidden += [REFUSED, PASSED]
    known = Rows(tuple(columns))
    for transform in transforms:
        step = _Step(known, transform, name, resolve)
        made = step.columns()
        marks = {REFUSED: step.refused, PASSED: step.passed}
        rows = rows.select(
            *(value.alias(column) for column, value in made.items()),
            *(marks[c].alias(c) if c in marks else F.col(c) for c in hidden),
        )
        known = after(known, transform)
    return rows


class _Step:
    """One transform over rows of which the columns are known."""

    def __init__(self, rows: Rows, transform: Transform, name: str, resolve: Resolve) -> None:
        self._rows = rows
        self._name = name
        self._resolve = resolve
        self.refused = F.col(REFUSED)
        self.passed = F.col(PASSED)
        self._transform = transform

    def columns(self) -> dict[str, SparkColumn]:
        """Name -> value of each column behind the step; says what becomes of the marks, too."""
        values = {c.name: [(c.name, _col(c.name))] for c in self._rows.columns}
        transform, find = self._transform, self._rows.column
        match transform:
            case Drop(columns):
                for named in columns:
                    values[find(named).name] = []
            case Keep(columns):
                kept = {find(named).name for named in columns}
                values = {column: made for column, made in values.items() if column in kept}
            case Rename(column, to):
                old = find(column).name
                values[old] = [(to.name, _col(old))]
            case Cast(column, type_):
                old = find(column).name
                values[old] = [(old, self._tried(old, _col(old).try_cast(type_)))]
            case Mask(column):
                old = find(column).name
                values[old] = [(old, self._masked(find(column), transform))]
            case Insert(column):
                values[column.name] = [(column.name, self._inserted(transform))]
            case Filter():
                self._filter(transform)
            case Flatten(column):
                found = find(column)
                values[found.name] = [
                    ("_".join(path), _field(path)) for path, _ in fields_of(found)
                ]
            case Timestamp(column):
                old = find(column).name
                values[old] = [(old, self._time(find(column), transform))]
        return {column: value for made in values.values() for column, value in made}

    def _tried(self, column: str, value: SparkColumn) -> SparkColumn:
        """The value; a row for which it is NULL and should not be is refused."""
        self._refuse_if(_col(column).isNotNull() & value.isNull())
        return value

    def _refuse_if(self, failed: SparkColumn) -> None:
        cause = F.lit(self._transform.shown)
        fails = F.col(REFUSED).isNull() & F.col(PASSED) & ~F.col(GONE) & failed
        self.refused = F.when(fails, cause).otherwise(F.col(REFUSED))

    def _filter(self, transform: Filter) -> None:
        # a row that makes the condition fail would fail the flow each time it is read
        kept = attempt(F.expr(f"(({transform.condition}\n) <=> true)"))
        self._refuse_if(kept.isNull())
        self.passed = F.col(PASSED) & (F.col(GONE) | F.coalesce(kept, F.lit(False)))

    def _masked(self, column: Column, transform: Mask) -> SparkColumn:
        value, text = _col(column.name), base(column.type) == "string"
        match transform.how:
            case Masking.HASH:
                read = value if base(column.type) == "binary" else value.cast("string")
                salt = self._resolve(transform.salt) if transform.salt else ""
                salted = F.concat(F.lit(bytearray(salt.encode())), read.cast("binary"))
                return F.sha2(salted, 256)
            case Masking.REDACT:
                return F.lit(REDACTED) if text else F.lit(None).cast(column.type)
            case Masking.PARTIAL:
                length, shows = F.char_length(value), F.lit(transform.shows)
                stars = F.repeat(F.lit(_STAR), F.greatest(length - shows, F.lit(0)))
                end = F.concat(stars, F.right(value, shows))
                return F.when(length > shows, end).otherwise(F.repeat(F.lit(_STAR), length))

    def _inserted(self, transform: Insert) -> SparkColumn:
        if transform.origin is not None:
            place = _PLACES.get(transform.origin)
            return F.lit(self._name) if place is None else F.col(place)
        return F.lit(transform.value).cast(transform.type)

    def _time(self, column: Column, transform: Timestamp) -> SparkColumn:
        value, kind, unit = _col(column.name), base(column.type), transform.unit
        if unit is None:
            pattern = F.lit(transform.pattern)
            if kind in TIMES:
                return F.date_format(value, str(transform.pattern))
            return self._tried(column.name, F.try_to_timestamp(value, pattern))
        if kind in TIMES:
            return _TO_NUMBER[unit](value.cast("timestamp"))
        return self._tried(column.name, attempt(_FROM_NUMBER[unit](value)))


def _field(path: Sequence[str]) -> SparkColumn:
    value = _col(path[0])
    for name in path[1:]:
        value = value.getField(name)
    return value


def _col(name: str) -> SparkColumn:
    return F.col("`" + name.replace("`", "``") + "`")
