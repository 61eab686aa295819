"""Long lists, page by page: each page names the last thing in it, and the next begins behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

Limit = Annotated[int, Query(ge=1, le=10_000, description="Most things of a page.")]
After = Annotated[
    str | None, Query(max_length=300, description="Only what comes behind: `next` of a page.")
]
PAGE = 1_000


def page(names: Sequence[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Some of the names, in their order, and what to ask for the next page with, if there is one.

    A name that comes or goes in between makes no other one be left out or come twice.
    """
    left = sorted(name for name in names if after is None or name > after)
    taken = left[:limit]
    return taken, taken[-1] if len(left) > limit else None
