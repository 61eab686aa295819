"""A captured table in a test: carried as the gateway does, and its changes as the log has them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mainstem.connect.brought import tables_of
from mainstem.connect.carrier import Wanted
from mainstem.connect.source_transforms import told_columns
from mainstem.definitions.connections import connection_of
from mainstem.definitions.model import Format
from mainstem.testing.capturing import LONG, Capturing
from mainstem.testing.driver import Driver
from mainstem.testing.waiting import eventually

Change = tuple[str, int | None]
"""Operation and id; without an id it is that of any row."""


class CarriedTable:
    """A table with a column `id`, which a source of a driver's catalog captures."""

    def __init__(self, capturing: Capturing, driver: Driver, source: str, name: str) -> None:
        """`name` is that of the table here."""
        self._capturing = capturing
        self._driver = driver
        self._source = source
        self.name = name

    def carry(self) -> None:
        """Has Connect carry the source of the catalog, as the gateway does."""
        definition = self._driver.entry(self._source).definition
        connection = connection_of(definition)
        assert connection is not None
        topics = sorted(
            entry.definition.topic
            for entry in self._driver.catalog.entries.values()
            if entry.definition.source == self._source
            and entry.definition.format is Format.DEBEZIUM
        )
        self._capturing.wanted[self._source] = Wanted(
            self._source, 1, connection.connector, dict(connection.options),
            tuple(tables_of(self._source, topics)), tuple(topics),
            columns=told_columns(definition),
        )  # fmt: skip

    @property
    def topic(self) -> str:
        """That of its changes."""
        return self._driver.entry(f"{self.name}_changes").definition.topic

    def values(self) -> list[bytes]:
        """All that the log has of its changes."""
        return self._capturing.values(self.topic)

    def seen(self) -> list[Change]:
        """What is in the log of changes: operation and id."""
        payloads = [json.loads(value)["payload"] for value in self.values()]
        rows = [(p["op"], p["after"] or p["before"]) for p in payloads]
        return [(op, None if row is None else row["id"]) for op, row in rows]

    def await_row(self, id: int) -> None:
        """Waits until there is a change of that row."""
        eventually(lambda: id in {seen for _, seen in self.seen()}, LONG, what=f"the row {id}")

    def await_all(self, wanted: Sequence[Change], before: int) -> None:
        """Waits until all changes are in the log, and finds them there once and in their order."""
        found: list[Change] = []

        def there() -> bool:
            found[:] = self.seen()[before:]
            return len(found) >= len(wanted)

        try:
            eventually(there, LONG)
        except AssertionError:
            shown = self._capturing.shown(self._source)
            raise AssertionError(f"{len(found)} of {len(wanted)}: {shown}") from None
        pairs = zip(found, wanted, strict=True)
        assert [one if other[1] is not None else (one[0], None) for one, other in pairs] == [
            *wanted
        ]

    def await_snapshot(self, table: str) -> None:
        """Waits until the snapshot of a table, as the source names it, has ended well."""
        last: dict[str, object] = {}

        def done() -> bool:
            last.update(self._capturing.shown(self._source))
            snapshots = last["snapshots"]
            return isinstance(snapshots, dict) and snapshots.get(table) == "done"

        try:
            eventually(done, LONG)
        except AssertionError:
            raise AssertionError(f"{last}") from None
