"""The topics that flows write beside their output: tokens of batches, bad records, late records."""

from __future__ import annotations

from mainstem.log.admin import Admin
from mainstem.log.late import ensure_late
from mainstem.log.quarantine import ensure_quarantine
from mainstem.log.task_writer import tokens_topic
from mainstem.vocabulary import COMMITS_TOPIC


def ensure_engine_topics(admin: Admin, replication_factor: int, max_record_bytes: int) -> None:
    """Makes those that are missing."""
    admin.ensure_topic(tokens_topic(COMMITS_TOPIC, replication_factor))
    ensure_quarantine(admin, replication_factor, max_record_bytes)
    ensure_late(admin, replication_factor, max_record_bytes)
