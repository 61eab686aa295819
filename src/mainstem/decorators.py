"""`@stream`, `@table`, `@sink`, `@function`, `@stateful`, `@on`: marks of Python functions.

The mark changes nothing: the function stays what it was, to be called in tests and notebooks.
Mainstem reads the signature from the source text and runs the function in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

F = TypeVar("F", bound=Callable[..., Any])
Names = str | Sequence[str]
"""Columns: one, several with commas between, or a list."""


class PipelineOptions(TypedDict, total=False):
    """What `@stream` and `@table` have in common: the options of WITH in SQL, and a few more."""

    name: str
    """Of the stream or table; that of the function, if it is not given."""
    inputs: Mapping[str, str]
    """Parameter -> stream or table, where the names differ."""
    final: bool
    """EMIT FINAL: rows are written once, when their window closes."""
    key: Names
    topic: str
    partitions: int
    retention: str
    latency: Literal["realtime", "normal"]
    trigger: str
    start: Literal["earliest", "latest"]
    format: str
    delimiter: str
    key_format: str
    subject_strategy: Literal["topic_name", "record_name", "topic_record_name"]
    comment: str


class StreamOptions(PipelineOptions, total=False):
    """What `@stream` takes."""

    record: str
    event_time: str
    watermark: str
    max_ahead: str
    max_behind: str
    idle_timeout: str
    deduplicate: Names
    within: str


class TableOptions(PipelineOptions, total=False):
    """What `@table` takes."""

    primary_key: Names
    """The same as `key`."""


@overload
def stream(marked: F, /) -> F: ...


@overload
def stream(**options: Unpack[StreamOptions]) -> Callable[[F], F]: ...


def stream(marked: F | None = None, /, **options: Unpack[StreamOptions]) -> F | Callable[[F], F]:
    """Make a stream of the DataFrame that a function of `pipeline/*.py` returns.

    A parameter is named after the stream or table that it reads:

    @stream(key="user")
    def big_orders(orders: DataFrame) -> DataFrame:
        return orders.where("amount > 100")
    """
    return (lambda plain: plain) if marked is None else marked


@overload
def table(marked: F, /) -> F: ...


@overload
def table(**options: Unpack[TableOptions]) -> Callable[[F], F]: ...


def table(marked: F | None = None, /, **options: Unpack[TableOptions]) -> F | Callable[[F], F]:
    """Make a table of the DataFrame that a function of `pipeline/*.py` returns.

    @table(primary_key="country")
    def per_country(orders: DataFrame) -> DataFrame:
        return orders.groupBy("country").agg(F.sum("amount").alias("total"))
    """
    return (lambda plain: plain) if marked is None else marked


class SinkOptions(TypedDict, total=False):
    """What `@sink` takes."""

    name: str
    inputs: Mapping[str, str]
    topic: str
    partitions: int
    retention: str
    trigger: str
    start: Literal["earliest", "latest"]
    comment: str


@overload
def sink(marked: F, /) -> F: ...


@overload
def sink(**options: Unpack[SinkOptions]) -> Callable[[F], F]: ...


def sink(marked: F | None = None, /, **options: Unpack[SinkOptions]) -> F | Callable[[F], F]:
    """Have a function of `pipeline/*.py` called with the rows of each micro-batch, at least once.

    @sink
    def to_lake(big_orders: DataFrame) -> None:
        big_orders.write.mode("append").parquet("s3a://lake/big_orders")

    It makes a stream of receipts of its name: `batch` and `records`. When it raises, it is called
    again with the same rows.
    """
    return (lambda plain: plain) if marked is None else marked


@overload
def function(marked: F, /) -> F: ...


@overload
def function(
    *, vectorised: bool = False, table: bool = False, aggregate: bool = False
) -> Callable[[F], F]: ...


def function(
    marked: F | None = None,
    /,
    *,
    vectorised: bool = False,
    table: bool = False,
    aggregate: bool = False,
) -> F | Callable[[F], F]:
    """Make a function of `functions/*.py` callable in SQL under its own name.

    @function                      called once per row
    @function(vectorised=True)     takes and returns `pyarrow.Array`s, a batch of rows at a time
    @function(table=True)          gives rows: a list or generator of dataclass, NamedTuple or
                                   TypedDict; stands behind LATERAL
    @function(aggregate=True)      takes `pyarrow.Array`s of a whole group and returns one value
    """
    if marked is not None:
        return marked
    return lambda plain: plain


def stateful(
    *, stream: str, key: str, timer: Literal["event", "wall"] = "event"
) -> Callable[[F], F]:
    """Make a stream of what a function of `functions/*.py` gives; it has the function's name.

    The function is called for each record of `stream` with the record, the state of its key and,
    if it asks for one, the key's timer:

    @stateful(stream="clicks", key="user")
    def visits(click: Click | None, state: State[Visit], timer: Timer) -> Iterator[Ended]: ...

    key      the column, or the columns with commas between, that state is kept for
    timer    "event": its time is that of the records; "wall": it is the time of day
    """
    return lambda plain: plain


def on(
    stream: str,
    /,
    *,
    batch: bool = False,
    tries: int = 5,
    pause: float = 1.0,
    most: int = 500,
    start: Literal["latest", "earliest"] = "latest",
) -> Callable[[F], F]:
    """Have a function of `functions/*.py` called for the events of a stream, at least once each.

    @on("orders")
    def notify(order: Order, id: str) -> None: ...

    batch    call it with a list of records (and a list of ids), not with one
    tries    so often before a record goes to the quarantine; 0: without end
    pause    seconds between the first try and the second; twice as long before each further one
    most     records that are taken in at once: what may be called again after a crash
    start    whether a new function begins with new records, or with all that are there
    """
    return lambda plain: plain
