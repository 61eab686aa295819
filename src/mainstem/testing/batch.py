"""What a flow's query gives over all of its input at once: the answer to compare the flow with.

One batch job of Spark, with the query as it is written: no micro-batches, no state, no watermark,
no rewriting. Input is what the log holds now.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from mainstem.definitions.model import Definition, Kind, Query
from mainstem.engine.compile import compile_static, quick_session
from mainstem.engine.decode import mentioned_metadata, read_batch
from mainstem.engine.encode import encode
from mainstem.engine.micro_batch import Machinery

Pair = tuple[bytes | None, bytes]
"""Key and value of a record."""


def batch_answer(
    definition: Definition, inputs: Sequence[Definition], machinery: Machinery
) -> list[Pair]:
    """The records that the definition's query gives; of a table, the last one of each key."""
    query = definition.query
    assert query is not None
    session = quick_session(machinery.spark, machinery.settings.shuffle_partitions)
    try:
        rows = {source: _rows(source, query, machinery) for source in inputs}
        answer = encode(compile_static(session, query, rows), definition, machinery.formats)
        if definition.rules:
            answer = answer.filter("broken IS NULL")
        pairs: list[Pair] = [(_bytes(r.key), bytes(r.value)) for r in answer.collect()]
    finally:
        machinery.tables.done()
    if definition.kind is Kind.TABLE:
        return list({key: (key, value) for key, value in pairs}.values())
    return pairs


def _rows(source: Definition, query: Query, machinery: Machinery) -> DataFrame:
    if source.kind is Kind.TABLE:
        return machinery.tables.at(source, machinery.tables.ends(source))
    metadata = mentioned_metadata(query.columns_read)
    connection, formats, admin = machinery.connection, machinery.formats, machinery.admin
    topics = admin.topics_of(source)
    between = admin.all_begin_offsets(topics), admin.all_end_offsets(topics)
    parts = (machinery.spark, source, connection, formats)
    return read_batch(*parts, metadata=metadata, between=between)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
