"""Records that a view could not take, whole and with their cause, to the quarantine topic.

The records and the view's position in its topic (group `mainstem.quarantine.view.<name>`) are
written in one transaction. A view that reads a range again, after a crash or to be rebuilt, sees
from that position what it has set aside before: a record is kept exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.errors import MainstemError
from mainstem.log.admin import BROKER_DEFAULT, Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import TransactionalProducer
from mainstem.log.quarantine import ensure_quarantine, quarantined
from mainstem.views.batch import Rejected
from mainstem.vocabulary import QUARANTINE_TOPIC, Clock, SystemClock, group_of

CODE = "INVALID_RECORD"


class ViewQuarantine:
    """Writer of the quarantine topic for all views; used by the one thread that writes them."""

    def __init__(self, connection: Connection, admin: Admin, clock: Clock | None = None) -> None:
        self._connection = connection
        self._admin = admin
        self._clock = clock or SystemClock()
        self._ready = False

    def keep(self, view: str, topic: str, rejected: Sequence[Rejected]) -> None:
        """Write the records that are not there yet, and wait until the log has them."""
        if not self._ready:
            ensure_quarantine(self._admin, BROKER_DEFAULT, self._connection.max_record_bytes)
            self._ready = True
        group = _group(view)
        # made before the position is read: it ends what a crashed writer of this id left open
        producer = TransactionalProducer(self._connection, group)
        try:
            kept = self._admin.group_offsets(group, topic)
            new = [r for r in rejected if r.record.offset >= kept.get(r.record.partition, 0)]
            if new:
                self._write(producer, view, topic, new)
        finally:
            producer.close()

    def _write(
        self, producer: TransactionalProducer, view: str, topic: str, new: list[Rejected]
    ) -> None:
        position: dict[int, int] = {}
        for item in new:
            partition, offset = item.record.partition, item.record.offset
            position[partition] = max(offset + 1, position.get(partition, 0))
        at = self._clock.now()
        with producer.transaction() as transaction:
            transaction.send(
                QUARANTINE_TOPIC,
                [
                    quarantined(item.record, reader=view, at=at, **_reason(view, item))
                    for item in new
                ],
            )
            transaction.offsets(_group(view), {topic: position})

    def forget(self, view: str) -> None:
        """The view or its topic is gone: another one of its name begins from nothing."""
        self._admin.delete_group(_group(view))


def _reason(view: str, rejected: Rejected) -> dict[str, str]:
    if not rejected.rules:
        return {"stage": "view", "code": CODE, "cause": rejected.cause}
    broken = MainstemError("RULE_BROKEN", name=view, rules=rejected.cause)
    return {"stage": "rule", "code": broken.code, "cause": broken.message}


def _group(view: str) -> str:
    return group_of(f"quarantine.view.{view}")
