"""Read your write: a query waits until its tables have taken in the records that a receipt names.

From the topic that was written to a table's rows there may be flows on the way. Each hop is waited
for in turn: the flow has read the records (the position of its group moves behind a batch, when
what it made of them is in its topic), then whoever reads its topic must have read up to where that
ends now. At last the table's own offsets, which change together with its rows, say that it has
them. That some record leaves no row, be it filtered out, does not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Lane
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.receipts import Receipt, merge_receipts, read_receipt
from mainstem.vocabulary import Offsets, group_of

Positions = Callable[[Sequence[str]], Awaitable[Mapping[str, Offsets]]]
"""How far views are, by name."""

DEFAULT_SECONDS = 10.0
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1


class TakenIn:
    """Waits for tables; one for all requests."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        admin: Admin,
        positions: Positions,
        most_seconds: float,
    ) -> None:
        self._catalog = catalog
        self._admin = admin
        self._positions = positions
        self._most = most_seconds

    async def wait(self, tables: Iterable[str], receipt: str, seconds: float | None) -> None:
        """Return when all of the tables that come from what the receipt names have it.

        NOT_TAKEN_IN when that takes too long; BAD_REQUEST when none of them comes from it.
        """
        patience = min(seconds or DEFAULT_SECONDS, self._most)
        wait = _Wait(self._catalog(), self._admin, self._positions)
        entries = [e for name in tables if (e := wait.catalog.get(name)) is not None]
        try:
            async with asyncio.timeout(patience):
                await wait.run(entries, self._written(wait.catalog, receipt))
        except TimeoutError:
            raise MainstemError(
                "NOT_TAKEN_IN", seconds=f"{patience:g}", what=wait.who, records=wait.what
            ) from None

    @staticmethod
    def _written(catalog: Catalog, receipt: str) -> Receipt:
        """The receipt by topic."""
        try:
            said = read_receipt(receipt)
        except ValueError:
            said = {}
        if not said:
            problem = "wait_for is no receipt, such as orders:0=41"
            raise MainstemError("BAD_REQUEST", problem=problem)
        return merge_receipts(
            {entry.definition.topic if (entry := catalog.get(name)) else name: at}
            for name, at in said.items()
        )


class _Wait:
    """One request's way from the records to the tables."""

    def __init__(self, catalog: Catalog, admin: Admin, positions: Positions) -> None:
        self.catalog = catalog
        self.who = "the log"
        """Who is waited for now, and what for: an error says it."""
        self.what = "it"
        self._admin = admin
        self._positions = positions
        self._behind: dict[str, Receipt] = {}

    async def run(self, tables: Sequence[Entry], written: Receipt) -> None:
        """Return when the tables have it."""
        found = False
        for entry in tables:
            needed = (await self._needed(entry, written)).get(entry.definition.topic)
            if needed:
                found = True
                await self._view(entry, needed)
        if not found:
            names = ", ".join(entry.name for entry in tables) or "the query"
            problem = f"wait_for names {', '.join(written)}, and {names} does not come from it"
            raise MainstemError("BAD_REQUEST", problem=problem)

    async def _needed(self, entry: Entry, written: Receipt) -> Receipt:
        """What of its topics a reader of an object must have read to have taken in the records."""
        definition = entry.definition
        mine = {topic: at for topic, at in written.items() if definition.reads(topic)}
        if definition.query is None or mine:
            return mine
        known = self._behind.get(entry.name)
        if known is not None:
            return known
        inputs = [e for name in definition.query.inputs if (e := self.catalog.get(name))]
        needed = merge_receipts([await self._needed(source, written) for source in inputs])
        answer: Receipt = {}
        if needed:
            await self._flow(entry, needed)
            ends = await asyncio.to_thread(self._admin.end_offsets, definition.topic)
            answer = {definition.topic: {p: end - 1 for p, end in ends.items() if end > 0}}
        self._behind[entry.name] = answer
        return answer

    async def _flow(self, entry: Entry, needed: Receipt) -> None:
        if entry.definition.lane is Lane.REAL_TIME:
            raise MainstemError(
                "NOT_SUPPORTED",
                what="wait_for",
                where=f'a query behind the real-time flow "{entry.name}"',
                advice="Such a flow says only every few minutes how far it is.",
            )

        async def reached() -> Receipt:
            group = group_of(entry.name)
            ask = self._admin.group_offsets
            return {topic: await asyncio.to_thread(ask, group, topic) for topic in needed}

        await self._until(f"flow {entry.name}", needed, reached)

    async def _view(self, entry: Entry, needed: Mapping[int, int]) -> None:
        topic = entry.definition.topic

        async def reached() -> Receipt:
            return {topic: (await self._positions([entry.name])).get(entry.name, {})}

        await self._until(f"table {entry.name}", {topic: needed}, reached)

    async def _until(
        self, who: str, needed: Receipt, reached: Callable[[], Awaitable[Receipt]]
    ) -> None:
        """Ask again and again whether the next offsets to be read are behind all that is needed."""
        self.who = who
        pause = _FIRST_PAUSE
        while True:
            at = await reached()
            missing = {
                topic: left
                for topic, wanted in needed.items()
                if (left := {p: o for p, o in wanted.items() if at.get(topic, {}).get(p, 0) <= o})
            }
            if not missing:
                return
            self.what = "; ".join(
                f"{topic}, partition {p}, offset {o}"
                for topic, w in missing.items()
                for p, o in w.items()
            )
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
