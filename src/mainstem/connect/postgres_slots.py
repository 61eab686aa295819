"""The replication slot and the publication of a source: their names, their state, their end.

PostgreSQL keeps its log for a slot until what was read is confirmed, however much that is: a slot
that nobody reads fills the disk, and one that is gone, or lost, means changes that nobody gets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from mainstem.connect.postgres_connection import connected

_STATE = """
SELECT s.active, s.wal_status AS status, s.confirmed_flush_lsn::text AS confirmed,
  pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
    s.restart_lsn)::bigint AS held
FROM pg_replication_slots s WHERE s.slot_name = %(slot)s
"""


@dataclass(frozen=True, slots=True)
class SlotState:
    """What PostgreSQL says of the slot of a source."""

    slot: str
    exists: bool
    active: bool = False
    """True while the connector reads it."""
    lost: bool = False
    """True when PostgreSQL has removed log that was not read yet: changes are missing."""
    confirmed: str | None = None
    """Up to where changes are in the log of Mainstem, as PostgreSQL writes positions."""
    held_bytes: int = 0
    """How much of its log PostgreSQL keeps for the slot."""

    @property
    def problem(self) -> str | None:
        """What is wrong with it, in words; None: nothing."""
        if not self.exists:
            return (
                f'the replication slot "{self.slot}" is gone: changes since then are not captured'
            )
        if self.lost:
            return (
                f'the replication slot "{self.slot}" is lost: PostgreSQL has removed log that was '
                "not read yet (max_slot_wal_keep_size)"
            )
        return None


def slot_of(name: str, options: Mapping[str, Any]) -> str:
    """The replication slot of a source; PostgreSQL takes small letters, digits and _."""
    return options.get("slot") or "mainstem_" + re.sub(r"[^a-z0-9_]", "_", name.lower())[:54]


def publication_of(name: str, options: Mapping[str, Any]) -> str:
    """The publication of a source: its own, or one that an administrator has made."""
    return options.get("publication") or slot_of(name, {})


def slot_state(name: str, options: Mapping[str, Any]) -> SlotState:
    """The state of a source's slot now."""
    slot = slot_of(name, options)
    with connected(options) as connection:
        found: Any = connection.execute(_STATE, {"slot": slot}).fetchone()
    if found is None:
        return SlotState(slot, exists=False)
    return SlotState(
        slot,
        exists=True,
        active=found.active,
        lost=found.status == "lost",
        confirmed=found.confirmed,
        held_bytes=found.held or 0,
    )


def remove(name: str, options: Mapping[str, Any]) -> None:
    """Removes the slot, and the publication if it is the source's own; both may be gone already.

    The connector has ended: a slot in use is an error of PostgreSQL's, and nothing is removed.
    Crash between the two: the next call removes the rest.
    """
    with connected(options) as connection:
        drop = (
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %(slot)s"
        )
        connection.execute(drop, {"slot": slot_of(name, options)})
        if not options.get("publication"):
            publication = sql.Identifier(publication_of(name, options))
            connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(publication))
