"""Where `consume` begins: a word such as `earliest`, `-10` or `time:...` as offsets of a topic."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mainstem.errors import MainstemError
from mainstem.vocabulary import Offsets, Record

if TYPE_CHECKING:
    from mainstem.log.admin import Admin
    from mainstem.log.connection import Connection

_LAST = re.compile(r"-([1-9]\d*)$")
_OFFSET = re.compile(r"offset:(\d+)$")


def parse_start(text: str) -> str | int | datetime:
    """`earliest`, `latest`, a number (an offset; negative: the last N records) or a time."""
    if text in ("earliest", "latest"):
        return text
    if _LAST.match(text):
        return int(text)
    if found := _OFFSET.match(text):
        return int(found[1])
    if text.startswith("time:"):
        try:
            moment = datetime.fromisoformat(text.removeprefix("time:"))
        except ValueError:
            pass
        else:
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise MainstemError("BAD_POSITION", text=text)


def start_offsets(
    admin: Admin, topic: str, start: str | int | datetime, begin: Offsets, end: Offsets
) -> dict[int, int]:
    """Partition -> first offset to read, within what the topic holds."""
    if isinstance(start, datetime):
        found = admin.offsets_at(topic, int(start.timestamp() * 1000))
        return {p: min(max(found.get(p, end[p]), begin[p]), end[p]) for p in end}
    if isinstance(start, int):
        return {p: min(max(start, begin[p]), end[p]) for p in end}
    return dict(end if start == "latest" else begin)


def last_records(
    connection: Connection, topic: str, count: int, begin: Offsets, end: Offsets
) -> list[Record]:
    """The newest `count` records of a topic, oldest first.

    Offsets have holes (transaction markers, compaction), so the range grows until it holds enough.
    """
    from mainstem.log.consumer import read_range

    span = count
    while True:
        start = {p: max(begin[p], end[p] - span) for p in end}
        found = [r for batch in read_range(connection, topic, start, end) for r in batch]
        held = Counter(r.partition for r in found)
        if all(start[p] == begin[p] or held[p] >= count for p in end):
            found.sort(key=lambda r: (r.timestamp, r.partition, r.offset))
            return found[-count:]
        span *= 4
