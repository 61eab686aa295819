"""`@function`, `@stateful`, `@on`: what marks a Python function of a project for use by Mainstem.

The mark changes nothing: the function stays what it was, to be called in tests and notebooks.
Mainstem reads the signature from the source text and runs the function in the engine's workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


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
