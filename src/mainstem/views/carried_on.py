"""Can what is stored of a view be carried on with, or is it built anew?"""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.catalog.entry import Entry
from mainstem.schemas.postgres_types import postgres_type
from mainstem.views.observe import TopicEnds
from mainstem.views.store import StoredView, judged_by
from mainstem.vocabulary import Column

OTHER_TOPIC = "the topic is not the one that it was built from"


def why_rebuild(entry: Entry, stored: StoredView | None, ends: TopicEnds) -> str | None:
    """Why what is stored cannot be carried on with; None when it can."""
    if stored is None:
        return None
    definition = entry.definition
    if stored.generation != entry.served_generation:
        return "a new generation"
    if (stored.topic, stored.key, stored.derived) != (
        definition.topic,
        definition.key,
        definition.derived,
    ):
        return "another topic or key"
    if stored.rules != judged_by(definition):
        return "other rules"
    if _types(stored.columns) != _types(_without(definition.columns, added_columns(entry, stored))):
        # a column cannot just be added: records that are in the view already may have had it
        return "other columns"
    if any(offset > ends.end.get(p, 0) for p, offset in stored.offsets.items()):
        return OTHER_TOPIC
    if definition.retention in (None, "forever") and any(
        begin > stored.built_from.get(p, begin) for p, begin in ends.begin.items()
    ):
        return "the topic was emptied"
    return None


def added_columns(entry: Entry, stored: StoredView) -> list[Column]:
    """Columns that can be added: it is known since when records have had them."""
    known = {column.name for column in stored.columns}
    new = (column for column in entry.definition.columns if column.name not in known)
    return [column for column in new if column.name in entry.grown]


def _without(columns: Iterable[Column], added: Iterable[Column]) -> list[Column]:
    gone = {column.name for column in added}
    return [column for column in columns if column.name not in gone]


def _types(columns: Iterable[Column]) -> list[tuple[str, str]]:
    return [(c.name, postgres_type(c.type, c.name)) for c in columns]
