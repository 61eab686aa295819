"""`@function`: what marks a Python function of a project for use in SQL.

The mark changes nothing: the function stays what it was, to be called in tests and notebooks.
Mainstem reads the signature from the source text and runs the function in the engine's workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

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
