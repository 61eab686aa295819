"""Records -> the windows of so many events that they are in, as Spark computes it.

The records of a key are numbered from 1 in the order of their arrival. Window k of a key begins
with event 1 + k * step, and is full with `size` events.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mainstem.definitions.count_windows import CountWindow
from mainstem.definitions.grouping import COUNT_WINDOW
from mainstem.definitions.query import ARRIVAL
from mainstem.vocabulary import HIDDEN_PREFIX

WINDOW_TYPE = "struct<start: bigint, end: bigint>"
NUMBER = HIDDEN_PREFIX + "number"
"""Which event of its key a record is."""
_BEFORE = HIDDEN_PREFIX + "before"
_NOW = HIDDEN_PREFIX + "now"
_START = HIDDEN_PREFIX + "start"


def numbered(new: DataFrame, kept: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """New records behind those that were kept, with their numbers.

    The kept ones of a key are the last that came before, without a gap; they have their numbers.
    """
    rows = new.withColumn(NUMBER, F.lit(None).cast("bigint"))
    if kept is not None:
        rows = rows.unionByName(kept)
    # all together: by what is the same for all, as Spark warns of a window without a partition
    by = [F.col(name) for name in keys] or [F.col(ARRIVAL[0]).isNull()]
    key = Window.partitionBy(*by)
    order = key.orderBy(F.col(NUMBER).asc_nulls_last(), *ARRIVAL)
    skipped = F.coalesce(F.min(NUMBER).over(key), F.lit(1)) - 1
    return rows.select(
        *new.columns,
        (skipped + F.row_number().over(order)).alias(NUMBER),
        F.coalesce(F.max(NUMBER).over(key), F.lit(0)).alias(_BEFORE),
        (skipped + F.count(F.lit(1)).over(key)).alias(_NOW),
    )


def in_windows(rows: DataFrame, counts: CountWindow, *, full: bool) -> DataFrame:
    """The numbered records, once for each of their windows that a new record is in.

    With `full`, only for windows to which nothing will come any more.
    """
    size, step = counts.size, counts.step
    first = F.expr(f"greatest(0, ({NUMBER} - {size} + {step - 1}) DIV {step})")
    last = F.expr(f"({NUMBER} - 1) DIV {step}")
    starts = F.sequence(first * step + 1, last * step + 1, F.lit(step))
    each = rows.withColumn(_START, F.explode(starts))
    end = F.col(_START) + (size - 1)
    wanted = end > F.col(_BEFORE)
    if full:
        wanted &= end <= F.col(_NOW)
    window = F.struct(F.col(_START).alias("start"), end.alias("end")).cast(WINDOW_TYPE)
    given = [name for name in rows.columns if name not in (*counts.keys, NUMBER, _BEFORE, _NOW)]
    return each.filter(wanted).select(*map(quoted, given), window.alias(COUNT_WINDOW))


def still_needed(rows: DataFrame, counts: CountWindow) -> DataFrame:
    """The numbered records that windows of later ones hold, and in any case the last of a key."""
    size, step = counts.size, counts.step
    open_from = F.when(F.col(_NOW) < size, F.lit(1)).otherwise(
        F.expr(f"1 + (({_NOW} - {size}) DIV {step} + 1) * {step}")
    )
    return rows.filter(F.col(NUMBER) >= F.least(open_from, F.col(_NOW))).drop(_BEFORE, _NOW)


def quoted(name: str) -> Column:
    """The column of exactly that name."""
    return F.col("`" + name.replace("`", "``") + "`")
