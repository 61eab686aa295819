"""Changes that belong together in a compacted topic: held back until all of them are there.

The records of one transaction may come in two polls, and a reader cannot see its end. So each
record of such a group carries the group's name in a header, and the last one says that it is last.
"""

from __future__ import annotations

from mainstem.vocabulary import Record

_HEADER = "mainstem.change"
_LAST = b"."


def group_headers(name: str, last: bool) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record of group `name`; names have no dot."""
    return ((_HEADER, name.encode() + (_LAST if last else b"")),)


class ChangeGroups:
    """Puts records, in the order of the log, into complete groups. For one thread."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._name = b""

    @property
    def open(self) -> bool:
        """True while records are held back."""
        return bool(self._records)

    def add(self, record: Record) -> list[list[Record]]:
        """Add a record; gives the groups that are complete now.

        A record outside of any group is a group by itself. Another group's record ends a group
        whose last record was compacted away.
        """
        mark = dict(record.headers).get(_HEADER) or b""
        name = mark.removesuffix(_LAST)
        complete = self.rest() if name != self._name else []
        self._name = name
        self._records.append(record)
        if not name or mark.endswith(_LAST):
            complete += self.rest()
        return complete

    def rest(self) -> list[list[Record]]:
        """The group that is held back, if any: no more of it will come."""
        records, self._records = self._records, []
        return [records] if records else []
