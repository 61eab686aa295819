"""The keys of records, where a definition says their format: read as values are, beside them."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.engine.encode import JSON_OPTIONS
from mainstem.engine.formats import Versions
from mainstem.engine.values import ROW, corrupt_of, row_of
from mainstem.vocabulary import HIDDEN_PREFIX

_RECORD = HIDDEN_PREFIX + "record"
_KEYS = HIDDEN_PREFIX + "keys"
CORRUPT_KEY = HIDDEN_PREFIX + "corrupt_key"
"""Not null for a record whose key is there, and is not what its format says."""


def with_keys(raw: DataFrame, definition: Definition, versions: Versions) -> DataFrame:
    """Records in Kafka's columns, with what their keys hold; as they are if no format is said."""
    keys = definition.keys
    if keys is None:
        return raw
    known = versions.keys or Versions()
    record = F.struct(*raw.columns).alias(_RECORD)
    parsed = raw.select(record, F.col("key").alias("value")).select(
        _RECORD, "value", row_of(keys, known)
    )
    corrupt = corrupt_of(keys, known).alias(CORRUPT_KEY)
    return parsed.select(f"{_RECORD}.*", F.col(ROW).alias(_KEYS), corrupt)


def key_field(name: str) -> SparkColumn:
    """A column of the key, in what `with_keys` gives."""
    return F.col(_KEYS).getField(name)


def key_text(definition: Definition) -> SparkColumn:
    """The key as a text: a JSON object where its format is one of the registry's."""
    if definition.key_format is None or not definition.key_format.registered:
        return F.col("key").cast("string")
    row = F.struct(*(key_field(name).alias(name) for name in definition.key))
    return F.when(F.col("key").isNotNull(), F.to_json(row, JSON_OPTIONS))
