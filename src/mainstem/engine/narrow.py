"""Does a query leave the rows of each partition of its input together, and in their order?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

_SENT_AROUND = "BroadcastExchangeExec"
_ROW_BY_ROW = frozenset(
    {
        "ArrowEvalPythonExec",
        "BatchEvalPythonExec",
        "BroadcastHashJoinExec",
        "FilterExec",
        "GenerateExec",
        "InputAdapter",
        "ProjectExec",
        "RDDScanExec",
        "WholeStageCodegenExec",
    }
)
"""Steps of Spark's plans that are known to; a table that is joined is sent to where the rows are.
A step that is not known here costs time only: the result is then written by one task."""


def keeps_partitions(result: DataFrame) -> bool:
    """True for the result of a query over one RDD and tables that are sent to where its rows are.

    The partitions of the result are then those of the RDD.
    """
    names = list(_steps(result._jdf.queryExecution().executedPlan()))
    return _ROW_BY_ROW.issuperset(names) and names.count("RDDScanExec") == 1


def _steps(plan: Any) -> Iterator[str]:
    """The steps from the result down to the input, without those that make what is sent around."""
    name = str(plan.getClass().getSimpleName())
    if name == _SENT_AROUND:
        return
    yield name
    children = plan.children()
    for index in range(children.size()):
        yield from _steps(children.apply(index))
