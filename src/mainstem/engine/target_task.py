"""One task of a sink with a target: runs inside a Python worker, on some partitions of the input.

What happens to its part of a batch, within the writer's steps (`log.task_writer`), and what a crash
behind each means:

a. The part's rows are handed to the target as they come, in the order of each partition. Crash: the
   part is handed over again; nothing of it is in the target, or what is there is the same the
   second time (`connect.targets.target`).
b. The target makes them its own. Crash: as after a. The target knows by key, offset, name or
   version what it has, so the second time changes nothing; rows that it did not take are told
   again.
c. The receipt, the records whose rows the target will never take or that a transform fails for (to
   the quarantine) and the commit token go into one transaction. Crash before the commit: as after
   b. Behind it: the token is found, and the target is not asked again.

Some targets take a batch as a whole (`Committer`). Theirs is one step more, the driver's:

b. The target brings the rows to a safe place, where no reader looks. Crash: as after a; what is
   there is of no use, and removed later.
c. The token says what the part has become.
d. When all tasks have their tokens, the driver makes the parts visible, with their offsets, in one
   commit of the target. Crash before it: the batch runs again, each task finds its token and says
   the same again, and the driver commits. Behind it: likewise, and the target has the offsets.

A target that does not answer fails the part: the flow starts again after a pause, at a.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.connect.catalogue import spec_of
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.connect.targets.target import (
    OWN_LOG,
    REFUSED,
    Part,
    Poison,
    Shape,
    Staging,
    module_of,
    poison_at,
)
from mainstem.crash import crash_point
from mainstem.engine.aside import put_aside
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite

STAGE = "target"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TargetWork:
    """What the driver tells the tasks of one batch; plain values, so that it travels to workers."""

    connection: Mapping[str, Any]
    sink: str
    connector: str
    options: tuple[tuple[str, str], ...]
    """As written: a secret is looked up where it is used."""
    project: str
    shape: Shape
    topics: Mapping[str, str]
    now: float
    prepared: str = ""

    def task(self, task: TaskWrite, number: int) -> TargetTask:
        """The task of a part of the input."""
        return TargetTask(self, task)


class TargetTask:
    """One task of one batch."""

    def __init__(self, work: TargetWork, task: TaskWrite) -> None:
        self._work = work
        self._task = task
        self._secrets = Secrets(Path(work.project), os.environ)
        self.made = 0
        """Rows that the target has taken."""
        self.aside = 0
        self._staged: str | None = None

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        """What is to be written to the log when the target has all rows."""
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        kept, records = self._hand_over(first, filled)
        crash_point("target_done", self._task.flow, self._task.batch_id)
        self.aside = sum(map(len, kept.values()))
        self.made = records - self.aside
        receipt = json.dumps({"batch": self._task.batch_id, "records": self.made})
        yield Rows(None, [None], [receipt.encode()])
        for code, poison in kept.items():
            if not poison:
                continue
            yield put_aside(
                Connection.from_dict(self._work.connection),
                {(p.topic, p.partition, p.offset): self._secrets.mask(p.cause) for p in poison},
                name=self._work.sink,
                flow=self._task.flow,
                at=self._work.now,
                code=code,
                stage=STAGE,
            )

    def note(self) -> str | None:
        """What the task's token says of the batch: what is needed to commit it, if it comes again.

        Asked for when all rows are written.
        """
        return self._staged

    def done(self, result: TaskResult) -> str | None:
        """The batch is in the log: what the driver should know."""
        staged = result.note if result.skipped else self._staged
        if result.skipped and staged is None:
            return None
        return json.dumps({"aside": self.aside, "staged": staged})

    def _hand_over(
        self, first: pa.RecordBatch, others: Iterable[pa.RecordBatch]
    ) -> tuple[Mapping[str, Sequence[Poison]], int]:
        """Gives all rows to the target; says how many there were, and by code which stay here."""
        work, task = self._work, self._task
        spec = spec_of(Role.SINK, work.connector)
        options = {
            **spec.resolve(dict(work.options), self._secrets),
            OWN_LOG: dict(work.connection),
        }
        target = module_of(work.connector).open_target(options, work.shape)
        part = Part(
            sink=work.sink,
            flow=task.flow,
            task=task.task,
            batch=task.batch_id,
            epoch=task.epoch,
            run=task.run,
            recovering=task.recovering,
            topics=work.topics,
            prepared=work.prepared,
        )
        unfit: list[Poison] = []
        poison: list[Poison] = []
        records = 0
        try:
            self._ask(target.open, part)
            for batch in chain((first,), others):
                rows, refused = _fit(pa.Table.from_batches([batch]))
                unfit += refused
                if rows.num_rows:
                    poison += self._ask(target.write, rows)
                records += batch.num_rows
            crash_point("target_written", task.flow, task.batch_id)
            poison += self._ask(target.finish)
            if isinstance(target, Staging):
                self._staged = target.staged()
        finally:
            target.close()
        return {"TRANSFORM_FAILED": unfit, "ROW_REFUSED": poison}, records

    def _ask(self, question: Callable[..., _T], *given: Any) -> _T:
        return asked(self._work.connector, self._secrets, question, *given)


def asked(connector: str, secrets: Secrets, question: Callable[..., _T], *given: Any) -> _T:
    """Asks a target, or its committer; what it raises has no secrets in it."""
    try:
        return question(*given)
    except MainstemError as error:
        params: dict[str, Any] = {
            name: secrets.mask(value) if isinstance(value, str) else value
            for name, value in error.params.items()
        }
        raise MainstemError(error.code, location=error.location, **params) from None
    except Exception as error:  # noqa: BLE001 - whatever a driver raises: the sink tries again
        problem = secrets.mask(f"{type(error).__name__}: {error}")
        raise MainstemError(
            "TARGET_REFUSED",
            what=f"the target of connector {connector}",
            problem=problem[:500],
            advice="The sink tries again.",
        ) from None


def _fit(rows: pa.Table) -> tuple[pa.Table, list[Poison]]:
    """The rows that went through all transforms, and the others."""
    if REFUSED not in rows.column_names:
        return rows, []
    causes = rows[REFUSED].to_pylist()
    refused = [poison_at(rows, at, cause) for at, cause in enumerate(causes) if cause is not None]
    if refused:
        rows = rows.filter(pc.is_null(rows[REFUSED]))
    return rows.drop_columns([REFUSED]), refused
