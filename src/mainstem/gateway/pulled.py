"""Pull queries at the front door: from text and parameters to an answer.

A text that was asked before is not read again while the catalog is the same: what it means to
PostgreSQL is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.definitions.model import Definition, Select
from mainstem.definitions.to_postgres import to_postgres
from mainstem.errors import MainstemError
from mainstem.gateway.taken_in import TakenIn
from mainstem.views.advice import Hint
from mainstem.views.pull import Ask, Parameters, Pull

_MOST_TEXTS = 1000
_LONGEST_TEXT = 20_000
"""Longer ones are made by programs, and do not come again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says beside its text."""

    parameters: Sequence[Any] | Mapping[str, Any] = ()
    wait_for: str | None = None
    """A receipt: the tables must have taken in these records."""
    wait_seconds: float | None = None
    limit: int | None = None
    """Most rows; None: what the settings say."""

    @property
    def says_more(self) -> bool:
        """True when something is said that only a query can take."""
        return bool(self.parameters) or self.wait_for is not None or self.limit is not None


@dataclass(frozen=True, slots=True)
class Known:
    """A pull query that was read."""

    catalog: Catalog
    select: Select
    sql: str
    definitions: tuple[Definition, ...]


class Pulled:
    """Answers pull queries; for one event loop."""

    def __init__(self, catalog: Callable[[], Catalog], pull: Pull, taken_in: TakenIn) -> None:
        self._catalog = catalog
        self._pull = pull
        self._taken_in = taken_in
        self._known: OrderedDict[str, Known] = OrderedDict()

    def known(self, text: str) -> Known | None:
        """The query, if this text was one before, and means the same now."""
        found = self._known.get(text)
        if found is None or found.catalog is not self._catalog():
            return None
        self._known.move_to_end(text)
        return found

    def read(
        self, text: str, select: Select, definitions: Mapping[str, Definition], catalog: Catalog
    ) -> Known:
        """The query over these definitions; kept for when its text comes again."""
        sql = to_postgres(select, definitions)
        known = Known(catalog, select, sql, tuple(definitions.values()))
        if len(text) <= _LONGEST_TEXT:
            self._known[text] = known
            if len(self._known) > _MOST_TEXTS:
                self._known.popitem(last=False)
        return known

    async def answer(self, known: Known, asked: Asked) -> str:
        """The answer as JSON text."""
        answer = await self._pull.query(await self._ready(known, asked))
        return answer.to_json()

    async def stream(self, known: Known, asked: Asked) -> AsyncIterator[bytes]:
        """The answer as lines of JSON, in pieces."""
        return await self._pull.stream(await self._ready(known, asked))

    async def explain(
        self, select: Select, definitions: Mapping[str, Definition]
    ) -> tuple[str, str, Sequence[Hint]]:
        """The query in PostgreSQL's words, PostgreSQL's plan, if it can be had, and hints."""
        sql = to_postgres(select, definitions)
        if select.parameters:
            return sql, "", ()
        try:
            plan, hints = await self._pull.explain(Ask(sql, tuple(definitions.values())))
        except MainstemError as error:
            if error.code not in ("VIEW_NOT_READY", "VIEW_STORE_UNREACHABLE"):
                raise
            return sql, "", ()
        return sql, plan, hints

    async def _ready(self, known: Known, asked: Asked) -> Ask:
        given = check_parameters(known.select, asked.parameters)
        ask = Ask(known.sql, known.definitions, given, asked.limit)
        if asked.wait_for is not None:
            await self._taken_in.wait(ask.tables, asked.wait_for, asked.wait_seconds)
        return ask


def check_parameters(select: Select, given: Sequence[Any] | Mapping[str, Any]) -> Parameters | None:
    """The parameters in the form that the query asks for; None when it has none."""
    wanted = select.parameters
    if not wanted and not given:
        return None
    named = {name for name in wanted if name != "?"}
    if isinstance(given, Mapping):
        problem = None if named and set(given) == named else f"parameters wanted: {_list(wanted)}"
    else:
        count = len(wanted)
        wrong = named or len(given) != count
        problem = f"{count} parameters are wanted: {_list(wanted)}" if wrong else None
    if problem is not None:
        raise MainstemError("BAD_REQUEST", problem=problem)
    values = given.values() if isinstance(given, Mapping) else given
    if not all(value is None or isinstance(value, (str, int, float, bool)) for value in values):
        raise MainstemError("BAD_REQUEST", problem="a parameter is a text, a number or a boolean")
    return given


def _list(wanted: Sequence[str]) -> str:
    return ", ".join(wanted) or "none"
