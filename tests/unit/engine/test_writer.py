"""Which tasks a batch is split into, and how they are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mainstem.engine.writer import BatchWriter, SourceRange, Split


class Leaves(list[Any]):
    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Any:
        return self[index]


def named(name: str) -> dict[str, Any]:
    """The class of a node of Spark's plan."""
    return {"getClass": lambda: SimpleNamespace(getSimpleName=lambda: name)}


def query(*texts: str) -> Any:
    """A query whose plan reads partitions in the given order."""
    leaves = Leaves(
        SimpleNamespace(
            getClass=lambda t=t: SimpleNamespace(
                getSimpleName=lambda: "MicroBatchScanExec" if t else "LocalTableScanExec"
            ),
            inputPartitions=lambda t=t: SimpleNamespace(mkString=lambda _: t),
        )
        for t in texts
    )
    leaves.append(SimpleNamespace(**named("LocalTableScanExec")))
    plan = SimpleNamespace(collectLeaves=lambda: leaves)
    execution = SimpleNamespace(executedPlan=lambda: plan)
    running = SimpleNamespace(lastExecution=lambda: execution)
    java = SimpleNamespace(streamingQuery=lambda: running)
    return SimpleNamespace(id="checkpoint", runId="run", _jsq=java)


def test_ranges_come_in_the_order_of_the_plan() -> None:
    writer = BatchWriter("f.1", "out", SimpleNamespace(), Split.BY_INPUT)  # type: ignore[arg-type]
    writer.attach(
        query(
            "KafkaBatchInputPartition(KafkaOffsetRange(shop.orders-2,0,240,None),{a=b},1)\n"
            "KafkaBatchInputPartition(KafkaOffsetRange(shop.orders-1,7,260,None),{a=b},1)"
        )
    )
    assert writer._source_ranges() == [
        SourceRange("shop.orders-2", 0, 240),
        SourceRange("shop.orders-1", 7, 260),
    ]


def test_tasks_over_several_topics_have_names_of_their_own() -> None:
    writer = BatchWriter("f.1", "out", SimpleNamespace(), Split.BY_INPUT)  # type: ignore[arg-type]
    orders = "KafkaBatchInputPartition(KafkaOffsetRange(orders-0,0,240,None),{a=b},1)"
    clicks = "KafkaBatchInputPartition(KafkaOffsetRange(clicks-0,5,6,None),{a=b},1)"
    writer.attach(query(orders, "", clicks, orders))
    assert writer._source_ranges() == [
        SourceRange("orders-0", 0, 240),
        SourceRange("clicks-0", 5, 6),
        SourceRange("orders-0/2", 0, 240),
    ]
