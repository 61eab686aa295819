"""Rows that break a rule of the stream or table that their flow writes: they never get there.

`encode` names the rules that a row breaks, behind its key and value. The task that writes the batch
leaves such rows out. Unless all of these rules say `drop`, it writes them to the quarantine, in the
transaction of its other rows, so a row is here or there, once. A rule that says `fail` fails the
task, of which nothing is to be seen then.

The row of a table may be there already, as it was when it kept the rules. Where it says what is
true now (`definitions.state.takes_back`), a delete is written in its place, in that transaction,
and it comes back with the next row of its key that keeps the rules.

How many rows broke each rule is what the tasks say; the driver writes it behind the batch, with the
batch's number (`log.rule_counts`). Crash before that: the batch is run again, and a task that had
committed finds what it said in its token. Crash behind it: the number is there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition, OnViolation
from mainstem.definitions.rules import only_dropped, told
from mainstem.definitions.state import takes_back
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.quarantine import quarantined
from mainstem.log.rule_counts import RuleCounts, counted, read_rule_counts, writer_of
from mainstem.log.task_writer import Rows
from mainstem.vocabulary import QUARANTINE_COUNTS_TOPIC, Clock, Record, group_of

_NOWHERE = -1
"""Partition and offset of a row that never was a record."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What a task needs to know to sort its rows; plain values, for any process."""

    definition: Definition
    flow: str
    at: float
    takes_back: bool = False
    """True when the row of a key goes if the one that replaces it breaks a rule."""

    def sorted(
        self, batch: pa.RecordBatch, broken: Counter[str]
    ) -> tuple[Rows, Sequence[Outgoing]]:
        """What is written of these rows, and what goes to the quarantine; rules are counted."""
        keys, values, names = (batch.column(number) for number in range(3))
        good = names.is_null()
        wrong = pc.invert(good)
        if self.takes_back:
            rows = Rows(None, keys.to_pylist(), pc.if_else(good, values, None).to_pylist())
        else:
            rows = Rows(None, keys.filter(good).to_pylist(), values.filter(good).to_pylist())
        parts = (column.filter(wrong).to_pylist() for column in (keys, values, names))
        kept = []
        for key, value, listed in zip(*parts, strict=True):
            self._stop_at(listed)
            broken.update(listed)
            if not only_dropped(self.definition, listed):
                kept.append(self._kept(key, value, listed))
        return rows, kept

    def _stop_at(self, broken: Sequence[str]) -> None:
        for rule in self.definition.rules:
            if rule.action is OnViolation.FAIL and rule.name in broken:
                name, condition = self.definition.name, rule.shown
                raise MainstemError(
                    "RULE_STOPS_ROW", name=name, rule=rule.name, condition=condition
                )

    def _kept(self, key: bytes | None, value: bytes | None, broken: Sequence[str]) -> Outgoing:
        definition = self.definition
        error = MainstemError("RULE_BROKEN", name=definition.name, rules=told(definition, broken))
        row = Record(definition.topic, _NOWHERE, _NOWHERE, key, value, int(self.at * 1000))
        return quarantined(
            row,
            stage="rule",
            reader=definition.name,
            code=error.code,
            cause=error.message,
            at=self.at,
            flow=self.flow,
        )


class BrokenRows:
    """What the rules of a flow's result have cost, over its batches; used by the flow's thread."""

    def __init__(
        self,
        entry: Entry,
        inputs: Sequence[Definition],
        connection: Connection,
        admin: Admin,
        clock: Clock,
    ) -> None:
        self._entry = entry
        self._takes_back = takes_back(entry.definition, inputs)
        self._connection = connection
        self._admin = admin
        self._clock = clock
        self._counts: RuleCounts | None = None
        self.kept = 0
        """Rows that this run has put into the quarantine."""

    def judge(self) -> Judge:
        """For the tasks of the next batch."""
        entry = self._entry
        return Judge(entry.definition, entry.flow_id, self._clock.now(), self._takes_back)

    def count(self, notes: Sequence[str], batch_id: int, epoch: str) -> None:
        """Takes what the tasks of a batch, which is in the log now, had to say."""
        broken: Counter[str] = Counter()
        for note in notes:
            rules, kept = json.loads(note)
            broken.update(rules)
            self.kept += kept
        if not broken:
            return
        writer = writer_of(self._entry.name, self._entry.flow_id)
        producer = TransactionalProducer(self._connection, group_of(f"rules.{self._entry.flow_id}"))
        try:
            if self._counts is None:  # made before this is read: it ends what a crash has left open
                self._counts = read_rule_counts(self._connection, self._admin, writer)
            if self._counts.at.get(epoch, {}).get(0, _NOWHERE) >= batch_id:
                return
            self._counts = RuleCounts(self._counts.records).and_more(broken, {epoch: {0: batch_id}})
            with producer.transaction() as transaction:
                transaction.send(QUARANTINE_COUNTS_TOPIC, [counted(writer, self._counts)])
        finally:
            producer.close()
