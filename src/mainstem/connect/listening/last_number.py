"""Where a numbered stream goes on: behind the highest number that its records have."""

from __future__ import annotations

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range

NUMBER_HEADER = "n"
_FIRST_LOOK = 200
_WIDER = 50


def next_number(connection: Connection, topic: str) -> int:
    """The number for the next record.

    Only the last records of each partition are read. If those of a partition are gone, numbers are
    passed over, so that none is used twice: no record has one that is more than all offsets.
    """
    admin = Admin(connection)
    try:
        begin, end = admin.begin_offsets(topic), admin.end_offsets(topic)
    finally:
        admin.close()
    last: dict[int, int] = {}
    width = _FIRST_LOOK
    left = {p for p, offset in end.items() if offset > begin[p]}
    emptied = any(offset and p not in left for p, offset in end.items())
    while left:
        start = {p: max(begin[p], end[p] - width) for p in left}
        for records in read_range(connection, topic, start, {p: end[p] for p in left}):
            for record in records:
                number = dict(record.headers).get(NUMBER_HEADER)
                if number is not None and number.isdigit():
                    last[record.partition] = max(last.get(record.partition, 0), int(number))
        looked = {p for p in left if start[p] == begin[p]}
        emptied = emptied or bool(looked - last.keys())
        left -= looked | last.keys()
        width *= _WIDER
    behind = max(last.values(), default=-1) + 1
    return max(behind, sum(end.values())) if emptied else behind
