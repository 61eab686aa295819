"""The source `jdbc-poll`: each batch reads the rows between two places, noted before.

A place is a time, a number, or both; rows are in the order of times, then of numbers. What was seen
as the last time (or number, if there is no time) becomes the end of what may be read only when it
was seen for `delay`: whoever was at work on a row before that place has committed it by then. So a
place is passed once, with all rows that will ever be before it: rows of the same time at the border
are all there, and none is read twice. A row that is changed while its batch is read anew, after a
crash, has a later time then, and comes with a later batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.engine.encode import JSON_OPTIONS, key_of
from mainstem.engine.sources.database import Database
from mainstem.engine.sources.notes import BatchNotes
from mainstem.engine.sources.records import records_of
from mainstem.engine.sources.source import Surroundings, without_secrets
from mainstem.errors import MainstemError


@dataclass(frozen=True, slots=True)
class Place:
    """Behind which row the next one is: values as Spark writes them; one of them may be NULL."""

    time: str | None
    number: str | None


class Settling:
    """What was seen as the last place, and since when; the driver's clock tells the time."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._seen: list[tuple[float, str]] = []

    def saw(self, bound: str, now: float) -> None:
        """It is the last one now."""
        if not self._seen or self._seen[-1][1] != bound:
            self._seen.append((now, bound))

    def settled(self, now: float) -> str | None:
        """The last one of those that were seen for long enough."""
        old = [bound for at, bound in self._seen if now - at >= self._delay]
        if len(old) > 1:
            del self._seen[: len(old) - 1]
        return old[-1] if old else None


class Order:
    """The columns by which rows are in order, and conditions about places in the database's SQL."""

    def __init__(
        self, database: Database, options: Mapping[str, Any], types: Mapping[str, str]
    ) -> None:
        self._database = database
        self._time, self._number = options["timestamp"], options["incrementing"]
        self._types = types
        named = [column for column in (self._time, self._number) if column is not None]
        self.columns = [database.quoted(column) for column in named]
        """Of times, then of numbers; quoted."""

    @property
    def first(self) -> str:
        """The column that the end of what may be read is about."""
        return self.columns[0]

    def behind(self, place: Place | None) -> list[str]:
        """Rows behind a place."""
        return [] if place is None else [self._compared(place, ">")]

    def up_to(self, place: Place) -> str:
        """Rows at a place or before it."""
        return self._compared(place, "<=")

    def not_beyond(self, bound: str) -> str:
        """Rows whose time, or number, is not beyond a bound."""
        column = self._time or self._number
        return f"{self.first} <= {self._database.literal(bound, self._types[column])}"

    def _compared(self, place: Place, than: str) -> str:
        if self._time is None:
            return f"{self.first} {than} {self._literal(self._number, place.number)}"
        time = self._literal(self._time, place.time)
        if self._number is None or place.number is None:
            return f"{self.first} {than} {time}"
        number = self._literal(self._number, place.number)
        same = f"({self.first} = {time} AND {self.columns[1]} {than} {number})"
        return f"({self.first} {than[0]} {time} OR {same})"

    def _literal(self, column: str, text: str | None) -> str:
        assert text is not None, f"a place has a value of {column}"
        return self._database.literal(text, self._types[column])


class JdbcBatches:
    """An `Asked` source."""

    few = True

    def __init__(self, session: SparkSession, at: Surroundings) -> None:
        self._at = at
        self._database = Database(session, at.options)
        types = {column.name: column.type for column in at.entry.definition.columns}
        self._order = Order(self._database, at.options, types)
        self._settling = Settling(at.options["delay"] / 1000)
        self._notes = BatchNotes(at.checkpoints, at.checkpoint)
        last = self._notes.last()
        self._place = None if last is None else Place(**last[1]["to"])
        self.more = False

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame | None:
        """The records of the rows that the batch reads."""
        try:
            return self._result(batch_id)
        except MainstemError as error:  # Spark's own log has it, too
            raise without_secrets(error, self._at.entry.definition, self._at.project) from None

    def _result(self, batch_id: int) -> DataFrame | None:
        note = self._notes.of(batch_id)
        if note is None:
            end = self._next()
            if end is None:
                return None
            since = None if self._place is None else asdict(self._place)
            note = {"from": since, "to": asdict(end), "parts": self._at.options["parallel"]}
            self._notes.write(batch_id, note)
            self._notes.forget(batch_id)
            self._place = end
        return self._records(note)

    def release(self) -> None:
        """Nothing is kept for a batch."""

    @property
    def told(self) -> Mapping[str, Any]:
        """The place that all rows have been read up to."""
        return {"position": None if self._place is None else asdict(self._place)}

    def _next(self) -> Place | None:
        """Where the next batch ends; None: there is nothing to be read yet."""
        database, order, options = self._database, self._order, self._at.options
        self.more = False
        now = self._at.clock.now()
        newest = f"SELECT MAX({order.first}) AS bound FROM {database.relation}"  # noqa: S608
        [last] = _texts(database.rows(newest), database)
        if last[0] is not None:
            self._settling.saw(last[0], now)
        bound = self._settling.settled(now)
        if bound is None:
            return None
        names, conditions = ", ".join(order.columns), [*order.behind(self._place)]
        page = (
            f"SELECT {names} FROM {database.relation}"  # noqa: S608
            f" WHERE {' AND '.join([*conditions, order.not_beyond(bound)])}"
            f" ORDER BY {names} {database.first(options['batch_rows'])}"
        )
        found = database.rows(page)
        place = F.max(F.struct(*(_quoted(name) for name in found.columns))).alias("place")
        ends = found.agg(place, F.count("*").alias("rows")).select("place.*", "rows")
        [(*values, rows)] = _texts(ends, database)
        if values[0] is None:
            return None
        self.more = int(rows) >= options["batch_rows"]
        if options["timestamp"] is None:
            return Place(None, values[0])
        return Place(values[0], values[1] if len(values) > 1 else None)

    def _records(self, note: Mapping[str, Any]) -> DataFrame:
        database, order = self._database, self._order
        since = None if note["from"] is None else Place(**note["from"])
        conditions = " AND ".join([*order.behind(since), order.up_to(Place(**note["to"]))])
        query = f"SELECT * FROM {database.relation} WHERE {conditions}"  # noqa: S608
        parts, number = note["parts"], order.columns[-1]
        divided = [f"ABS(MOD({number}, {parts})) = {part}" for part in range(parts)]
        rows = database.rows(query, parts=divided if parts > 1 else ())
        stream = self._at.entry.definition
        typed = rows.select(*(F.col(_quoted(c.name)).cast(c.type) for c in stream.columns))
        ordered = typed.sortWithinPartitions(*(F.col(_quoted(n)) for n in self._named()))
        value = F.to_json(F.struct("*"), JSON_OPTIONS).cast("binary")
        key = key_of(stream, self._at.formats).cast("binary")
        return records_of(ordered.select(key.alias("key"), value.alias("value")))

    def _named(self) -> list[str]:
        named = (self._at.options["timestamp"], self._at.options["incrementing"])
        return [name for name in named if name is not None]


def _texts(rows: DataFrame, database: Database) -> list[list[Any]]:
    """Few rows, their values as Spark writes them: Python's own times would know of zones."""
    texts = rows.select(*(F.col(_quoted(name)).cast("string") for name in rows.columns))
    return [list(row) for row in database.collected(texts)]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
