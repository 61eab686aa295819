"""Rows of a table flow that break a rule: which of them are news.

The query of such a flow is asked again and again, so a row that breaks a rule is in its answer as
long as it does. It is kept and counted once: when the last row of its key that the query gave was
another one, or kept the rules. So the flow remembers, by key, the rows that broke some
(`kept_rows`), as digests.

1. The answer is held against what batches before this one have remembered. Crash: nothing was done.
2. What has changed of that is remembered, under the batch's number. Crash: the batch runs again
   over the same tables and what was remembered before it, so it finds the same news.
3. The task that writes the differences puts the news into the quarantine (`judged`). Crash: as for
   all batches, in its token stands whether it has done so.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType

from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.few_rows import here
from mainstem.engine.kept_rows import KeptRows

_SCHEMA = StructType().add("key", BinaryType()).add("told", StringType())


class JudgedAnswer:
    """The memory of one flow. Called from the flow's own thread, batch by batch."""

    def __init__(self, checkpoints: Checkpoints, folder: str) -> None:
        self._known = KeptRows(checkpoints, folder, ["key"])
        self._held: DataFrame | None = None

    def news(self, rows: DataFrame, batch_id: int, *, small: bool) -> DataFrame:
        """The rows with NULL as the value of those that break rules, but for those that are news.

        They have the columns key, value, n (NULL: not in the answer), broken and before (what is in
        the log); those of which there is nothing to say are left out. `broken` stays where it is
        news.
        """
        answered = F.col("n").isNotNull()
        # all of it: it is little, and to look for the keys of the answer is to make that twice
        known = self._known.all_before(batch_id, rows.sparkSession, _SCHEMA)
        if known is None:
            rows = rows.withColumn("told", F.lit(None).cast("string"))
        else:
            rows = rows.join(known.hint("merge") if small else known, "key", "left")
        is_broken = F.col("broken").isNotNull()
        digest = F.when(is_broken, F.sha2(F.col("value"), 256))
        changed = answered & ~digest.eqNullSafe(F.col("told"))
        kept = F.when(~is_broken, F.col("value"))
        wanted = changed | ~kept.eqNullSafe(F.col("before")) | (F.col("n") > 1)
        rows = rows.withColumns({"digest": digest, "changed": changed}).filter(wanted)
        rows = self._hold(rows, small=small)
        told = rows.filter("changed").select("key", F.col("digest").alias("told"))
        if not told.isEmpty():
            self._known.write(batch_id, told, small=small)
        news = F.col("changed") & is_broken
        found = {
            "value": F.when(~is_broken | news, F.col("value")),
            "broken": F.when(news, F.col("broken")),
        }
        return rows.withColumns(found).drop("told", "digest", "changed")

    def release(self) -> None:
        """Lets go of the batch's rows."""
        if self._held is not None:
            self._held.unpersist()
            self._held = None

    def _hold(self, rows: DataFrame, *, small: bool) -> DataFrame:
        if small:
            return here(rows)
        self._held = rows.persist()
        return self._held
