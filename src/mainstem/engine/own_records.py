"""Which records of a topic are a stream's own, when several kinds of records share the topic.

What a value begins with tells it: a schema's id, and in Protobuf a message's place behind that.
Among captured changes there may be records without a value, which only help to compact a topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Format
from mainstem.engine.formats import Versions


def own_records(records: DataFrame, definition: Definition, versions: Versions) -> DataFrame:
    """Those records, in Kafka's columns, that are the definition's, bad ones among them.

    With a name, those of other names are left out; and what has no value has no name, either.
    """
    if definition.format is Format.DEBEZIUM:
        return records.filter(F.col("value").isNotNull())
    if definition.record is None:
        return records
    return records.filter(F.col("value").isNotNull()).filter(~_begins(versions.others))


def named_records(records: DataFrame, versions: Versions, *, named: bool) -> DataFrame:
    """Those of which a schema says that they are the definition's; or the others."""
    mine = _begins(versions.named)
    return records.filter(mine if named else ~mine)


def _begins(beginnings: Iterable[bytes]) -> SparkColumn:
    """True for a value that begins with one of these."""
    found = F.lit(False)
    for length, alike in groupby(sorted(beginnings, key=len), len):
        begin = F.substring(F.col("value"), 1, length)
        found = found | begin.isin([F.lit(bytearray(each)) for each in sorted(alike)])
    return found
