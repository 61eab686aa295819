"""Which flows share the scan of their stream, and since when.

A flow begins alone, with a query of its own. Once it keeps up with its stream, and is not the only
one there that could share, it moves into the stream's shared scan (`shared_scan`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from mainstem.catalog.entry import Entry
from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.model import Definition, Kind, Lane
from mainstem.definitions.state import keeps_state, mentions
from mainstem.engine.batch_log import BatchLog
from mainstem.engine.compile import flow_session
from mainstem.engine.member import Member
from mainstem.engine.micro_batch import Machinery
from mainstem.engine.pacing import Pacer
from mainstem.engine.progress import Progress
from mainstem.engine.shared_plan import SharedPlan
from mainstem.engine.shared_scan import SharedScan
from mainstem.vocabulary import BACKFILL_PREFIX

_LOG = logging.getLogger(__name__)
_BETWEEN_SECONDS = 0.3


def can_share(entry: Entry, inputs: Sequence[Definition]) -> bool:
    """True for a flow whose rows come from the records of one stream alone, one batch as another.

    Not for one that says its own trigger, calls Python, is a backfill or has one beside it, nor for
    formats whose schemas may have to be asked for: one flow's wait must not be the others'.
    """
    definition = entry.definition
    query = definition.query
    if query is None or query.python is not None or query.functions or len(inputs) != 1:
        return False
    own = (definition.stateful, definition.handler, definition.sink, definition.trigger)
    [source] = inputs
    return (
        source.kind is Kind.STREAM
        and source.pattern is None
        and not (source.format.registered or definition.format.registered)
        and all(part is None for part in own)
        and not (entry.backfill is not None and entry.backfill.active)
        and definition.until is None
        and not definition.topic.startswith(BACKFILL_PREFIX)
        and definition.lane is not Lane.REAL_TIME
        and not keeps_state(definition, inputs)
        and count_window_of(query) is None
        and len(mentions(query)) == 1
    )


class Sharing:
    """The shared scans of an engine. For the runner's thread alone."""

    def __init__(self) -> None:
        self._able: dict[str, Definition] = {}
        """By flow that runs, alone or not: the stream that it reads."""
        self._scans: list[tuple[Definition, SharedScan]] = []
        self._joined_at = float("-inf")

    def add(self, entry: Entry, stream: Definition) -> None:
        """A flow runs that could share."""
        self._able[entry.flow_id] = stream

    def remove(self, entry: Entry) -> None:
        """It does not any more."""
        self._able.pop(entry.flow_id, None)

    def worthwhile(self, stream: Definition) -> bool:
        """True when several flows could share the scan of the stream, and one may join now.

        They join one after the other: to end a query takes a while, and the runner waits for it.
        """
        able = sum(1 for other in self._able.values() if other == stream)
        return able > 1 and time.monotonic() - self._joined_at > _BETWEEN_SECONDS

    def join(
        self,
        entry: Entry,
        stream: Definition,
        checkpoint: str,
        passed: Callable[[Progress], None],
        machinery: Machinery,
        pacer: Pacer,
    ) -> Member | None:
        """Moves a flow, whose query has ended, into the scan of its stream; None: it cannot."""
        self._joined_at = time.monotonic()
        try:
            log = BatchLog(machinery.checkpoints, checkpoint, stream.topic)
        except ValueError as error:
            _LOG.info("flow %s stays alone: %s", entry.name, error)
            return None
        member = Member(entry, log, passed)
        for known, scan in self._scans:
            if known == stream and scan.join(member):
                return member
        session = flow_session(machinery.spark, machinery.settings.shuffle_partitions)
        scan = SharedScan(stream, SharedPlan(session, stream, machinery.formats), machinery, pacer)
        self._scans = [(known, old) for known, old in self._scans if known != stream]
        self._scans.append((stream, scan))
        scan.join(member)
        return member

    def end(self) -> None:
        """Ends all scans, so that no flow waits for the others when all are stopped."""
        for _, scan in self._scans:
            scan.end()
