"""A sink: a Python function that is called with the rows of each micro-batch, at least once.

What happens to a batch:

1. Spark notes up to where the batch reads its stream. Crash: it runs again with the same records.
2. The function is called with the batch's good rows. It raises: the batch has failed, the flow
   starts again after a pause, and the function is called with the same rows. Crash in the call or
   behind it: the same.
3. A receipt is written in one transaction with the token of the batch, and Spark moves on. A crash
   before Spark has noted that lets the function be called once more; there is one receipt.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import FunctionDefinition
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.function_worker import USER_ERRORS, problem_of
from mainstem.engine.pipelines import line_of, load_here
from mainstem.engine.spark_errors import short
from mainstem.errors import MainstemError


class SinkCalls:
    """What a sink makes of each batch: a receipt."""

    few = True

    def __init__(self, entry: Entry, function: FunctionDefinition, formats: Formats) -> None:
        self._definition = entry.definition
        self._function = function
        self._formats = formats
        self._call = load_here(function)
        self._batch: DataFrame | None = None

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """The function's receipt for the batch, after it has taken it."""
        self._batch = rows = batch.persist()
        records = rows.count()
        if records:
            self._take(rows, batch_id)
        receipt = batch.sparkSession.range(1).select(
            F.lit(batch_id).cast("bigint").alias("batch"),
            F.lit(records).cast("bigint").alias("records"),
        )
        return encode(receipt.where("records > 0"), self._definition, self._formats)

    def release(self) -> None:
        """Lets go of the batch's rows."""
        if self._batch is not None:
            self._batch.unpersist()
            self._batch = None

    def _take(self, rows: DataFrame, batch_id: int) -> None:
        try:
            self._call(rows)
        except USER_ERRORS as error:
            told = problem_of(error)
            problem = told if len(told) > len(type(error).__name__) else short(error)
            raise MainstemError(
                "FUNCTION_FAILED",
                location=line_of(error, self._function),
                name=self._function.name,
                problem=problem,
                record=f" for batch {batch_id}",
                records={},
            ) from None
