"""Tables out of tables: when one changes, the query is asked again and the differences are written.

What happens to a batch:

1. Spark notes up to where it has seen the topics of the tables. Crash: the batch runs again with
   the same offsets, so with the same state of all tables.
2. The query is asked over that state: for the keys that the changes since the last batch touch,
   where the text of the query proves which those are (`definitions.affected`), else whole; whole,
   too, if all tables are small (`few_rows`), for that costs less than to look for keys. Its
   answer is compared, row by row, with what the topic of the result holds: new and changed rows
   are written, and deletes for rows that are gone. Rows that break a rule of the table count as
   gone (`judged_answer`).
3. What the tables were (their topics' ids, and from where on they are read) is noted: the next
   batch asks by keys only if they are the same still. Crash: the batch runs again; the note of the
   one before it is what it looks at.
4. One task, or the driver if they are few, writes the differences: one transaction. Crash before
   the commit: nothing has changed, and the batch gives the same differences. Crash behind it: the
   replay finds no difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.affected import Affected, affected
from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition
from mainstem.definitions.relations import relations, table_name
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import Quick, compile_mentions, compile_static, into
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.held_table import ALL_ROWS, Only, release
from mainstem.engine.judged_answer import JudgedAnswer
from mainstem.engine.spark_errors import MARK
from mainstem.engine.tables import Tables
from mainstem.engine.touched import Moved, narrowed, only_keys, touched_keys
from mainstem.vocabulary import Offsets

_NOTES = "tables"
_NOTES_KEPT = 2
_MOST_TOUCHED = 100_000
"""With more keys than that, to look for each would cost more than to ask for all."""
_MOST_CHANGED = 0.1
"""The same for changes, as a share of the table's rows, if they are more than a few."""
_FEW_CHANGES = 1_000
_FEW_TOUCHED = 10_000
"""With so many keys at most, what is left of the tables is compared by one task."""


class Recomputation:
    """What a table flow makes of each batch."""

    def __init__(
        self,
        entry: Entry,
        inputs: Sequence[Definition],
        tables: Tables,
        checkpoints: Checkpoints,
        folder: str,
        formats: Formats,
    ) -> None:
        query = entry.definition.query
        assert query is not None
        self._definition = entry.definition
        self._query = query
        self._inputs = {source.name.lower(): source for source in inputs}
        self._affected = affected(entry.definition, inputs)
        self._mentions: list[str] = []
        if isinstance(self._affected, Affected):
            tree = Asked.of(query).parsed.tree
            self._mentions = [table_name(table).lower() for table in relations(tree)]
        self._tables = tables
        self._checkpoints = checkpoints
        self._folder = folder
        self._formats = formats
        self._kept: list[DataFrame] = []
        self._touched: DataFrame | None = None
        self._quick = Quick()
        rules = entry.definition.rules
        self._judged = JudgedAnswer(checkpoints, folder) if rules else None
        self.few = False

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write; a value of null deletes."""
        ends = self._checkpoints.batch_end(self._folder, batch_id)
        known = self._known(batch_id)
        # what is not seen by then is written again, as it is
        written = self._tables.settled_end(self._definition)
        asked = [(source, ends.get(source.topic, {})) for source in self._inputs.values()]
        self._tables.bring_up([*asked, (self._definition, written)])
        self.few = self._are_few(ends, written)
        session = batch.sparkSession
        if self.few:
            session = self._quick.session(session)

        def now(name: str, only: Only = ALL_ROWS) -> DataFrame:
            source = self._inputs[name]
            return into(session, self._tables.at(source, ends.get(source.topic, {}), only))

        def in_log(only: Only = ALL_ROWS) -> DataFrame:
            return into(session, self._tables.at(self._definition, written, only))

        keys = moved = None
        if known and not self.few and isinstance(self._affected, Affected):
            starts = self._checkpoints.batch_end(self._folder, batch_id - 1)
            moved = self._moved(session, self._affected, now, starts, ends)
            keys = self._keys(self._affected, moved) if moved else None
        if keys is None or moved is None or not isinstance(self._affected, Affected):
            sources = {source: now(name) for name, source in self._inputs.items()}
            answer = compile_static(session, self._query, sources)
            return self._differences(answer, in_log(), batch_id)
        types = {column.name: column.type for column in self._definition.columns}
        asked_for = {key: (key, types[key]) for key in self._affected.keys}
        touched = only_keys(keys, asked_for)
        if self._affected.row_by_row:
            [table] = moved.values()
            answer = compile_mentions(session, self._query, [table.now])
        else:
            read = [partial(now, name) for name in self._mentions]
            rows = narrowed(self._affected, self._definition, read, keys, self._kept)
            answer = touched(compile_mentions(session, self._query, rows))
        tasks = 1 if self.few else None
        return self._differences(answer, in_log(touched), batch_id, tasks)

    def release(self) -> None:
        """Lets go of what was kept to find the differences."""
        for rows in self._kept:
            rows.unpersist()
        self._kept.clear()
        if self._touched is not None:
            release(self._touched)
            self._touched = None
        if self._judged is not None:
            self._judged.release()
        self._tables.done()

    def _are_few(self, ends: Mapping[str, Offsets], written: Offsets) -> bool:
        """True when all tables are small: to look for what changes touch would only cost more."""
        read = all(self._tables.few(s, ends.get(s.topic, {})) for s in self._inputs.values())
        return read and self._tables.few(self._definition, written)

    def _known(self, batch_id: int) -> bool:
        """True when the topic of the result holds the answer over the same tables a batch ago."""
        seen = (*self._inputs.values(), self._definition)
        tables = json.dumps([self._tables.identity(source) for source in seen])
        self._checkpoints.write_note(self._folder, _NOTES, batch_id, tables)
        self._checkpoints.delete_note(self._folder, _NOTES, batch_id - _NOTES_KEPT)
        return self._checkpoints.read_note(self._folder, _NOTES, batch_id - 1) == tables

    def _moved(
        self,
        session: SparkSession,
        how: Affected,
        now: Callable[[str], DataFrame],
        starts: Mapping[str, Offsets],
        ends: Mapping[str, Offsets],
    ) -> dict[str, Moved] | None:
        """What has changed in each table between two states; None when it is too much."""
        moved = {}
        others = any(route.hops for route in how.routes)
        for name, source in self._inputs.items():
            start, end = starts.get(source.topic, {}), ends.get(source.topic, {})
            if start == end:
                moved[name] = Moved(now(name))
                continue
            changed = self._tables.changed(source, start, end)
            most = max(_FEW_CHANGES, self._tables.rows_about(source) * _MOST_CHANGED)
            if changed is None or changed.count > most:
                return None
            after, records = (into(session, some) for some in (changed.after, changed.records))
            before = None if how.row_by_row else into(session, changed.before())
            if others and before is not None:
                before = before.persist()
                self._kept.append(before)
            key = frozenset(column.lower() for column in source.key)
            rows = after if how.row_by_row else now(name)
            moved[name] = Moved(rows, before, after, records, key, changed.count)
        return moved

    def _keys(self, how: Affected, moved: Mapping[str, Moved]) -> DataFrame | None:
        """The keys that the changes touch; None when they are too many."""
        keys = touched_keys(how, self._definition, moved)
        if keys is None:
            return None
        count = 2 * sum(table.count for table in moved.values())  # as they were, and as they are
        if not how.row_by_row:
            hops = any(route.hops for route in how.routes)
            if hops:  # else there are not more keys than that
                keys = keys.limit(_MOST_TOUCHED + 1)
            keys = self._touched = keys.localCheckpoint(eager=True)
            if hops and (count := keys.count()) > _MOST_TOUCHED:
                return None
        self.few = count <= _FEW_TOUCHED
        return keys

    def _differences(
        self, answer: DataFrame, in_log: DataFrame, batch_id: int, tasks: int | None = None
    ) -> DataFrame:
        """The records that make of what is in the log the answer; by as many tasks, if it says."""
        rows = encode(answer, self._definition, self._formats)
        before = encode(in_log, self._definition, self._formats)
        if tasks is not None:
            rows, before = rows.repartition(tasks), before.repartition(tasks)
        before = before.select("key", F.col("value").alias("before"))
        made = rows.columns[1:]
        by_key = rows.groupBy("key").agg(
            *(F.first(name).alias(name) for name in made), F.count("*").alias("n")
        )
        joined = by_key.join(before, "key", "full_outer")
        different = ~F.col("value").eqNullSafe(F.col("before")) | (F.col("n") > 1)
        if self._judged is not None:
            # few keys may have many rows
            joined = self._judged.news(joined, batch_id, small=self.few and tasks is None)
            different |= F.col("broken").isNotNull()
        single = F.when(F.col("n") > 1, self._complaint()).otherwise(F.col("value"))
        return joined.filter(different).withColumn("value", single).select("key", *made)

    def _complaint(self) -> Column:
        """Two rows with one key: an error, when Spark gets to such a row."""
        params = F.struct(
            F.lit(self._definition.name).alias("name"),
            F.col("key").cast("string").alias("key"),
            F.col("n").alias("count"),
        )
        document = F.to_json(
            F.struct(F.lit("DUPLICATE_KEY").alias("title"), params.alias("params"))
        )
        return F.raise_error(F.concat(F.lit(MARK), document, F.lit(MARK))).cast("binary")
